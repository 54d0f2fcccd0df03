"""The commands that let posts go on: ready, scheduled, out, cancelled, tried again, copied, deleted; one or many."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated
from uuid import UUID
from zoneinfo import ZoneInfo

import typer

from imprint.cli import session
from imprint.cli.consent import Yes, consent
from imprint.cli.named import OnAccounts, Several, accounts_named, post_named
from imprint.cli.output import AsJson, print_json, say
from imprint.cli.zone import Zone, chosen, on_wall, written
from imprint.decisions.schedule import Every, Rule, parse
from imprint.problem import Exit, Problem
from imprint.store.db import Database
from imprint.work import bulk
from imprint.work import post as posts
from imprint.work import schedule as schedules
from imprint.work.fitting import Fitting
from imprint.work.outlook import span
from imprint.work.person import OPERATOR
from imprint.work.schedule import Changed, Target
from imprint.work.vault import Vault

At = Annotated[
    str, typer.Option("--at", help="When, such as 2030-05-01T18:00; with an offset or in the zone.", metavar="TIME")
]


def ready(several: Several, *, as_json: AsJson = False) -> None:
    """Declare posts ready."""
    _each(several, lambda d, p: posts.ready(d, OPERATOR, p), "ready", as_json=as_json)


def reopen(several: Several, *, as_json: AsJson = False) -> None:
    """Take posts back: a draft into review, what failed as a draft."""
    _each(several, lambda d, p: posts.reopen(d, OPERATOR, p), "taken back", as_json=as_json)


def schedule(
    several: Several,
    *,
    at: Annotated[
        str | None,
        typer.Option("--at", help="When, such as 2030-05-01T18:00; with an offset or in the zone.", metavar="TIME"),
    ] = None,
    on: Annotated[
        list[str] | None,
        typer.Option(
            "--account", help="On this account, or ACCOUNT=TIME; the default one if none.", metavar="ACCOUNT[=TIME]"
        ),
    ] = None,
    every: Annotated[
        Every | None, typer.Option("--every", help="Several posts in turn, one every day, week or month.")
    ] = None,
    interval: Annotated[int, typer.Option(min=1, help="Every so many days, weeks or months.", metavar="N")] = 1,
    zone: Zone = None,
    as_json: AsJson = False,
) -> None:
    """Say when posts go out, and where.

    At least an hour and at most a year ahead. Each goes out up to five minutes later, as chance will have it;
    IMPRINT_SCHEDULE_JITTER_SECONDS=0 ends that.
    """
    settings = session.begin()
    wall = chosen(settings, zone)
    moment = parse(at, wall) if at else None
    if every and moment is None:
        raise Problem("schedule.no_time", "Say with --at when the first one goes out.")
    turns = _turns(several, moment, every, interval, wall) if every and moment else {}
    fitting = Fitting(Vault.of(settings))

    async def act(database: Database, post: UUID, which: str) -> list[Changed]:
        targets = await _targets(database, on or [], wall)
        limits = schedules.bounds(settings)
        when = turns.get(which, moment)
        return await schedules.schedule(
            database, limits, OPERATOR, post, when, zone=wall.key, targets=targets, fitting=fitting
        )

    _change(several, act, "scheduled", wall, as_json=as_json)


def reschedule(several: Several, *, at: At, on: OnAccounts = None, zone: Zone = None, as_json: AsJson = False) -> None:
    """Give what waits another time."""
    settings = session.begin()
    wall = chosen(settings, zone)
    moment = parse(at, wall)

    async def act(database: Database, post: UUID, _: str) -> list[Changed]:
        named = await accounts_named(database, on)
        limits = schedules.bounds(settings)
        return await schedules.reschedule(database, limits, OPERATOR, post, moment, zone=wall.key, accounts=named)

    _change(several, act, "rescheduled", wall, as_json=as_json)


def unschedule(several: Several, *, on: OnAccounts = None, as_json: AsJson = False) -> None:
    """Cancel what waits."""
    _simple(several, schedules.unschedule, on, "unscheduled", as_json=as_json)


def publish(several: Several, *, on: OnAccounts = None, as_json: AsJson = False) -> None:
    """Let posts go out now."""
    act = partial(schedules.publish_now, fitting=Fitting(Vault.of(session.begin())))
    _simple(several, act, on, "goes out now", as_json=as_json)


def cancel(several: Several, *, on: OnAccounts = None, as_json: AsJson = False) -> None:
    """Stop what has not left, and let go of what failed."""
    _simple(several, schedules.cancel, on, "cancelled", as_json=as_json)


def retry(several: Several, *, on: OnAccounts = None, as_json: AsJson = False) -> None:
    """Try what failed once more."""
    _simple(several, schedules.retry, on, "tried again", as_json=as_json)


def duplicate(several: Several, *, as_json: AsJson = False) -> None:
    """Make other posts of the same words and files."""
    _each(several, lambda d, p: posts.duplicate(d, OPERATOR, p), "copied", as_json=as_json)


def delete(several: Several, *, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete posts; what is out stays out."""
    settings = session.begin()
    consent(f"Delete {', '.join(several)}, and cancel what waits of it?", yes=yes)

    async def act(database: Database, post: UUID, _: str) -> list[Changed]:
        return await schedules.delete(database, OPERATOR, post)

    _change(several, act, "deleted", chosen(settings, None), as_json=as_json)


async def _targets(database: Database, named: Sequence[str], zone: ZoneInfo) -> list[Target]:
    targets: list[Target] = []
    for each in named:
        name, _, time = each.rpartition("=") if "=" in each else (each, "", "")
        (account,) = await accounts_named(database, [name])
        targets.append(Target(account, parse(time, zone) if time else None))
    return targets


def _turns(
    several: Sequence[str], first: datetime, every: Every, interval: int, zone: ZoneInfo
) -> Mapping[str, datetime]:
    wall = first.astimezone(zone).replace(tzinfo=None)
    rule = Rule(every, wall.date(), wall.time(), interval)
    return schedules.in_turn(rule, zone.key, first - timedelta(microseconds=1), list(dict.fromkeys(several)))


def _simple(
    several: Sequence[str],
    act: Callable[..., Awaitable[list[Changed]]],
    on: Sequence[str] | None,
    done: str,
    *,
    as_json: bool,
) -> None:
    settings = session.begin()

    async def one(database: Database, post: UUID, _: str) -> list[Changed]:
        return await act(database, OPERATOR, post, accounts=await accounts_named(database, on))

    _change(several, one, done, chosen(settings, None), as_json=as_json)


def _each(
    several: Sequence[str], act: Callable[[Database, UUID], Awaitable[object]], done: str, *, as_json: bool
) -> None:
    settings = session.begin()

    async def one(database: Database, post: UUID, _: str) -> object:
        return await act(database, post)

    _change(several, one, done, chosen(settings, None), as_json=as_json)


def _change(
    several: Sequence[str],
    act: Callable[[Database, UUID, str], Awaitable[object]],
    done: str,
    zone: ZoneInfo,
    *,
    as_json: bool,
) -> None:
    """Do it for each post and report on each; a problem with the only one is the command's own."""
    settings = session.begin()

    async def work() -> list[bulk.Outcome[str, tuple[UUID, object]]]:
        async with session.ready_database(settings) as database:
            return await bulk.each(several, partial(_one, database, act))

    outcomes = session.run(work())
    if len(outcomes) == 1 and outcomes[0].problem:
        raise outcomes[0].problem
    if as_json:
        print_json([written(_outcome(each), zone) for each in outcomes])
    else:
        for each in outcomes:
            say(f"{each.id}: {each.problem.sentence if each.problem else _result(each.result, done, zone)}")
        if done == "scheduled" and settings.schedule_jitter_seconds and any(not each.problem for each in outcomes):
            most = span(timedelta(seconds=settings.schedule_jitter_seconds))
            say(f"That is your time and up to {most} more, by chance; IMPRINT_SCHEDULE_JITTER_SECONDS=0 ends that.")
    if any(each.problem for each in outcomes):
        raise typer.Exit(Exit.FAILED)


async def _one(
    database: Database, act: Callable[[Database, UUID, str], Awaitable[object]], which: str
) -> tuple[UUID, object]:
    post = await post_named(database, which)
    return post, await act(database, post, which)


def _outcome(outcome: bulk.Outcome[str, tuple[UUID, object]]) -> dict[str, object]:
    if outcome.result is None:
        return outcome.as_data()
    post, result = outcome.result
    changed = [each.as_data() for each in result] if isinstance(result, list) else result
    return {**outcome.as_data(changed), "id": post}


def _result(result: tuple[UUID, object] | None, done: str, zone: ZoneInfo) -> str:
    changed = result[1] if result else None
    if isinstance(changed, UUID):
        return f"{done} as {changed}."
    if isinstance(changed, list) and changed and done in {"scheduled", "rescheduled"}:
        times = ", ".join(sorted({on_wall(each.due_at, zone) for each in changed}))
        return f"{done} for {times}."
    return f"{done}."


# In the order in which help lists them.
COMMANDS = (ready, reopen, schedule, unschedule, reschedule, publish, cancel, retry, duplicate, delete)
