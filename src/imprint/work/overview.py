"""An overview: how the things of one person stand, and what publishing has done for them; nothing of anybody else."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from imprint.store.query import Link, query
from imprint.work import collection
from imprint.work import post as posts
from imprint.work.figures import WHILE, Alarms, Attempts, Drift, Figures, Open
from imprint.work.naming import to_camel


@dataclass(frozen=True)
class Publications:
    """Where a person's publications stand, and when the next one goes."""

    waiting: int
    running: int
    late: int
    unknown: int
    asking: int
    failed: int
    out: int
    next_at: datetime | None

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {to_camel(name): value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Counted:
    """How many there are in a state."""

    status: str
    things: int


@dataclass(frozen=True)
class Sources:
    """How many sources a person has, and how many cannot be read."""

    sources: int
    failing: int


@dataclass(frozen=True)
class Overview:
    """Everything of one person at a glance."""

    posts: dict[str, int]
    content: dict[str, int]
    accounts: dict[str, int]
    publications: Publications
    sources: Sources

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {
            "posts": self.posts,
            "content": self.content,
            "accounts": self.accounts,
            "publications": self.publications.as_data(),
            "sources": self.sources.sources,
            "failingSources": self.sources.failing,
        }


PUBLICATIONS = query("overview_publications", Publications)
ACCOUNTS = query("overview_accounts", Counted)
SOURCES = query("overview_sources", Sources)
ATTEMPTS = query("overview_attempts", Attempts)
DRIFT = query("overview_drift", Drift)
ALARMS = query("overview_alarms", Alarms)


async def overview(connection: Link, owner: str) -> Overview:
    """Look at everything of a person once."""
    return Overview(
        await posts.counts(connection, owner),
        await collection.counts(connection, owner),
        {each.status: each.things for each in await ACCOUNTS.all(connection, owner)},
        await PUBLICATIONS.one(connection, owner),
        await SOURCES.one(connection, owner),
    )


async def figures(connection: Link, owner: str) -> Figures:
    """Count what publishing has done for a person."""
    stands = await PUBLICATIONS.one(connection, owner)
    known = {"pending": stands.waiting, "running": stands.running, "unknown": stands.unknown}
    return Figures(
        await ATTEMPTS.all(connection, owner),
        await DRIFT.one(connection, WHILE, owner),
        [Open(status, count) for status, count in known.items() if count],
        (await ALARMS.one(connection, owner)).publications,
    )
