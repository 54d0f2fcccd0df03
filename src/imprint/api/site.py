"""The site: what every route needs, and who asks."""

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

from fastapi import Depends, Request

from imprint.blobs.signing import LocalUploads
from imprint.engine.guard import denied
from imprint.engine.wire import Wire
from imprint.problem import Problem
from imprint.settings import Settings
from imprint.store.db import Database
from imprint.work.caller import Caller
from imprint.work.scope import Role
from imprint.work.stores import UPLOADS_PATH, Stores, open_stores
from imprint.work.vault import Vault

_HOST = re.compile(r"([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?")


@dataclass(frozen=True)
class Site:
    """Everything a route works with."""

    database: Database
    settings: Settings

    @cached_property
    def stores(self) -> Stores:
        """Where bytes live."""
        return open_stores(self.settings)

    @cached_property
    def vault(self) -> Vault:
        """Where sign-ins are kept."""
        return Vault.of(self.settings)

    def stores_at(self, base: str) -> Stores:
        """Give the stores, with upload addresses that lead to where the client has reached us."""
        if isinstance(self.stores.uploads, LocalUploads):
            return replace(self.stores, uploads=self.stores.uploads.at(base + UPLOADS_PATH))
        return self.stores

    def wire(self, caller: Caller) -> Wire:
        """Give the way out: only an administrator reaches into the machine's own network."""
        if caller.role == Role.ADMINISTRATOR:
            return Wire()
        return Wire(allowed=lambda address: denied(address) is None)


async def _site(request: Request) -> Site:
    found: Site = request.app.state.site
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
