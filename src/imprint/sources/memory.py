"""The in-memory twin of every source: it keeps the contract without a server, for tests of whoever calls sources."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar

import httpx2

from imprint.sources.contract import NO_STATE, Chapter, Failure, Fetched, Gone, Place, State, Wish


@dataclass
class Shelf:
    """What stands at one place; `revision` grows with each change."""

    chapters: dict[str, Chapter] = field(default_factory=dict)
    revision: int = 1

    def put(self, chapter: Chapter) -> None:
        """Add a chapter or change one."""
        self.chapters[chapter.id] = chapter
        self.revision += 1

    def remove(self, own: str) -> None:
        """Take a chapter away."""
        self.chapters.pop(own, None)
        self.revision += 1


class MemorySource:
    """Gives what stands on its shelves, or the next failure it was told to."""

    name: ClassVar[str] = "memory"
    gap: ClassVar[timedelta] = timedelta(0)
    conditional: ClassVar[bool] = True

    def __init__(self) -> None:
        self.shelves: dict[str, Shelf] = {}
        self.failures: list[Failure] = []
        self.wish = Wish()

    async def fetch(
        self,
        http: httpx2.AsyncClient,  # noqa: ARG002 - there is no server
        place: Place,
        state: State = NO_STATE,
        since: datetime | None = None,
    ) -> Fetched:
        """Give the shelf of a place."""
        if self.failures:
            raise self.failures.pop(0)
        if (shelf := self.shelves.get(place.ref)) is None:
            raise Gone("source.gone", "There is no such shelf.")
        now = State(etag=f'"{shelf.revision}"')
        if state.etag == now.etag:
            return Fetched(state=now, wish=self.wish, not_modified=True)
        found = [
            each
            for each in shelf.chapters.values()
            if (not place.languages or each.language in place.languages)
            and (since is None or each.updated_at is None or each.updated_at >= since)
        ]
        return Fetched(tuple(found), now, self.wish, whole=since is None)
