"""Targets: where a person is told of news. An address goes in and never comes out."""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, ConfigDict, Field, SecretStr

from imprint.api import offers
from imprint.api.gate import needs, router
from imprint.api.shape import Given, Opening, Shape, Text, shape
from imprint.api.site import Here, Me
from imprint.work import target as targets
from imprint.work.caller import Caller
from imprint.work.scope import Scope

routes = router("targets")
READ, WRITE = needs(Scope.NOTICES_READ), needs(Scope.NOTICES_WRITE)

EXAMPLE: dict[str, Any] = {
    "id": "7c11a5f3-5d1f-4a5f-9c3e-0b0f5b3e1c52",
    "label": "phone",
    "service": "ntfy",
    "digest": "off",
    "muted": False,
    "lastError": None,
    "lastErrorAt": None,
    "lastSentAt": "2030-05-01T16:00:05Z",
    "createdAt": "2030-01-01T08:00:00Z",
    "waiting": 0,
    "failed": 0,
    "restingUntil": None,
    "moves": [{"name": "mute", "to": None, "why": "nothing is to be heard there for now"}],
}
Target = shape("Target", targets.Target, moves=list[Opening], example=EXAMPLE)
Digest = Literal["off", "hourly", "daily"]


def _sayable(url: SecretStr) -> SecretStr:
    if not 1 <= len(url.get_secret_value()) <= targets.LONGEST_URL:
        raise ValueError(f"an address has 1 to {targets.LONGEST_URL} letters")
    return url


class Targets(Shape):
    """Where one is told."""

    items: list[Target]  # type: ignore[valid-type] # a shape made from its dataclass


class NewTarget(Given):
    """An address of Apprise, what one calls it, and whether news are gathered for it."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"url": "ntfys:…", "label": "phone", "digest": "off"}]})

    url: Annotated[SecretStr, AfterValidator(_sayable), Field(description="An address as Apprise writes it.")]
    label: Annotated[Text, Field(min_length=1, max_length=targets.LONGEST_LABEL)] | None = None
    digest: Digest = "off"


class TargetChanges(Given):
    """Whether one is told at once (off), every hour or every day."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"digest": "daily"}]})

    digest: Digest


class TriedTarget(Shape):
    """That a message went out."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"label": "phone", "sent": True}]})

    label: str
    sent: bool


@routes.get("/targets", response_model=Targets, openapi_extra=READ)
async def listed(site: Here, me: Me) -> dict[str, Any]:
    """List where one is told, without the addresses."""
    async with site.database.connection() as connection:
        return {"items": [_told(me, each) for each in await targets.listed(connection, me.owner)]}


@routes.post("/targets", response_model=Target, status_code=201, openapi_extra=WRITE)
async def add(site: Here, me: Me, given: NewTarget) -> dict[str, Any]:
    """Be told at an address; nothing is sent there yet."""
    async with site.courier() as by:
        made = await targets.add(
            site.database, site.vault, by, me.owner, given.url, label=given.label, digest=given.digest
        )
    return _told(me, made)


@routes.get("/targets/{target}", response_model=Target, openapi_extra=READ)
async def show(site: Here, me: Me, target: UUID) -> dict[str, Any]:
    """Show one target: what waits for it, what went wrong last, and which moves are open to it."""
    async with site.database.connection() as connection:
        return _told(me, await targets.show(connection, me.owner, target))


@routes.patch("/targets/{target}", response_model=Target, openapi_extra=WRITE)
async def change(site: Here, me: Me, target: UUID, given: TargetChanges) -> dict[str, Any]:
    """Be told at once, every hour or every day; what already waits goes out as it was planned."""
    return _told(me, await targets.set_digest(site.database, me.owner, target, given.digest))


@routes.post("/targets/{target}/mute", response_model=Target, openapi_extra=WRITE)
async def mute(site: Here, me: Me, target: UUID) -> dict[str, Any]:
    """Be told nothing there for now."""
    return _told(me, await targets.mute(site.database, me.owner, target, muted=True))


@routes.post("/targets/{target}/unmute", response_model=Target, openapi_extra=WRITE)
async def unmute(site: Here, me: Me, target: UUID) -> dict[str, Any]:
    """Be told there again; what was missed is not made up for."""
    return _told(me, await targets.mute(site.database, me.owner, target, muted=False))


@routes.post("/targets/{target}/test", response_model=TriedTarget, openapi_extra=WRITE)
async def try_out(site: Here, me: Me, target: UUID) -> dict[str, Any]:
    """Send a message there now; what goes wrong is told."""
    async with site.database.connection() as connection:
        label = (await targets.show(connection, me.owner, target)).label
    async with site.courier() as by:
        await targets.try_out(site.database, site.vault, by, me.owner, target)
    return {"label": label, "sent": True}


@routes.delete("/targets/{target}", status_code=204, openapi_extra=WRITE)
async def remove(site: Here, me: Me, target: UUID) -> None:
    """Be told there no longer; the address is forgotten."""
    await targets.remove(site.database, me.owner, target)


def _told(me: Caller, target: targets.Target) -> dict[str, Any]:
    heard = ("unmute", "it is to be heard again") if target.muted else ("mute", "nothing is to be heard there for now")
    moves = [heard, ("test", "to see whether it works"), ("remove", "it is not wanted any more")]
    return {**target.as_data(), "moves": offers.to(me, Scope.NOTICES_WRITE, moves)}
