"""The commands that look after the database: migrate, backup, restore, status, doctor, incarnation."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from imprint.cli import session
from imprint.cli.output import AsJson, print_json, print_table, say
from imprint.problem import Exit
from imprint.settings import Settings
from imprint.store import backup as backups
from imprint.store import incarnation as incarnations
from imprint.store.db import connect, reached
from imprint.store.migrate import Migration, pending
from imprint.store.solitude import alone_in
from imprint.work.doctor import Finding, Level, examine
from imprint.work.status import Status
from imprint.work.status import status as look

SIGNS = {Level.OK: "ok", Level.WARN: "look", Level.BAD: "BAD"}


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (migrate, backup, restore, incarnation, status, doctor):
        app.command()(command)


def migrate(
    *,
    check: Annotated[bool, typer.Option("--check", help="Change nothing; exit 7 when something is missing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Bring the database up to date.

    An embedded one is backed up first.
    """
    settings = session.begin()
    steps = session.run(_migrate(settings, check=check))
    if as_json:
        print_json(
            {"checked" if check else "applied": [step.name for step in steps], "upToDate": not steps or not check}
        )
    elif check:
        say("The database is up to date." if not steps else f"Not applied yet: {_names(steps)}.")
    else:
        say("The database was up to date." if not steps else f"Applied: {_names(steps)}.")
    if check and steps:
        raise typer.Exit(Exit.ATTENTION)


def backup(
    file: Annotated[Path, typer.Argument(help="Where to write it.")],
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the whole database into one file.

    Imprint may go on meanwhile.
    """
    settings = session.begin()
    size = session.run(_backup(settings, file, replace=force))
    if as_json:
        print_json({"file": str(file), "bytes": size})
    else:
        say(f"Wrote {file} ({size:,} bytes).")


def restore(
    file: Annotated[Path, typer.Argument(help="A file written by `imprint backup`.")], *, as_json: AsJson = False
) -> None:
    """Replace the database by a backup.

    What was there before is backed up first. Every send is held until you have looked.
    """
    settings = session.begin()
    with alone_in(settings.home, "imprint restore"):
        saved = session.run(_restore(settings, file))
    if as_json:
        print_json({"restored": str(file), "saved": str(saved) if saved else None, "sendsHeld": True})
        return
    say(f"Restored {file}." + (f" What was there before is in {saved}." if saved else ""))
    say("Every send is held. Check what has been sent since the backup, then run: imprint incarnation --accept")


def incarnation(
    *,
    accept: Annotated[bool, typer.Option("--accept", help="Go on sending with this database.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show whether sends are held, or go on sending.

    A database that was restored or copied may not know what has been sent.
    """
    settings = session.begin()
    found = session.run(_incarnation(settings, accept=accept))
    if as_json:
        print_json({"id": str(found.id), "generation": found.generation, "sendsHeld": found.held_why})
    else:
        say(f"Database {found.id}, generation {found.generation}.")
        go_on = "Sends go on." if accept else "Nothing is held."
        say(f"Every send is held: {found.held_why}." if found.held_why else go_on)


def status(*, as_json: AsJson = False) -> None:
    """Show what waits, runs, is late or stuck."""
    settings = session.begin()
    seen = session.run(_status(settings))
    if as_json:
        print_json(seen.as_data())
        return
    print_table(
        "Work",
        ["", "waiting", "running", "late", "stuck"],
        [(w.kind, w.waiting, w.running, w.late, w.stuck) for w in seen.work],
    )
    if any(worker.alive for worker in seen.workers):
        rows = [
            (w.name, "alive" if w.alive else "silent", w.concurrency, f"{w.started_at:%Y-%m-%d %H:%M}")
            for w in seen.workers
        ]
        print_table("\nWorkers", ["", "", "jobs at once", "since (UTC)"], rows)
    else:
        say("\nNo worker is alive: run `imprint up`.")
    for letters in seen.dead_letters:
        say(f"{letters.held} dead letters of {letters.entrypoint}.")
    if seen.failing.publications:
        say(f"{seen.failing.publications} publications have failed within a week: imprint doctor names them.")
    if seen.failing.sources:
        say(f"{seen.failing.sources} sources cannot be read: imprint source list says why.")
    if seen.unknown.asking:
        say(f"{seen.unknown.asking} publications wait for you to say whether they are out: imprint doctor names them.")
    if seen.unknown.duplicates:
        say(f"{seen.unknown.duplicates} publications were accepted twice within a week: imprint doctor names them.")
    if seen.held_why:
        say(f"Every send is held: {seen.held_why}. When you have looked: imprint incarnation --accept")


def doctor(*, as_json: AsJson = False) -> None:
    """Look for what is wrong, and say what to do.

    Exits with 7 when something is bad.
    """
    settings = session.begin()
    findings = session.run(_doctor(settings))
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            say(f"{SIGNS[finding.level]:<5} {finding.subject:<12} {finding.seen}")
            if finding.do:
                say(f"{'':<18} → {finding.do}")
    if any(finding.level is Level.BAD for finding in findings):
        raise typer.Exit(Exit.ATTENTION)


async def _migrate(settings: Settings, *, check: bool) -> tuple[Migration, ...]:
    if check:
        session.expect_database(settings)
    async with reached(settings) as url:
        if not check:
            return await session.migrated(settings, url)
        connection = await connect(url)
        try:
            return await pending(connection)
        finally:
            await connection.close()


async def _backup(settings: Settings, file: Path, *, replace: bool) -> int:
    async with session.ready_database(settings) as database:
        written = await backups.back_up(database.url, file, replace=replace)
        backups.note(settings.home)
        return written


async def _restore(settings: Settings, file: Path) -> Path | None:
    async with reached(settings) as url:
        if settings.database_url is not None:
            saved = None
            await backups.restore_into(url, file)
        else:
            saved = await backups.restore_beside(url, file, settings.home / "backups", keep=settings.keep_backups)
        await session.migrated(settings, url)
    return saved


async def _incarnation(settings: Settings, *, accept: bool) -> incarnations.Incarnation:
    async with session.ready_database(settings) as database, database.connection() as connection:
        if accept:
            return await incarnations.accept(connection, settings.home)
        await incarnations.BEGIN.run(connection)
        return await incarnations.look(connection, settings.home, embedded=settings.database_url is None)


async def _status(settings: Settings) -> Status:
    async with session.ready_database(settings) as database, database.connection() as connection:
        return await look(connection)


async def _doctor(settings: Settings) -> list[Finding]:
    session.expect_database(settings)
    async with reached(settings) as url:
        return await examine(settings, url)


def _names(steps: tuple[Migration, ...]) -> str:
    return ", ".join(step.name for step in steps)
