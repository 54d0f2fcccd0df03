"""The audit: read it, seal it, and find out whether anybody has touched it.

Each line holds the hash of itself and of the line before it of the same row; each seal the hash of all lines up to a
number and of the seal before it. What is checked is computed here and not in the database, which may have been taught
to lie.
"""

import json
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any
from uuid import UUID

from imprint.store.db import Database
from imprint.store.query import Link, Nothing, query
from imprint.work.naming import to_camel

PAGE = 5000
MOST_FINDINGS = 1000
_NOBODY = UUID(int=0)
_NEWEST = 2**63 - 1


@dataclass(frozen=True)
class Line:
    """One line: what moved, from where to where, when, by whom and why."""

    id: int
    at: datetime
    lifecycle: str
    row_id: UUID
    move: str
    source: str | None
    target: str
    actor: str
    reason: str | None

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {to_camel(name): value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Chained:
    """One line with its hash, its time in the letters that were hashed."""

    id: int
    epoch: str
    lifecycle: str
    row_id: UUID
    move: str
    source: str | None
    target: str
    actor: str
    reason: str | None
    sha256: bytes

    def expected(self, earlier: bytes) -> bytes:
        """Give the hash it must have after the line before it."""
        fields = (self.id, self.epoch, self.lifecycle, str(self.row_id), self.move)
        text = json.dumps([*fields, self.source, self.target, self.actor, self.reason], ensure_ascii=False)
        return sha256(earlier + text.encode()).digest()


@dataclass(frozen=True)
class Numbered:
    """A line's number and hash."""

    id: int
    sha256: bytes


@dataclass(frozen=True)
class Seal:
    """A seal: every line up to a number."""

    number: int
    upto: int
    lines: int
    sha256: bytes


@dataclass(frozen=True)
class Open:
    """A seal that is being made."""

    number: int
    upto: int
    ready: bool
    old: bool


@dataclass(frozen=True)
class Made:
    """A seal that was begun or is whole."""

    number: int


@dataclass(frozen=True)
class Turn:
    """Whether it is one's turn."""

    mine: bool


@dataclass(frozen=True)
class Disagreement:
    """A row that is not where the last line about it says."""

    lifecycle: str
    row_id: UUID
    status: str
    told: str | None


LIST = query("audit_list", Line)
CHAINED = query("audit_chained", Chained)
NUMBERED = query("audit_numbered", Numbered)
DISAGREE = query("audit_disagree", Disagreement)
TURN = query("audit_turn", Turn)
SEALS = query("audit_seals", Seal)
LAST = query("audit_last_seal", Seal)
OPEN = query("audit_seal_open", Open)
BEGIN = query("audit_seal_begin", Made)
ANEW = query("audit_seal_anew", Nothing)
END = query("audit_seal_end", Made)


@dataclass(frozen=True)
class Verified:
    """What was found: nothing, or every place that somebody has touched."""

    lines: int
    seals: int
    newest: str | None
    findings: list[str]


async def listed(
    connection: Link, *, row: UUID | None = None, before: int | None = None, limit: int = 100
) -> list[Line]:
    """Give lines of the audit, the newest first."""
    return await LIST.all(connection, _NEWEST if before is None else before, row, limit)


async def seal(database: Database) -> None:
    """Make the seal whole that is being made, if its time has come, and begin the next one."""
    async with database.transaction("audit", "sealed") as connection:
        if not (await TURN.one(connection)).mine:
            return
        last = await LAST.first(connection)
        begun = await OPEN.first(connection)
        if begun is not None and not begun.ready:
            if begun.old:
                await ANEW.run(connection, begun.number)
            return
        if begun is not None:
            lines, digest = await _digest(connection, last, begun.upto)
            await END.one(connection, begun.number, lines, digest)
            last = Seal(begun.number, begun.upto, lines, digest)
        await BEGIN.first(connection, last.number + 1 if last else 1, last.upto if last else 0)


async def verify(connection: Link) -> Verified:
    """Check every line, every seal, and every row against its last line."""
    findings: list[str] = []
    count = 0
    earlier: Chained | None = None
    async for line in _chained(connection):
        count += 1
        before = earlier.sha256 if earlier and earlier.row_id == line.row_id else b""
        if line.sha256 != line.expected(before):
            findings.append(f"Line {line.id}, about {line.lifecycle} {line.row_id}, or the one before it was changed.")
        earlier = line
    seals = await SEALS.all(connection)
    last: Seal | None = None
    for each in seals:
        if each.number != (last.number + 1 if last else 1):
            findings.append(f"A seal is missing before seal {each.number}.")
        lines, digest = await _digest(connection, last, each.upto)
        if (lines, digest) != (each.lines, each.sha256):
            since = last.upto + 1 if last else 1
            findings.append(
                f"Of the lines {since} to {each.upto} some were removed, added or changed (seal {each.number})."
            )
        last = each
    findings += [
        f"The {each.lifecycle} {each.row_id} is {each.status}, and its last line says {each.told or 'nothing'}."
        for each in await DISAGREE.all(connection, MOST_FINDINGS)
    ]
    newest = f"{last.number}:{last.sha256.hex()}" if last else None
    return Verified(count, len(seals), newest, findings[:MOST_FINDINGS])


async def _chained(connection: Link) -> AsyncIterator[Chained]:
    row, number = _NOBODY, 0
    while page := await CHAINED.all(connection, row, number, PAGE):
        for line in page:
            yield line
        row, number = page[-1].row_id, page[-1].id


async def _digest(connection: Link, last: Seal | None, upto: int) -> tuple[int, bytes]:
    digest, lines = sha256(last.sha256 if last else b""), 0
    after = last.upto if last else 0
    while page := await NUMBERED.all(connection, after, upto, PAGE):
        for line in page:
            digest.update(f"{line.id} {line.sha256.hex()}\n".encode())
        lines += len(page)
        after = page[-1].id
    return lines, digest.digest()
