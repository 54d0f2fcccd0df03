"""The commands about content: add, list, show, history, get, archive, delete, restore, retry-failed."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID, uuid4

import typer

from imprint.cli import session
from imprint.cli.output import AsJson, print_json, print_table, say
from imprint.cli.progress import progress
from imprint.engine.roster import WORKERS
from imprint.problem import Exit, Problem
from imprint.settings import Settings
from imprint.store.db import Database
from imprint.work import content as contents
from imprint.work import content_moves as moves
from imprint.work.add import add as add_file
from imprint.work.content import Bytes, Content, Line, Listed, Shown, camel
from imprint.work.content_moves import Outcome
from imprint.work.person import OPERATOR
from imprint.work.stores import Stores, open_stores
from imprint.work.upload import Confirmed

Which = Annotated[str, typer.Argument(help="The content's id, or the first letters of it.", metavar="ID")]


def register(app: typer.Typer) -> None:
    """Add the commands, under one name."""
    group = typer.Typer(help="Add files, look at them, get them back.", no_args_is_help=True, rich_markup_mode=None)
    for command in (add, show, history, get, archive, delete, restore):
        group.command()(command)
    group.command("list")(list_)
    group.command("retry-failed")(retry_failed)
    app.add_typer(group, name="content")


@dataclass(frozen=True)
class Added:
    """What became of one file."""

    file: str
    confirmed: Confirmed | None
    problem: Problem | None

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        if self.problem:
            return {"file": self.file, "code": self.problem.code, "error": self.problem.sentence}
        return {"file": self.file, **(camel(asdict(self.confirmed)) if self.confirmed else {})}


def add(
    files: Annotated[list[Path], typer.Argument(help="Images: JPEG, PNG, WebP, GIF, TIFF or AVIF.", metavar="FILE…")],
    *,
    as_json: AsJson = False,
) -> None:
    """Add files; their variants are made by the workers.

    A file whose upload was cut short is gone on with. Exits with 1 when a file could not be added.
    """
    settings = session.begin()
    added, alive = session.run(_add(settings, files, quiet=as_json))
    if as_json:
        print_json([each.as_data() for each in added])
    else:
        for each in added:
            if each.confirmed:
                say(f"{each.file}: added as {each.confirmed.file_id} ({each.confirmed.size:,} bytes, verified).")
            elif each.problem:
                say(f"{each.file}: not added. {each.problem.sentence}")
        if not alive and any(each.confirmed for each in added):
            say("No worker is alive: the variants are made as soon as `imprint up` runs.")
    if any(each.problem for each in added):
        raise typer.Exit(Exit.FAILED)


def list_(
    *,
    status: Annotated[str | None, typer.Option("--status", help="Only those in this state.", metavar="STATE")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10000, help="How many at most.", metavar="N")] = 100,
    as_json: AsJson = False,
) -> None:
    """List contents, the newest first."""
    settings = session.begin()
    found, counts = session.run(_list(settings, status, limit))
    if as_json:
        print_json({"contents": [camel(asdict(each)) for each in found], "counts": counts})
        return
    rows = [
        (str(c.id)[:8], c.name, c.status, c.error_code or "", _number(c.size), _edges(c.width, c.height)) for c in found
    ]
    print_table("Contents", ["id", "name", "state", "why", "bytes", "pixels"], rows)
    say("\n" + (", ".join(f"{count} {state}" for state, count in counts.items()) or "Nothing was added yet."))


def show(which: Which, *, as_json: AsJson = False) -> None:
    """Show one content and its variants."""
    settings = session.begin()
    shown = session.run(_show(settings, which))
    data = shown.as_data()
    if as_json:
        print_json(data)
        return
    content = shown.content
    say(f"{content.id}  {content.name}")
    say(f"  state     {content.status}{f' ({content.error_code})' if content.error_code else ''}")
    if content.deleted_at:
        gone = f"{content.purged_at:%Y-%m-%d}" if content.purged_at else f"from {content.purge_at:%Y-%m-%d}"
        say(f"  deleted   {content.deleted_at:%Y-%m-%d %H:%M}; its bytes are gone {gone}")
    say(f"  can go    {', '.join(move['to'] for move in data['moves']) or 'nowhere'}")
    for each in (each for each in shown.objects if each.variant is None):
        say(f"  original  {each.content_type or '?'}, {each.size or 0:,} bytes, {_edges(each.width, each.height)}")
        say(f"  SHA-256   {each.sha256 or 'not verified yet'}")
    rows = [
        (v.variant, v.recipe_version, v.status, v.error_code or "", _number(v.size), _edges(v.width, v.height))
        for v in shown.variants
    ]
    if rows:
        print_table("\nVariants", ["", "recipe", "state", "why", "bytes", "pixels"], rows)


def history(which: Which, *, as_json: AsJson = False) -> None:
    """Show everything that happened to a content."""
    settings = session.begin()
    lines = session.run(_history(settings, which))
    if as_json:
        print_json([camel(asdict(line)) for line in lines])
        return
    rows = [
        (
            f"{line.at:%Y-%m-%d %H:%M:%S.%f}"[:-3],
            line.lifecycle + (f" {line.variant}" if line.variant else ""),
            line.move,
            f"{line.source} → {line.target}" if line.source else line.target,
            line.actor,
            line.reason or "",
        )
        for line in lines
    ]
    print_table("History", ["when (UTC)", "of", "move", "", "who", "why"], rows)


def get(
    which: Which,
    *,
    variant: Annotated[
        str | None, typer.Option("--variant", help="thumbnail, preview or full, instead of the original.")
    ] = None,
    to: Annotated[Path | None, typer.Option("--to", help="The file to write; by default its name, here.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a content's bytes into a file.

    They are verified on the way; bytes that are not what they were are not written.
    """
    settings = session.begin()
    path, held = session.run(_get(settings, which, variant, to, force=force, quiet=as_json))
    if as_json:
        print_json({"file": str(path), "size": held.size, "sha256": held.sha256, "contentType": held.content_type})
    else:
        say(f"Wrote {path} ({held.size:,} bytes, verified).")


def archive(which: Which, *, as_json: AsJson = False) -> None:
    """Keep a content, and no longer work with it."""
    settings = session.begin()
    content = session.run(_archive(settings, which))
    _tell(content, f"Archived {content.name}.", as_json=as_json)


def delete(
    which: Which,
    *,
    force: Annotated[bool, typer.Option("--force", help="Also while its variants are being made.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete a content.

    Its bytes are kept for a while; until then `restore` brings it back.
    """
    settings = session.begin()
    content = session.run(_delete(settings, which, force=force))
    until = f"{content.purge_at:%Y-%m-%d}" if content.purge_at else "now"
    _tell(content, f"Deleted {content.name}; its bytes are kept until {until}.", as_json=as_json)


def restore(which: Which, *, as_json: AsJson = False) -> None:
    """Take a deletion back."""
    settings = session.begin()
    content = session.run(_restore(settings, which))
    _tell(content, f"{content.name} is back.", as_json=as_json)


def retry_failed(
    which: Annotated[
        list[str] | None, typer.Argument(help="Only these; else all that failed.", metavar="[ID…]")
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Try again what failed over its variants."""
    settings = session.begin()
    outcomes = session.run(_retry(settings, which or []))
    if as_json:
        print_json([camel(asdict(outcome)) for outcome in outcomes])
        return
    for outcome in outcomes:
        if not outcome.done:
            say(f"{outcome.id}: {outcome.sentence}")
    say(f"{sum(outcome.done for outcome in outcomes)} of {len(outcomes)} are tried again.")


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[tuple[Database, Stores]]:
    async with session.ready_database(settings) as database:
        yield database, open_stores(settings)


async def _add(settings: Settings, files: list[Path], *, quiet: bool) -> tuple[list[Added], bool]:
    added: list[Added] = []
    async with session.ready_database(settings, create=True) as database:
        stores = open_stores(settings)
        with progress(in_bytes=True, quiet=quiet) as bar:
            for file in files:
                task = bar.add_task(file.name, total=_length(file))
                try:
                    told = partial(bar.advance, task)
                    confirmed = await add_file(database, stores, settings, file, OPERATOR, told)
                    added.append(Added(str(file), confirmed, None))
                except Problem as problem:
                    if problem.exit is not Exit.FAILED:
                        raise  # the store is away or full: the next file would fare no better
                    added.append(Added(str(file), None, problem))
                bar.remove_task(task)
        async with database.connection() as connection:
            return added, any(worker.alive for worker in await WORKERS.all(connection))


async def _list(settings: Settings, status: str | None, limit: int) -> tuple[list[Listed], dict[str, int]]:
    async with session.ready_database(settings) as database, database.connection() as connection:
        return await contents.by_status(connection, status, limit=limit), await contents.counts(connection)


async def _show(settings: Settings, which: str) -> Shown:
    async with session.ready_database(settings) as database, database.connection() as connection:
        return await contents.show(connection, await contents.find(connection, which))


async def _history(settings: Settings, which: str) -> list[Line]:
    async with session.ready_database(settings) as database, database.connection() as connection:
        return await contents.history(connection, await contents.find(connection, which))


async def _get(
    settings: Settings, which: str, variant: str | None, to: Path | None, *, force: bool, quiet: bool
) -> tuple[Path, Bytes]:
    async with _opened(settings) as (database, stores):
        async with database.connection() as connection:
            content, held = await contents.bytes_of(connection, await contents.find(connection, which), variant)
        path = (to or Path(_filename(content, variant))).absolute()
        if path.exists() and not force:
            raise Problem("content.file_exists", f"{path} exists already; use --force to replace it.")
        with progress(in_bytes=True, quiet=quiet) as bar:
            task = bar.add_task(path.name, total=held.size)
            await _write(stores, held, path, partial(bar.advance, task))
        return path, held


async def _write(stores: Stores, held: Bytes, path: Path, advance: Callable[[int], None]) -> None:
    """Write beside it and rename: whoever reads the file sees all of it, verified, or none."""
    beside = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        with beside.open("xb") as file:
            async for chunk in contents.read(stores, held):
                await asyncio.to_thread(file.write, chunk)
                advance(len(chunk))
            file.flush()
            await asyncio.to_thread(os.fsync, file.fileno())
        beside.replace(path)
    except OSError as error:
        raise Problem("content.unwritable", f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


async def _archive(settings: Settings, which: str) -> Content:
    async with session.ready_database(settings) as database:
        content = await _id(database, which)
        await moves.archive(database, content, OPERATOR)
        async with database.connection() as connection:
            return (await contents.show(connection, content)).content


async def _delete(settings: Settings, which: str, *, force: bool) -> Content:
    async with session.ready_database(settings) as database:
        return await moves.delete(database, settings, await _id(database, which), OPERATOR, force=force)


async def _restore(settings: Settings, which: str) -> Content:
    async with session.ready_database(settings) as database:
        return await moves.restore(database, await _id(database, which), OPERATOR)


async def _retry(settings: Settings, which: list[str]) -> list[Outcome]:
    async with session.ready_database(settings) as database:
        if not which:
            return await moves.retry_failed(database, OPERATOR)
        chosen = [await _id(database, each) for each in which]
        return await moves.update_many(database, settings, chosen, "processing", OPERATOR)


async def _id(database: Database, which: str) -> UUID:
    async with database.connection() as connection:
        return await contents.find(connection, which)


def _tell(content: Content, sentence: str, *, as_json: bool) -> None:
    if as_json:
        print_json(camel(asdict(content)))
    else:
        say(sentence)


def _filename(content: Content, variant: str | None) -> str:
    return f"{Path(content.name).stem}-{variant}.webp" if variant else content.name


def _length(file: Path) -> int | None:
    try:
        return file.stat().st_size
    except OSError:
        return None


def _number(value: int | None) -> str:
    return f"{value:,}" if value else ""


def _edges(width: int | None, height: int | None) -> str:
    return f"{width} x {height}" if width and height else ""
