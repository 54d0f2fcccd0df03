"""A mismatch: content, objects, variants and bytes that do not agree; found for the doctor, mended by backfill."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from time import monotonic

from imprint.problem import Problem
from imprint.settings import Settings
from imprint.store.query import Link, query
from imprint.work.orphans import PARTS, STORES, Compared, compare
from imprint.work.stores import open_stores

# The doctor is asked while a person waits: a store that is larger than this allows is looked at in part.
BUDGET_SECONDS = 20.0


@dataclass(frozen=True)
class Mismatch:
    """One kind of disagreement, how many contents have it, and some of them."""

    what: str
    contents: int
    examples: list[str]


STATES = query("mismatch_states", Mismatch)
OBJECTS = query("mismatch_objects", Mismatch)
FAILED = query("mismatch_failed", Mismatch)


@dataclass
class Looked:
    """What a store and its rows do not agree about, in the parts that were looked at."""

    store: str
    objects: int
    parts: int = 0
    missing: int = 0
    wrong_size: int = 0
    orphans: int = 0
    orphan_bytes: int = 0
    problem: Problem | None = None
    examples: list[str] = field(default_factory=list)

    @property
    def share(self) -> str:
        """Say how much of the store was looked at."""
        return "all of it" if self.parts == len(PARTS) else f"{self.parts} of {len(PARTS)} parts"

    def add(self, compared: Compared) -> None:
        """Take the next part in."""
        self.parts += 1
        self.missing += len(compared.missing)
        self.wrong_size += len(compared.wrong_size)
        self.orphans += len(compared.orphans)
        self.orphan_bytes += sum(found.size for found in compared.orphans)
        self.examples += [str(row.content_id) for row in (*compared.missing, *compared.wrong_size)]
        del self.examples[3:]


async def states(connection: Link) -> list[Mismatch]:
    """Find what the three tables do not agree about."""
    return [*await STATES.all(connection), *await OBJECTS.all(connection)]


async def stored(connection: Link, settings: Settings) -> AsyncIterator[Looked]:
    """Compare every store with the rows that speak of it, for as long as a person has patience."""
    spoken_of = await STORES.all(connection)
    if not spoken_of:
        return
    stores, until = open_stores(settings), monotonic() + BUDGET_SECONDS
    for row in spoken_of:
        looked = Looked(row.store, row.objects)
        try:
            for part in PARTS:
                if monotonic() > until:
                    break
                looked.add(await compare(connection, stores, row.store, [part]))
        except Problem as problem:
            looked.problem = problem
        yield looked
