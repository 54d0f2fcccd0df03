"""Accounts: connect them, choose the default, disable, enable, connect anew, remove."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import Response
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from imprint.api import offers
from imprint.api.gate import needs, router
from imprint.api.shape import Given, Opening, Shape, Text, shape
from imprint.api.site import Base, Here, Me, Site
from imprint.platforms.registry import PLATFORMS
from imprint.problem import Problem
from imprint.work import account as accounts
from imprint.work.account import Waiting
from imprint.work.caller import Caller
from imprint.work.scope import Role, Scope

routes = router("accounts")
READ, WRITE = needs(Scope.ACCOUNTS_READ), needs(Scope.ACCOUNTS_WRITE)

RETURN_PATH = "/accounts/return"
# These reach into the machine itself, which belongs to who looks after it.
OF_MACHINE = {"folder"}
EXAMPLE: dict[str, Any] = {
    "id": "6a6d1f0a-3f43-4a3c-8e0e-3d9c3c6c1a77",
    "platform": "deviantart",
    "name": "ada",
    "label": "gallery",
    "status": "connected",
    "statusAt": "2030-05-01T16:00:00Z",
    "isDefault": True,
    "troubleCode": None,
    "trouble": None,
    "createdAt": "2030-05-01T16:00:00Z",
    "expiresAt": "2030-05-01T17:00:00Z",
    "renewableUntil": "2030-08-01T16:00:00Z",
    "waiting": 2,
    "moves": [{"name": "disable", "to": "disabled", "why": "the person does not want it used"}],
}
Answers = Annotated[dict[Text, Annotated[Text, Field(max_length=5000)]], Field(max_length=50)]
Account = shape("Account", accounts.Account, moves=list[Opening], example=EXAMPLE)


class Accounts(Shape):
    """One's accounts."""

    items: list[Account]  # type: ignore[valid-type] # a shape made from its dataclass


class Question(Shape):
    """One thing a platform asks for."""

    name: str
    sentence: str
    secret: bool
    default: str | None


class Platform(Shape):
    """A platform, and what it asks for when an account is connected."""

    name: str
    asks: list[Question]


class Platforms(Shape):
    """Where one can publish to."""

    items: list[Platform]


class Connected(Shape):
    """An account that is connected; or an address to go to with a browser, to let Imprint in."""

    account: Account | None  # type: ignore[valid-type]
    url: str | None
    expires_at: datetime | None


class Gone(Shape):
    """An account that is removed; `trouble` says why its platform may still think that Imprint is let in."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        json_schema_extra={"examples": [{"revoked": False, "trouble": "The platform did not answer."}]},
    )

    revoked: bool
    trouble: str | None


class Connect(Given):
    """A platform, what it asks for, and what one calls the account."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        hide_input_in_errors=True,
        json_schema_extra={
            "examples": [
                {
                    "platform": "webhook",
                    "label": "my site",
                    "answers": {"url": "https://hooks.example/imprint", "secret": "whsec_…"},
                }
            ]
        },
    )

    platform: Annotated[Text, Field(max_length=100)]
    label: Annotated[Text, Field(min_length=1, max_length=100)] | None = None
    answers: Answers = Field(default_factory=dict)


class Reconnect(Given):
    """What the platform asks for."""

    answers: Answers = Field(default_factory=dict)


class Returned(Given):
    """The address one was sent back to."""

    returned_to: Annotated[Text, Field(max_length=5000, examples=["https://imprint.example/accounts/return?state=…"])]


@routes.get("/accounts", response_model=Accounts, openapi_extra=READ)
async def listed(site: Here, me: Me) -> dict[str, Any]:
    """List one's accounts."""
    async with site.database.connection() as connection:
        return {"items": [told(me, each) for each in await accounts.listed(connection, me.owner)]}


@routes.get("/accounts/platforms", response_model=Platforms, openapi_extra=READ)
async def platforms(me: Me) -> dict[str, Any]:
    """List where one can publish to, and what each platform asks for."""
    return {
        "items": [
            {"name": name, "asks": [vars(ask) for ask in of.asks]}
            for name, of in PLATFORMS.items()
            if name not in OF_MACHINE or me.role == Role.ADMINISTRATOR
        ]
    }


@routes.post(
    "/accounts",
    response_model=Connected,
    status_code=201,
    responses={202: {"model": Connected, "description": "Go to the address with a browser."}},
    openapi_extra=WRITE,
)
async def connect(site: Here, me: Me, base: Base, response: Response, given: Connect) -> dict[str, Any]:
    """Connect an account; some platforms want a browser first."""
    _refuse_machine(me, given.platform)
    result = await accounts.begin(
        site.database,
        site.vault,
        site.wire(me),
        me.owner,
        given.platform,
        given.answers,
        base + RETURN_PATH,
        label=given.label,
    )
    return _begun(me, result, response)


@routes.post("/accounts/finish", response_model=Account, openapi_extra=WRITE)
async def finish(site: Here, me: Me, given: Returned) -> dict[str, Any]:
    """Go on with a sign-in that was begun, with the address one was sent back to."""
    return await finished(site, me, given.returned_to)


@routes.get("/accounts/{account}", response_model=Account, openapi_extra=READ)
async def show(site: Here, me: Me, account: UUID) -> dict[str, Any]:
    """Show one account, and which moves are open to it."""
    return await _show(site, me, account)


@routes.post(
    "/accounts/{account}/reconnect",
    response_model=Connected,
    responses={202: {"model": Connected, "description": "Go to the address with a browser."}},
    openapi_extra=WRITE,
)
async def reconnect(
    site: Here, me: Me, base: Base, response: Response, account: UUID, given: Reconnect
) -> dict[str, Any]:
    """Sign in to an account anew; what was scheduled on it goes on."""
    _refuse_machine(me, (await _show(site, me, account))["platform"])
    result = await accounts.reconnect(
        site.database, site.vault, site.wire(me), me.owner, account, given.answers, base + RETURN_PATH
    )
    return _begun(me, result, response)


@routes.post("/accounts/{account}/default", response_model=Account, openapi_extra=WRITE)
async def make_default(site: Here, me: Me, account: UUID) -> dict[str, Any]:
    """Publish to this account when none is named."""
    await accounts.make_default(site.database, me.owner, account)
    return await _show(site, me, account)


@routes.post("/accounts/{account}/disable", response_model=Account, openapi_extra=WRITE)
async def disable(site: Here, me: Me, account: UUID) -> dict[str, Any]:
    """Leave an account unused; what is scheduled waits."""
    await accounts.disable(site.database, me.owner, account)
    return await _show(site, me, account)


@routes.post("/accounts/{account}/enable", response_model=Account, openapi_extra=WRITE)
async def enable(site: Here, me: Me, account: UUID) -> dict[str, Any]:
    """Use an account again."""
    await accounts.enable(site.database, me.owner, account)
    return await _show(site, me, account)


@routes.delete("/accounts/{account}", response_model=Gone, openapi_extra=WRITE)
async def remove(site: Here, me: Me, account: UUID, *, cancelWaiting: bool = False) -> dict[str, Any]:  # noqa: N803 - its name in the URL
    """Remove an account and forget its sign-in; refused while something waits for it, unless that is cancelled."""
    gone = await accounts.remove(
        site.database, site.vault, site.wire(me), me.owner, account, cancel_waiting=cancelWaiting
    )
    return {"revoked": gone.revoked, "trouble": gone.trouble}


async def finished(site: Site, me: Caller, returned_to: str) -> dict[str, Any]:
    """End an errand, and give the account that is connected by it."""
    return told(me, await accounts.finish(site.database, site.vault, site.wire(me), me.owner, returned_to))


async def _show(site: Site, me: Caller, account: UUID) -> dict[str, Any]:
    async with site.database.connection() as connection:
        return told(me, await accounts.show(connection, me.owner, account))


def _refuse_machine(me: Caller, platform: str) -> None:
    if platform in OF_MACHINE and me.role != Role.ADMINISTRATOR:
        raise Problem("account.administrators_only", f"Only an administrator connects a {platform} of this machine.")


def _begun(me: Caller, result: accounts.Account | Waiting, response: Response) -> dict[str, Any]:
    if isinstance(result, Waiting):
        response.status_code = 202
        return {"account": None, "url": result.url, "expiresAt": result.expires_at}
    return {"account": told(me, result), "url": None, "expiresAt": None}


def told(me: Caller, account: accounts.Account) -> dict[str, Any]:
    """Give an account as the API tells of it, with the moves that are open to who asks."""
    return {**account.as_data(), "moves": offers.of_account(me, account.status, default=account.is_default)}
