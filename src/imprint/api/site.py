"""The site: what every route needs, and who asks."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request

from imprint.blobs.signing import LocalUploads
from imprint.engine.courier import Courier
from imprint.engine.wire import Wire, outside
from imprint.problem import Problem
from imprint.settings import Settings
from imprint.store.db import Database
from imprint.store.wall import Wall
from imprint.work.caller import Caller
from imprint.work.live import Live
from imprint.work.sandbox_account import Sandbox
from imprint.work.scope import Role, Scope
from imprint.work.stores import UPLOADS_PATH, Stores, open_stores
from imprint.work.target import courier
from imprint.work.vault import Vault

COURIERS = 2
OFFICE = "system"  # of those who look after the machine
Value = TypeVar("Value")
_HOST = re.compile(r"([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?")


class _once(cached_property[Value]):  # noqa: N801 - it stands where cached_property does
    """A property that is made once for everybody, however many see the site behind walls of their own."""

    def __get__(self, site: Any, kind: Any = None) -> Any:
        """Give what the whole site has."""
        return super().__get__(site if site is None or site.whole is None else site.whole, kind)


@dataclass(frozen=True)
class Site:
    """Everything a route works with; the database is at the door until somebody is known, then behind their wall."""

    database: Database
    settings: Settings
    sandbox: Sandbox | None = None
    whole: "Site | None" = None

    def behind(self, wall: Wall) -> "Site":
        """Give the site as somebody sees it: the one way to a connection that asks for a caller."""
        return replace(self, database=self.database.behind(wall), whole=self.whole or self)

    def machine(self) -> Database:
        """Give the database as the machine sees it, to who looks after the machine: their wall says whether they do."""
        wall = self.database.wall
        if wall is None or wall.office != OFFICE:
            raise Problem("scope.lacking", f"This needs {Scope.SYSTEM_READ}, which you do not have.")
        return self.database.whole()

    @_once
    def stores(self) -> Stores:
        """Where bytes live."""
        return open_stores(self.settings)

    @_once
    def vault(self) -> Vault:
        """Where sign-ins are kept."""
        return Vault.of(self.settings)

    @_once
    def _couriers(self) -> asyncio.Semaphore:
        return asyncio.Semaphore(COURIERS)

    @asynccontextmanager
    async def courier(self) -> AsyncIterator[Courier]:
        """Give a courier for a moment: each is a process that weighs, so there are few."""
        async with self._couriers:
            hired = courier(self.settings)
            try:
                yield hired
            finally:
                await hired.close()

    @_once
    def live(self) -> Live:
        """Tells those who watch what changes."""
        return Live(self.database.whole())  # it reads for everybody at once, and tells each of their own

    def stores_at(self, base: str) -> Stores:
        """Give the stores, with upload addresses that lead to where the client has reached us."""
        stores: Stores = self.stores
        if isinstance(stores.uploads, LocalUploads):
            return replace(stores, uploads=stores.uploads.at(base + UPLOADS_PATH))
        return stores

    def wire(self, caller: Caller) -> Wire:
        """Give the way out: only an administrator reaches into the machine's own network."""
        if caller.role == Role.ADMINISTRATOR:
            return Wire()
        return Wire(allowed=outside)


async def _site(request: Request) -> Site:
    return here(request)


def here(request: Request) -> Site:
    """Give the site behind the wall of who asks; at the door as long as nobody was let in."""
    found: Site = getattr(request.state, "site", None) or request.app.state.site
    return found


async def _caller(request: Request) -> Caller:
    found: Caller = request.state.caller
    return found


async def base(request: Request) -> str:
    """Give the address at which people reach us: what is set, or what this request was sent to."""
    site: Site = request.app.state.site
    return site.settings.public_url or origin(request)


def origin(request: Request) -> str:
    """Give scheme and host of the address this request was sent to."""
    host = request.headers.get("host", "")
    if not _HOST.fullmatch(host):
        raise Problem("request.bad_host", "The Host of this request cannot be understood.")
    return f"{request.url.scheme}://{host.lower()}"


def client(request: Request) -> str:
    """Give the address the request comes from."""
    return request.client.host if request.client else ""


Here = Annotated[Site, Depends(_site)]
Me = Annotated[Caller, Depends(_caller)]
Base = Annotated[str, Depends(base)]
