"""Rules: «new chapter → post»; what the post says, on which accounts it goes out, and how long after."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from imprint.decisions.schedule import zone_of
from imprint.decisions.template import refuse
from imprint.platforms.registry import PLATFORMS
from imprint.problem import Problem
from imprint.store.db import Database
from imprint.store.query import Link, query
from imprint.work.naming import to_camel
from imprint.work.prefix import Candidate, bounds, picked

FIELDS = ("series", "number", "title", "url")
LONGEST_TITLE = 500
LONGEST_BODY = 100_000
LONGEST_TAG = 200
MOST_TAGS = 100
LONGEST_DELAY = timedelta(days=365)


@dataclass(frozen=True)
class Row:
    """A row that was made, found or changed."""

    id: UUID


@dataclass(frozen=True)
class On:
    """An account on which the posts of a rule go out."""

    id: UUID
    platform: str


@dataclass(frozen=True)
class Rule:
    """A rule, the names of its accounts, and how many posts it has made."""

    id: UUID
    series_id: UUID
    series: str
    title: str
    body: str
    tags: list[str]
    delay: timedelta
    zone: str
    enabled: bool
    since: datetime
    created_at: datetime
    accounts: list[str]
    posts: int
    account_ids: list[UUID]

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        data = {to_camel(name): value for name, value in asdict(self).items() if name != "delay"}
        return {**data, "delaySeconds": int(self.delay.total_seconds())}


ADD = query("rule_add", Row)
ADD_ACCOUNTS = query("rule_add_accounts", On)
LIST = query("rule_list", Rule)
ENABLE = query("rule_enable", Row)
DISABLE = query("rule_disable", Row)
REMOVE = query("rule_remove", Row)


async def add(
    database: Database,
    owner: str,
    series: UUID,
    accounts: Sequence[UUID],
    *,
    title: str,
    body: str,
    tags: Sequence[str] = (),
    delay: timedelta = timedelta(0),
    zone: str = "UTC",
) -> Rule:
    """Make a rule; its templates are looked at now, so that nothing can be wrong with them when a chapter comes."""
    _refuse(title, body, tags, delay)
    zone_of(zone)
    wanted = list(dict.fromkeys(accounts))
    if not wanted:
        raise Problem("rule.no_account", "Say on which accounts the posts go out.")
    async with database.transaction(owner, "a new rule") as connection:
        made = await ADD.first(connection, owner, series, title, body, list(tags), delay, zone)
        if made is None:
            raise Problem("series.missing", "There is no such series.")
        on = await ADD_ACCOUNTS.all(connection, made.id, wanted, owner)
        if len(on) < len(wanted):
            raise Problem("account.missing", "There is no such account.")
        _refuse_files(on)
        return await show(connection, owner, made.id)


async def listed(connection: Link, owner: str, series: UUID | None = None) -> list[Rule]:
    """Give the rules of a person, of one series or of all."""
    return await LIST.all(connection, owner, series)


async def show(connection: Link, owner: str, rule: UUID) -> Rule:
    """Give one rule."""
    found = next((each for each in await listed(connection, owner) if each.id == rule), None)
    if found is None:
        raise _missing()
    return found


async def find(connection: Link, owner: str, text: str) -> UUID:
    """Find a rule by its id or the first letters of it."""
    low, high = bounds(text)
    known = [each for each in await listed(connection, owner) if low <= each.id <= high]
    found = [Candidate(each.id, f"{each.title} of {each.series}", exact=low == high) for each in known]
    return picked(text, found, _missing())


async def enable(database: Database, owner: str, rule: UUID) -> None:
    """Turn a rule on again; what came out while it was off is not made up for."""
    async with database.transaction(owner, "the rule is on again") as connection:
        if await ENABLE.first(connection, rule, owner) is None:
            await show(connection, owner, rule)


async def disable(database: Database, owner: str, rule: UUID) -> None:
    """Turn a rule off; what it has scheduled stays scheduled."""
    async with database.transaction(owner, "the rule is off") as connection:
        if await DISABLE.first(connection, rule, owner) is None:
            await show(connection, owner, rule)


async def remove(database: Database, owner: str, rule: UUID) -> None:
    """Remove a rule; the posts it has made stay."""
    async with database.transaction(owner, "the rule is removed") as connection:
        if await REMOVE.first(connection, rule, owner) is None:
            raise _missing()


def _refuse(title: str, body: str, tags: Sequence[str], delay: timedelta) -> None:
    if not title.strip() or len(title) > LONGEST_TITLE:
        raise Problem("rule.bad_template", f"The title of a rule has 1 to {LONGEST_TITLE} letters.", field="title")
    if not body.strip() or len(body) > LONGEST_BODY:
        raise Problem("rule.bad_template", f"The body of a rule has 1 to {LONGEST_BODY} letters.", field="body")
    if len(tags) > MOST_TAGS or any(not tag.strip() or len(tag) > LONGEST_TAG for tag in tags):
        said = f"A rule has up to {MOST_TAGS} tags of 1 to {LONGEST_TAG} letters."
        raise Problem("rule.bad_template", said, field="tags")
    if not timedelta(0) <= delay <= LONGEST_DELAY:
        raise Problem("rule.bad_delay", f"The delay of a rule is 0 to {LONGEST_DELAY.days} days.")
    for field, template in (("title", title), ("body", body), *(("tags", tag) for tag in tags)):
        if "\0" in template or template != template.encode(errors="replace").decode():
            said = "A template contains a NUL character or an unpaired surrogate, which cannot be stored."
            raise Problem("rule.bad_template", said, field=field)
        refuse(template, FIELDS, field)


def _refuse_files(on: Sequence[On]) -> None:
    """Raise when a platform takes no post without a file: those of a rule are words."""
    for each in on:
        platform = PLATFORMS.get(each.platform)
        if platform is not None and platform.limits.least_files > 0:
            raise Problem(
                "rule.needs_file",
                f"{each.platform} takes no post without a file, and those of a rule have none; choose another account.",
            )


def _missing() -> Problem:
    return Problem("rule.missing", "There is no such rule.")
