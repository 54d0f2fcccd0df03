"""The commands about posts: write them, give them files, and say when they go out."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated
from uuid import UUID
from zoneinfo import ZoneInfo

import typer

from imprint.cli import session
from imprint.cli.output import AsJson, print_json, print_table, say
from imprint.cli.zone import Zone, chosen, on_wall, written
from imprint.decisions.schedule import Every, Rule, parse
from imprint.lifecycles.publication import PublicationStatus
from imprint.problem import Exit, Problem
from imprint.settings import Settings
from imprint.store.db import Database
from imprint.work import account as accounts
from imprint.work import bulk, content
from imprint.work import post as posts
from imprint.work import schedule as schedules
from imprint.work.add import add
from imprint.work.attach import arrange as arrange_files
from imprint.work.attach import attach as attach_file
from imprint.work.attach import describe as describe_file
from imprint.work.attach import detach as detach_file
from imprint.work.outlook import WAITS
from imprint.work.post import Listed, Shown
from imprint.work.schedule import Changed, Target
from imprint.work.stores import open_stores

# Until there are people who sign in, whoever has the command line is the operator.
OPERATOR = "operator"

Which = Annotated[str, typer.Argument(help="The post's id, or the first letters of it.", metavar="POST")]
Several = Annotated[list[str], typer.Argument(help="Ids of posts, or the first letters of them.", metavar="POST…")]
At = Annotated[
    str, typer.Option("--at", help="When, such as 2030-05-01T18:00; with an offset or in the zone.", metavar="TIME")
]
OnAccounts = Annotated[
    list[str] | None, typer.Option("--account", help="Only on this account; may be repeated.", metavar="ACCOUNT")
]
Fields = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help='Another field, such as isMature=true or tags=["sea"]; may be repeated.',
        metavar="FIELD=VALUE",
    ),
]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="A tag; may be repeated.", metavar="TAG")]
Title = Annotated[str | None, typer.Option("--title", help="The title.", metavar="TEXT")]
Description = Annotated[str | None, typer.Option("--description", help="What it is.", metavar="TEXT")]
BodyFile = Annotated[
    Path | None, typer.Option("--body-file", help="The file with the body of an article.", metavar="FILE")
]


def register(app: typer.Typer) -> None:
    """Add the commands, under one name."""
    group = typer.Typer(help="Write posts and say when they go out.", no_args_is_help=True, rich_markup_mode=None)
    group.command()(create)
    group.command("list")(list_)
    for command in (show, edit, attach, detach, arrange, describe, ready, reopen, schedule, unschedule, reschedule):
        group.command()(command)
    for command in (publish, cancel, retry, duplicate, delete):
        group.command()(command)
    app.add_typer(group, name="post")


def create(
    *,
    title: Title = None,
    description: Description = None,
    article: Annotated[bool, typer.Option("--article", help="An article, which needs no file.")] = False,
    body_file: BodyFile = None,
    tags: Tags = None,
    fields: Fields = None,
    files: Annotated[
        list[str] | None,
        typer.Option("--file", help="A file, or the id of content; may be repeated.", metavar="FILE"),
    ] = None,
    zone: Zone = None,
    as_json: AsJson = False,
) -> None:
    """Write a post.

    It is in review until it is declared ready.
    """
    settings = session.begin()
    wall = chosen(settings, zone)
    given = _fields(title, description, body_file, tags, fields)
    given = {"zone": wall.key, **({"kind": "article"} if article else {}), **given}
    shown = session.run(_create(settings, given, files or []))
    _tell(shown, f"Wrote {shown.post.id}, in review.", wall, as_json=as_json)


def list_(
    *,
    status: Annotated[str | None, typer.Option("--status", help="Only those in this state.", metavar="STATE")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10000, help="How many at most.", metavar="N")] = 100,
    zone: Zone = None,
    as_json: AsJson = False,
) -> None:
    """List posts, the newest first."""
    settings = session.begin()
    wall = chosen(settings, zone)
    found, counts = session.run(_list(settings, status, limit))
    if as_json:
        print_json(written({"posts": [each.as_data() for each in found], "counts": counts}, wall))
        return
    rows = [(str(p.id)[:8], p.title, p.status, p.files, p.out or "", on_wall(p.next_at, wall)) for p in found]
    print_table("Posts", ["id", "title", "state", "files", "out", "next"], rows)
    say("\n" + (", ".join(f"{count} {state}" for state, count in counts.items()) or "Nothing was written yet."))


def show(which: Which, *, zone: Zone = None, as_json: AsJson = False) -> None:
    """Show one post, its files and where it goes."""
    settings = session.begin()
    shown = session.run(_show(settings, which))
    wall = chosen(settings, zone)
    if as_json:
        print_json(written(shown.as_data(), wall))
        return
    _describe(shown, wall)


def edit(
    which: Which,
    *,
    title: Title = None,
    description: Description = None,
    body_file: BodyFile = None,
    tags: Tags = None,
    fields: Fields = None,
    revision: Annotated[
        int | None, typer.Option("--revision", help="Only if this is still the revision.", metavar="N")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Change a post that has not left.

    What is not named stays as it is.
    """
    settings = session.begin()
    changes = _fields(title, description, body_file, tags, fields)
    shown = session.run(_edit(settings, which, changes, revision))
    _tell(shown, f"Changed {shown.post.id}.", chosen(settings, None), as_json=as_json)


def attach(
    which: Which,
    files: Annotated[list[str], typer.Argument(help="Files, or ids of content.", metavar="FILE…")],
    *,
    alt: Annotated[str, typer.Option("--alt", help="What can be seen, for those who cannot.", metavar="TEXT")] = "",
    as_json: AsJson = False,
) -> None:
    """Give a post files, in this order."""
    settings = session.begin()
    shown = session.run(_attach(settings, which, files, alt))
    _tell(shown, f"{len(shown.files)} files.", chosen(settings, None), as_json=as_json)


def detach(
    which: Which,
    file: Annotated[int, typer.Argument(min=1, help="Which file: 1 is the first.", metavar="NUMBER")],
    *,
    as_json: AsJson = False,
) -> None:
    """Take a file off a post."""
    settings = session.begin()
    shown = session.run(_on_file(settings, which, file, lambda d, p, f: detach_file(d, OPERATOR, p, f)))
    _tell(shown, f"{len(shown.files)} files.", chosen(settings, None), as_json=as_json)


def arrange(
    which: Which,
    order: Annotated[list[int], typer.Argument(min=1, help="The numbers of the files, as wanted.", metavar="NUMBER…")],
    *,
    as_json: AsJson = False,
) -> None:
    """Put the files of a post into another order.

    `imprint post arrange POST 3 1 2` puts the third one first.
    """
    settings = session.begin()
    shown = session.run(_arrange(settings, which, order))
    names = ", ".join(file.name for file in shown.files)
    _tell(shown, f"In this order: {names}.", chosen(settings, None), as_json=as_json)


def describe(
    which: Which,
    file: Annotated[int, typer.Argument(min=1, help="Which file: 1 is the first.", metavar="NUMBER")],
    alt: Annotated[str, typer.Argument(help="What can be seen.", metavar="TEXT")],
    *,
    as_json: AsJson = False,
) -> None:
    """Say what can be seen in a file."""
    settings = session.begin()
    shown = session.run(_on_file(settings, which, file, lambda d, p, f: describe_file(d, OPERATOR, p, f, alt)))
    _tell(shown, f"Described {shown.files[file - 1].name}.", chosen(settings, None), as_json=as_json)


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

    At least an hour and at most a year ahead. Each goes out up to five minutes later, as chance will have it.
    """
    settings = session.begin()
    wall = chosen(settings, zone)
    moment = parse(at, wall) if at else None
    if every and moment is None:
        raise Problem("schedule.no_time", "Say with --at when the first one goes out.")
    turns = _turns(several, moment, every, interval, wall) if every and moment else {}

    async def act(database: Database, post: UUID, which: str) -> list[Changed]:
        targets = await _targets(database, on or [], wall)
        limits = schedules.bounds(settings)
        when = turns.get(which, moment)
        return await schedules.schedule(database, limits, OPERATOR, post, when, zone=wall.key, targets=targets)

    _change(several, act, "scheduled", wall, as_json=as_json)


def reschedule(several: Several, *, at: At, on: OnAccounts = None, zone: Zone = None, as_json: AsJson = False) -> None:
    """Give what waits another time."""
    settings = session.begin()
    wall = chosen(settings, zone)
    moment = parse(at, wall)

    async def act(database: Database, post: UUID, _: str) -> list[Changed]:
        named = await _accounts(database, on)
        limits = schedules.bounds(settings)
        return await schedules.reschedule(database, limits, OPERATOR, post, moment, zone=wall.key, accounts=named)

    _change(several, act, "rescheduled", wall, as_json=as_json)


def unschedule(several: Several, *, on: OnAccounts = None, as_json: AsJson = False) -> None:
    """Cancel what waits."""
    _simple(several, schedules.unschedule, on, "unscheduled", as_json=as_json)


def publish(several: Several, *, on: OnAccounts = None, as_json: AsJson = False) -> None:
    """Let posts go out now."""
    _simple(several, schedules.publish_now, on, "goes out now", as_json=as_json)


def cancel(several: Several, *, on: OnAccounts = None, as_json: AsJson = False) -> None:
    """Stop what has not left, and let go of what failed."""
    _simple(several, schedules.cancel, on, "cancelled", as_json=as_json)


def retry(several: Several, *, on: OnAccounts = None, as_json: AsJson = False) -> None:
    """Try what failed once more."""
    _simple(several, schedules.retry, on, "tried again", as_json=as_json)


def duplicate(several: Several, *, as_json: AsJson = False) -> None:
    """Make other posts of the same words and files."""
    _each(several, lambda d, p: posts.duplicate(d, OPERATOR, p), "copied", as_json=as_json)


def delete(several: Several, *, as_json: AsJson = False) -> None:
    """Delete posts; what is out stays out."""
    settings = session.begin()

    async def act(database: Database, post: UUID, _: str) -> list[Changed]:
        return await schedules.delete(database, OPERATOR, post)

    _change(several, act, "deleted", chosen(settings, None), as_json=as_json)


async def _create(settings: Settings, given: Mapping[str, object], files: Sequence[str]) -> Shown:
    posts.checked(given)  # before any file is uploaded
    async with session.ready_database(settings, create=True) as database:
        contents = [await _content(database, settings, file) for file in files]
        made = await posts.create(database, OPERATOR, given)
        for each in contents:
            await attach_file(database, OPERATOR, made, each)
        return await _look(database, made)


async def _list(settings: Settings, status: str | None, limit: int) -> tuple[list[Listed], dict[str, int]]:
    async with session.ready_database(settings) as database, database.connection() as connection:
        found = await posts.listed(connection, OPERATOR, status=status, limit=limit)
        return found, await posts.counts(connection, OPERATOR)


async def _show(settings: Settings, which: str) -> Shown:
    async with session.ready_database(settings) as database:
        return await _look(database, await _id(database, which))


async def _edit(settings: Settings, which: str, changes: Mapping[str, object], revision: int | None) -> Shown:
    async with session.ready_database(settings) as database:
        return await posts.edit(database, OPERATOR, await _id(database, which), changes, revision=revision)


async def _attach(settings: Settings, which: str, files: Sequence[str], alt: str) -> Shown:
    async with session.ready_database(settings) as database:
        post = await _id(database, which)
        for file in files:
            await attach_file(database, OPERATOR, post, await _content(database, settings, file), alt)
        return await _look(database, post)


async def _on_file(
    settings: Settings, which: str, number: int, act: Callable[[Database, UUID, UUID], Awaitable[object]]
) -> Shown:
    async with session.ready_database(settings) as database:
        post = await _id(database, which)
        await act(database, post, _numbered(await _look(database, post), [number])[0])
        return await _look(database, post)


async def _arrange(settings: Settings, which: str, order: Sequence[int]) -> Shown:
    async with session.ready_database(settings) as database:
        post = await _id(database, which)
        await arrange_files(database, OPERATOR, post, _numbered(await _look(database, post), order))
        return await _look(database, post)


def _numbered(shown: Shown, numbers: Sequence[int]) -> list[UUID]:
    if any(number > len(shown.files) for number in numbers):
        raise Problem("post.no_such_file", f"This post has {len(shown.files)} files.")
    return [shown.files[number - 1].id for number in numbers]


async def _content(database: Database, settings: Settings, named: str) -> UUID:
    """Add a file of this machine, or find content by its id."""
    if Path(named).is_file():
        return (await add(database, open_stores(settings), settings, Path(named), OPERATOR)).file_id
    async with database.connection() as connection:
        return await content.find(connection, named)


async def _look(database: Database, post: UUID) -> Shown:
    async with database.connection() as connection:
        return await posts.show(connection, OPERATOR, post)


async def _id(database: Database, which: str) -> UUID:
    async with database.connection() as connection:
        return await posts.find(connection, OPERATOR, which)


async def _targets(database: Database, named: Sequence[str], zone: ZoneInfo) -> list[Target]:
    targets: list[Target] = []
    for each in named:
        name, _, time = each.rpartition("=") if "=" in each else (each, "", "")
        (account,) = await _accounts(database, [name])
        targets.append(Target(account, parse(time, zone) if time else None))
    return targets


async def _accounts(database: Database, named: Sequence[str] | None) -> list[UUID]:
    async with database.connection() as connection:
        return [await accounts.find(connection, OPERATOR, each) for each in named or []]


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
        return await act(database, OPERATOR, post, accounts=await _accounts(database, on))

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
    if any(each.problem for each in outcomes):
        raise typer.Exit(Exit.FAILED)


async def _one(
    database: Database, act: Callable[[Database, UUID, str], Awaitable[object]], which: str
) -> tuple[UUID, object]:
    post = await _id(database, which)
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


def _fields(
    title: str | None,
    description: str | None,
    body_file: Path | None,
    tags: Sequence[str] | None,
    fields: Sequence[str] | None,
) -> dict[str, object]:
    given: dict[str, object] = {}
    for each in fields or []:
        name, equals, text = each.partition("=")
        if not equals:
            raise Problem("post.invalid", f"{name}: write FIELD=VALUE.")
        try:
            given[name] = json.loads(text)
        except ValueError:
            given[name] = text  # a plain word needs no quotes
    named = {"title": title, "description": description, "tags": tags}
    given |= {name: value for name, value in named.items() if value is not None}
    if body_file is not None:
        try:
            given["body"] = body_file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise Problem("post.unreadable_body", f"{body_file} cannot be read as text.") from None
    return given


def _tell(shown: Shown, sentence: str, zone: ZoneInfo, *, as_json: bool) -> None:
    if as_json:
        print_json(written(shown.as_data(), zone))
    else:
        say(sentence)


def _describe(shown: Shown, zone: ZoneInfo) -> None:
    post = shown.post
    say(f"{post.id}  {post.title}")
    say(f"  state     {post.status}, since {on_wall(post.status_at, zone)}")
    for name, value in post.fields().items():
        if value not in (None, "", [], {}, False) and name != "title":
            say(f"  {name:<22} {value}")
    if shown.files:
        print_table(
            "\nFiles",
            ["", "name", "bytes", "", "description"],
            [(n, f.name, f.size or "", "" if f.confirmed else "not confirmed", f.alt) for n, f in _counted(shown)],
        )
    if shown.publications:
        places = {file.id: number for number, file in _counted(shown)}
        rows = [
            (
                p.label or p.name or p.platform,
                places.get(p.file_id, "") if p.file_id else "",
                p.status,
                on_wall(p.published_at or p.due_at, zone),
                p.attempts or "",
                p.url or p.remote_id or _waits(p) or p.error_code or "",
            )
            for p in shown.publications
        ]
        print_table("\nPublications", ["account", "file", "state", "when", "tries", ""], rows)


def _waits(publication: posts.Planned) -> str:
    """Say what a publication waits for, if there is anything besides its time."""
    if publication.status not in {PublicationStatus.PENDING, PublicationStatus.UNKNOWN}:
        return ""
    return WAITS.get(publication.held_why or "", publication.held_why or "")


def _counted(shown: Shown) -> list[tuple[int, posts.PostFile]]:
    return list(enumerate(shown.files, 1))
