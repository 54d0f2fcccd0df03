"""Announce: makes the post of each new chapter that a rule asks for, exactly one for each chapter and rule.

The post, its publications and the line that says which chapter it is of are one transaction; a rule is kept for one of
them at a time. Whoever is killed leaves nothing, and the next delivery of the job makes what is missing.
"""

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from uuid import UUID

import structlog

from imprint.decisions.template import filled
from imprint.engine.queue import Job
from imprint.problem import Problem
from imprint.store.db import Database
from imprint.store.query import Link, Nothing, query
from imprint.work.post import APPROVE, CREATE
from imprint.work.post_fields import checked
from imprint.work.rule import LONGEST_TAG, LONGEST_TITLE
from imprint.work.schedule import plan_after

log = structlog.get_logger()

ATTEMPTS = 3


@dataclass(frozen=True)
class Waiting:
    """A chapter that a rule has not made a post of yet."""

    rule_id: UUID
    chapter_id: int


@dataclass(frozen=True)
class Taken:
    """A rule that is ours until the transaction ends."""

    owner: str
    title: str
    body: str
    tags: list[str]
    delay: timedelta
    zone: str
    accounts: list[UUID]


@dataclass(frozen=True)
class Chapter:
    """A chapter as a rule tells of it."""

    series: str
    kind: str
    slug: str
    number: Decimal | None
    number_end: Decimal | None
    title: str | None
    url: str | None

    def values(self) -> dict[str, str]:
        """Give what stands in the fields of a template; a chapter without a number or a title has its name there."""
        name = self.title or self.slug
        number = name if self.number is None else f"{self.number:f}"
        if self.number_end is not None:
            number += f"-{self.number_end:f}"
        return {"series": self.series, "number": number, "title": self.title or number, "url": self.url or ""}


WAITING = query("rule_waiting", Waiting)
TAKE = query("rule_take", Taken)
CHAPTER = query("rule_chapter", Chapter)
ANNOUNCED = query("rule_announced", Nothing)


async def announce(database: Database, job: Job) -> None:
    """Make the posts that the rules of a series ask for; what is wrong with one does not keep the others back."""
    async with database.connection() as connection:
        waiting = await WAITING.all(connection, UUID(job.key))
    problem: Problem | None = None
    for each in waiting:
        try:
            async with database.transaction("announce", f"a new chapter, by the rule {each.rule_id}") as connection:
                await _one(connection, each)
        except Problem as found:
            log.warning("a chapter was not announced", rule=str(each.rule_id), chapter=each.chapter_id, why=str(found))
            problem = problem or found
    if problem is not None:
        raise problem


async def _one(connection: Link, of: Waiting) -> None:
    rule = await TAKE.first(connection, of.rule_id)
    chapter = None if rule is None else await CHAPTER.first(connection, of.rule_id, of.chapter_id)
    if rule is None or chapter is None:
        return  # it was turned off, or somebody was faster
    values = chapter.values()
    title = " ".join(filled(rule.title, values).split())
    fields = checked(
        {
            "kind": "article",
            "title": title if len(title) <= LONGEST_TITLE else title[: LONGEST_TITLE - 1] + "…",
            "body": filled(rule.body, values),
            "tags": [tag for template in rule.tags if (tag := filled(template, values).strip()[:LONGEST_TAG])],
            "zone": rule.zone,
        }
    )
    post = await CREATE.one(connection, rule.owner, *fields.columns())
    await APPROVE.one(connection, post.id)
    await ANNOUNCED.run(connection, of.rule_id, of.chapter_id, post.id)
    if not rule.accounts:
        raise Problem("rule.no_account", "No account of this rule can be used; enable one, or remove the rule.")
    await plan_after(connection, rule.owner, post.id, rule.accounts, rule.delay, rule.zone)
