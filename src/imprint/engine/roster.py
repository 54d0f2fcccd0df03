"""The roster: who is at work. Without the work itself, which weighs, for those who only want to know."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from imprint.store.query import query


@dataclass(frozen=True)
class Known:
    """A worker that has not said goodbye."""

    id: UUID
    name: str
    version: str
    concurrency: int
    started_at: datetime
    seen_at: datetime
    alive: bool


WORKERS = query("worker_all", Known)
