"""Explaining on the command line: why a post did, or did not, go out."""

from typing import Annotated, TypeAlias
from uuid import UUID
from zoneinfo import ZoneInfo

import typer

from imprint.cli import session
from imprint.cli.dry_run import print_request
from imprint.cli.output import AsJson, print_json, print_table, say, short
from imprint.cli.zone import Zone, chosen, written
from imprint.problem import Problem
from imprint.settings import Settings
from imprint.store.db import Database
from imprint.work import explain as explains
from imprint.work.dry_run import Shape, sent
from imprint.work.explain import Explained, Told
from imprint.work.person import OPERATOR
from imprint.work.stores import open_stores
from imprint.work.story import Step
from imprint.work.vault import Vault

Sent: TypeAlias = "tuple[Shape, ...] | Problem"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(explain)


def explain(
    which: Annotated[
        str, typer.Argument(help="The id of a post or of a publication, or the first letters of it.", metavar="POST")
    ],
    *,
    requests: Annotated[bool, typer.Option("--requests", help="Show what was sent, too; secrets are hidden.")] = False,
    zone: Zone = None,
    as_json: AsJson = False,
) -> None:
    """Tell why a post did, or did not, go out.

    The whole story of each of its publications: who did what and when, what the platform said, what it waits for and
    why, and what happens next.
    """
    settings = session.begin()
    wall = chosen(settings, zone)
    told, sent = session.run(_explained(settings, which, requests=requests))
    if as_json:
        data = told.as_data()
        for each, of in zip(data["publications"], told.publications, strict=True):
            each["next"]["do"] = list(of.next.do)
            each.update({"requests": _as_data(sent[each["id"]])} if requests else {})
        print_json(written(data, wall))
        return
    say(f"{told.headline}\n({told.found.post})")
    _steps(f"\nThe post (times in {wall.key})", told.steps, wall)
    for each in told.publications:
        _tell(each, wall)
        if requests:
            _show(sent[each.standing.id])
    if not told.publications:
        say(f"\nNext: {told.next}")
        for command in told.do:
            say(f"  → {command}")


async def _explained(settings: Settings, which: str, *, requests: bool) -> tuple[Explained, dict[UUID, Sent]]:
    async with session.ready_database(settings) as database:
        async with database.connection() as connection:
            told = await explains.explain(connection, OPERATOR, which, late_hours=settings.late_hours)
        ids = [each.standing.id for each in told.publications] if requests else []
        return told, {each: await _sent(database, settings, each) for each in ids}


async def _sent(database: Database, settings: Settings, publication: UUID) -> Sent:
    try:
        return await sent(database, open_stores(settings), Vault.of(settings), publication)
    except Problem as problem:  # the account is removed, or bytes are gone: the rest can be told all the same
        return problem


def _as_data(sent: Sent) -> object:
    return {"error": sent.sentence} if isinstance(sent, Problem) else [each.as_data() for each in sent]


def _show(sent: Sent) -> None:
    if isinstance(sent, Problem):
        say(f"What was sent cannot be shown: {sent.sentence}")
        return
    say("The requests, as they were last made:" if sent else "No request was made.")
    for number, request in enumerate(sent, 1):
        print_request(number, request)


def _tell(told: Told, wall: ZoneInfo) -> None:
    of = told.standing
    file = f", file {of.file}" if of.file else ""
    _steps(f"\nOn {of.account} ({of.platform}{file}): {of.status}, publication {short(of.id)}", told.steps, wall)
    when = f" ({told.next.at.astimezone(wall):%Y-%m-%d %H:%M:%S})" if told.next.at and not told.next.over else ""
    say(f"Next: {told.next.sentence}{when}")
    for command in told.next.do:
        say(f"  → {command}")


def _steps(title: str, steps: list[Step], wall: ZoneInfo) -> None:
    rows = [(f"{step.at.astimezone(wall):%Y-%m-%d %H:%M:%S}", _words(step), step.who or "") for step in steps]
    print_table(title, ["when", "what happened", "who"], rows)


def _words(step: Step) -> str:
    return f"{step.sentence} ({step.evidence})" if step.evidence else step.sentence
