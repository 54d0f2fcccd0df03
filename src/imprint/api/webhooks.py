"""Webhooks: what happens, told to a person's own programs. An address goes in and never comes out."""

from datetime import datetime
from typing import Annotated, Any, Literal, get_args
from uuid import UUID

from pydantic import AfterValidator, ConfigDict, Field, SecretStr

from imprint.api import offers
from imprint.api.gate import needs, router
from imprint.api.shape import Given, Opening, Shape, Text, shape
from imprint.api.site import Here, Me
from imprint.work import target as targets
from imprint.work import webhook as webhooks
from imprint.work.caller import Caller
from imprint.work.scope import Scope

routes = router("webhooks")
READ, WRITE = needs(Scope.NOTICES_READ), needs(Scope.NOTICES_WRITE)
WRITE_ONCE = needs(Scope.NOTICES_WRITE, shown_once=True)

EXAMPLE: dict[str, Any] = {
    "id": "2f0c5b1e-9a43-4c7f-8a53-3f1f1f6a1b10",
    "label": "hooks.example.org",
    "host": "hooks.example.org",
    "events": ["published", "failed"],
    "disabled": False,
    "lastError": None,
    "lastErrorAt": None,
    "lastSentAt": "2030-05-01T16:00:05Z",
    "createdAt": "2030-01-01T08:00:00Z",
    "waiting": 0,
    "failed": 0,
    "restingUntil": None,
    "moves": [{"name": "disable", "to": None, "why": "it is not to be called for now"}],
}
Webhook = shape("Webhook", webhooks.Webhook, moves=list[Opening], example=EXAMPLE)
MadeWebhook = shape(
    "MadeWebhook",
    webhooks.Webhook,
    moves=list[Opening],
    secret=str,
    example={**EXAMPLE, "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
)
RotatedWebhook = shape(
    "RotatedWebhook",
    webhooks.Webhook,
    moves=list[Opening],
    secret=str,
    old_until=datetime,
    example={**EXAMPLE, "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "oldUntil": "2030-05-02T16:00:00Z"},
)
Event = Literal["published", "failed", "unknown", "reconnect", "chapter"]
Events = Annotated[list[Event], Field(min_length=1, max_length=10)]


def _sayable(url: SecretStr) -> SecretStr:
    if not 1 <= len(url.get_secret_value()) <= targets.LONGEST_URL:
        raise ValueError(f"an address has 1 to {targets.LONGEST_URL} letters")
    return url


class Webhooks(Shape):
    """One's webhooks."""

    items: list[Webhook]  # type: ignore[valid-type] # a shape made from its dataclass


class NewWebhook(Given):
    """An address, what one calls it, and what it hears of."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"url": "https://hooks.example.org/imprint", "events": ["published", "failed"]}]
        }
    )

    url: Annotated[SecretStr, AfterValidator(_sayable), Field(description="It begins with https:// or http://.")]
    label: Annotated[Text, Field(min_length=1, max_length=targets.LONGEST_LABEL)] | None = None
    events: Events = Field(default_factory=lambda: list(get_args(Event)))


class WebhookChanges(Given):
    """What it hears of."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"events": ["failed"]}]})

    events: Events


class TriedWebhook(Shape):
    """That it was called."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"label": "hooks.example.org", "sent": True}]})

    label: str
    sent: bool


@routes.get("/webhooks", response_model=Webhooks, openapi_extra=READ)
async def listed(site: Here, me: Me) -> dict[str, Any]:
    """List one's webhooks, without addresses and secrets."""
    async with site.database.connection() as connection:
        return {"items": [_told(me, each) for each in await webhooks.listed(connection, me.owner)]}


@routes.post("/webhooks", response_model=MadeWebhook, status_code=201, openapi_extra=WRITE_ONCE)
async def add(site: Here, me: Me, given: NewWebhook) -> dict[str, Any]:
    """Have an address called when something happens; its secret is shown this once. Nothing is sent yet."""
    made = await webhooks.add(
        site.database, site.vault, site.wire(me), me.owner, given.url, label=given.label, events=given.events
    )
    return {**_told(me, made.webhook), "secret": made.secret}


@routes.get("/webhooks/{webhook}", response_model=Webhook, openapi_extra=READ)
async def show(site: Here, me: Me, webhook: UUID) -> dict[str, Any]:
    """Show one webhook: what waits for it, what went wrong last, and which moves are open to it."""
    async with site.database.connection() as connection:
        return _told(me, await webhooks.show(connection, me.owner, webhook))


@routes.patch("/webhooks/{webhook}", response_model=Webhook, openapi_extra=WRITE)
async def change(site: Here, me: Me, webhook: UUID, given: WebhookChanges) -> dict[str, Any]:
    """Let it hear of other events from now on."""
    return _told(me, await webhooks.change(site.database, me.owner, webhook, given.events))


@routes.post("/webhooks/{webhook}/disable", response_model=Webhook, openapi_extra=WRITE)
async def disable(site: Here, me: Me, webhook: UUID) -> dict[str, Any]:
    """Have it called no more for now; what waits for it is let go."""
    return _told(me, await webhooks.disable(site.database, me.owner, webhook, disabled=True))


@routes.post("/webhooks/{webhook}/enable", response_model=Webhook, openapi_extra=WRITE)
async def enable(site: Here, me: Me, webhook: UUID) -> dict[str, Any]:
    """Have it called again; what it missed is not made up for."""
    return _told(me, await webhooks.disable(site.database, me.owner, webhook, disabled=False))


@routes.post("/webhooks/{webhook}/test", response_model=TriedWebhook, openapi_extra=WRITE)
async def try_out(site: Here, me: Me, webhook: UUID) -> dict[str, Any]:
    """Call it now with an event of type `test`; what goes wrong is told."""
    async with site.database.connection() as connection:
        label = (await webhooks.show(connection, me.owner, webhook)).label
    await webhooks.try_out(site.database, site.vault, site.wire(me), me.owner, webhook)
    return {"label": label, "sent": True}


@routes.post("/webhooks/{webhook}/rotate", response_model=RotatedWebhook, openapi_extra=WRITE_ONCE)
async def rotate(site: Here, me: Me, webhook: UUID) -> dict[str, Any]:
    """Give it a new secret, shown this once; until `oldUntil` the old one signs as well, so that nothing is lost."""
    made = await webhooks.rotate(site.database, site.vault, me.owner, webhook)
    return {**_told(me, made.webhook), "secret": made.secret, "oldUntil": made.old_until}


@routes.delete("/webhooks/{webhook}", status_code=204, openapi_extra=WRITE)
async def remove(site: Here, me: Me, webhook: UUID) -> None:
    """Have it called no more; address and secret are forgotten."""
    await webhooks.remove(site.database, me.owner, webhook)


def _told(me: Caller, webhook: webhooks.Webhook) -> dict[str, Any]:
    called = (
        ("enable", "it is to be called again") if webhook.disabled else ("disable", "it is not to be called for now")
    )
    moves = [
        called,
        ("test", "to see whether it works"),
        ("rotate", "to have another secret"),
        ("remove", "it is not wanted any more"),
    ]
    return {**webhook.as_data(), "moves": offers.to(me, Scope.NOTICES_WRITE, moves)}
