"""Status: what waits, runs, is late or stuck, and who is at work."""

from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from imprint.engine.roster import WORKERS, Known
from imprint.store.incarnation import READ
from imprint.store.query import Link, query


@dataclass(frozen=True)
class Work:
    """One kind of work and where it stands."""

    kind: str
    waiting: int
    running: int
    late: int
    stuck: int


@dataclass(frozen=True)
class DeadLetters:
    """How many jobs of one kind are held after their last attempt."""

    entrypoint: str
    held: int


@dataclass(frozen=True)
class Unknown:
    """How many publications are unknown, how many of them ask a person, and how many alarms there were of a week."""

    unknown: int
    asking: int
    examples: list[UUID] | None
    duplicates: int
    doubled: list[UUID]


@dataclass(frozen=True)
class Failing:
    """How much has failed and waits for a person: publications of a week, and sources."""

    publications: int
    posts: list[UUID] | None
    sources: int


WORK = query("status_work", Work)
DEAD_LETTERS = query("status_dead_letters", DeadLetters)
UNKNOWN = query("status_unknown", Unknown)
FAILING = query("status_failing", Failing)


@dataclass(frozen=True)
class Status:
    """Everything at a glance."""

    work: list[Work]
    dead_letters: list[DeadLetters]
    unknown: Unknown
    failing: Failing
    workers: list[Known]
    held_why: str | None

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {
            "work": {row.kind: {k: v for k, v in asdict(row).items() if k != "kind"} for row in self.work},
            "deadLetters": {row.entrypoint: row.held for row in self.dead_letters},
            "unknown": self.unknown.unknown,
            "askingPerson": self.unknown.asking,
            "duplicates": self.unknown.duplicates,
            "failed": self.failing.publications,
            "failingSources": self.failing.sources,
            "workers": [
                {
                    "name": worker.name,
                    "version": worker.version,
                    "concurrency": worker.concurrency,
                    "startedAt": worker.started_at.isoformat(),
                    "seenAt": worker.seen_at.isoformat(),
                    "alive": worker.alive,
                }
                for worker in self.workers
            ],
            "sendsHeld": self.held_why,
        }


async def status(connection: Link) -> Status:
    """Look at everything once."""
    incarnation = await READ.first(connection)
    return Status(
        work=await WORK.all(connection),
        dead_letters=await DEAD_LETTERS.all(connection),
        unknown=await UNKNOWN.one(connection),
        failing=await FAILING.one(connection),
        workers=await WORKERS.all(connection),
        held_why=incarnation.held_why if incarnation else None,
    )
