"""The fetcher: asks a source through the guard, each host at a pace that all workers share.

Parsers and the client are loaded when the first source is asked: most of the time a worker has none to ask.
"""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from imprint import __version__
from imprint.engine import pace
from imprint.settings import Settings
from imprint.sources.contract import Fetched, Place, Source, State
from imprint.store.db import Database

if TYPE_CHECKING:
    import httpx2

PATIENCE = timedelta(seconds=30)  # longer than this nobody stands in line for a host: the source comes back then
SLOWEST = timedelta(minutes=10)
EASE = 0.8
LONGEST_WAIT = timedelta(days=1)


class HostBusy(Exception):  # noqa: N818 - a state of affairs, not an error
    """A host wants to be left alone for longer than anybody stands in line."""

    def __init__(self, wait: timedelta) -> None:
        super().__init__(f"the host wants {wait} of peace")
        self.wait = wait


@dataclass
class Fetcher:
    """Asks sources; one in a process."""

    database: Database
    settings: Settings
    sources: dict[str, Source] = field(default_factory=dict)
    http: "dict[bool, httpx2.AsyncClient]" = field(default_factory=dict)

    async def fetch(self, kind: str, place: Place, state: State, since: datetime | None, *, trusted: bool) -> Fetched:
        """Ask a place for its chapters; raise a Failure, or HostBusy when its host is not to be asked now.

        The private hosts that are allowed are for those who look after the machine, and for the bases that they set;
        an address that somebody else gave does not lead there.
        """
        client = self._client(trusted=trusted or kind in self._bases)
        return await self.source(kind).fetch(client, place, state, since)

    def source(self, kind: str) -> Source:
        """Give the source of a kind, at the base that is set."""
        if kind not in self.sources:
            from imprint.sources.registry import source  # noqa: PLC0415 - see above

            self.sources[kind] = source(kind, self._bases.get(kind))
        return self.sources[kind]

    def policy(self, host: str) -> pace.Policy:
        """Give a host's own rate, or the one for any."""
        gap = timedelta(milliseconds=self.settings.fetch_gap_ms)
        own = [self.source(kind).gap for kind, base in self._bases.items() if urlsplit(base).hostname == host]
        return pace.Policy(min([gap, *own]), SLOWEST, EASE, LONGEST_WAIT)

    async def close(self) -> None:
        """Let go of every connection."""
        while self.http:
            await self.http.popitem()[1].aclose()

    @property
    def _bases(self) -> dict[str, str]:
        return {"mangadex": self.settings.mangadex_base, "mangapark": self.settings.mangapark_base}

    def _client(self, *, trusted: bool) -> "httpx2.AsyncClient":
        """Give the guarded client of those who are trusted, or of others, made when it is first needed."""
        if trusted not in self.http:
            from imprint.engine.guard import Bounds, Hosts, guarded  # noqa: PLC0415 - see above

            self.http[trusted] = guarded(
                self.settings.fetch_agent or f"Imprint/{__version__}",
                Hosts(frozenset(self.settings.allowed_hosts.replace(",", " ").split() if trusted else ())),
                Bounds(self.settings.fetch_largest_mb * 1024 * 1024, float(self.settings.fetch_seconds)),
                pace=self._moment,
            )
        return self.http[trusted]

    async def _moment(self, host: str) -> None:
        """Wait until a host may be asked."""
        async with self.database.connection() as connection:
            wait = await pace.take(connection, f"host:{host}", self.policy(host), PATIENCE)
        if wait > PATIENCE:
            raise HostBusy(wait)
        await asyncio.sleep(wait.total_seconds())
