"""Accounts: where one publishes to, how each of them is, and how to connect them, once or again."""

from typing import Any
from uuid import UUID

from fastapi.responses import Response

from imprint.api.accounts import OF_MACHINE, RETURN_PATH
from imprint.api.site import base
from imprint.platforms.login import Ask
from imprint.platforms.registry import PLATFORMS
from imprint.problem import Problem
from imprint.web.page import Looking, View, pages, seen_by
from imprint.web.shown import platform_name
from imprint.work import account as accounts
from imprint.work.account import Account
from imprint.work.manners import manners
from imprint.work.scope import Role, Scope

routes = pages()

# What is good to know before one begins.
ABOUT = {
    "bluesky": "With your handle and an app password.",
    "deviantart": "You are sent to DeviantArt to let Imprint in, and come back here.",
    "folder": "Posts become files in a folder of this machine.",
    "mastodon": "You are sent to your instance to let Imprint in, and come back here.",
    "webhook": "Your own program is sent each post, signed with a secret that you share.",
    "wordpress": "With your user name and an application password.",
}
FIELDS = {
    "agree_terms": "Agree to the terms",
    "app_name": "Name of the application",
    "app_password": "App password",
    "base_url": "Address of the service",
    "client_id": "Client id",
    "client_secret": "Client secret",
    "folder": "Folder",
    "handle": "Handle",
    "instance": "Instance",
    "most_bytes": "Most bytes of a file",
    "secret": "Secret",
    "site": "Site",
    "url": "Address",
    "username": "User name",
}
# These send people to their own page, where one says yes.
BY_BROWSER = {"deviantart", "mastodon"}


@routes.get("/accounts", **seen_by(Scope.ACCOUNTS_READ))
async def listed(look: Looking) -> Response:
    """Show the accounts."""
    return look.page("accounts.html", title="Accounts", **await _found(look))


@routes.get("/accounts/rows", **seen_by(Scope.ACCOUNTS_READ))
async def rows(look: Looking) -> Response:
    """Show how each account is, again."""
    return look.part("accounts_rows.html", **await _found(look))


@routes.get("/accounts/new", **seen_by(Scope.ACCOUNTS_WRITE))
async def choose(look: Looking) -> Response:
    """Show where one can publish to."""
    places = [{"name": name, "shown": platform_name(name), "about": ABOUT.get(name, "")} for name in _open_to(look)]
    return look.page("accounts_new.html", title="Connect an account", places=places, sandbox=look.site.sandbox)


@routes.get("/accounts/new/{platform}", **seen_by(Scope.ACCOUNTS_WRITE))
async def connect(look: Looking, platform: str) -> Response:
    """Ask what a platform needs to know."""
    if platform not in _open_to(look):
        raise Problem("account.no_platform", "There is no such platform here.")
    title = f"Connect {platform_name(platform)}"
    return look.page("accounts_connect.html", title=title, account=None, **await _asked(look, platform, None))


@routes.get("/accounts/{account}/reconnect", **seen_by(Scope.ACCOUNTS_WRITE))
async def reconnect(look: Looking, account: UUID) -> Response:
    """Ask what is needed to sign in to an account again."""
    async with look.site.database.connection() as connection:
        known = await accounts.show(connection, look.me.owner, account)
    title = f"Sign in again to {known.shown}"
    return look.page("accounts_connect.html", title=title, account=known, **await _asked(look, known.platform, known))


async def _found(look: View) -> dict[str, Any]:
    async with look.site.database.connection() as connection:
        found = await accounts.listed(connection, look.me.owner)
        known = await manners(connection, look.me.owner)
    return {"accounts": found, "manners": known, "by_browser": BY_BROWSER}


async def _asked(look: View, platform: str, known: Account | None) -> dict[str, Any]:
    """Give the fields of a form: what must be answered, and behind it what can be left as it is."""
    asks = PLATFORMS[platform].asks
    return {
        "platform": platform,
        "shown": platform_name(platform),
        "about": ABOUT.get(platform, ""),
        "wanted": [_field(ask, known) for ask in asks if ask.default is None],
        "more": [_field(ask, known) for ask in asks if ask.default is not None],
        "sends": platform in BY_BROWSER,
        "returns": await base(look.request) + RETURN_PATH,
        # What was answered before is used again where the sign-in still knows all of it; only for those who then ask
        # the person themselves: a password that was refused will be refused again.
        "at_once": platform in BY_BROWSER
        and all(ask.name in PLATFORMS[platform].login_type.model_fields for ask in asks),
    }


def _field(ask: Ask, known: Account | None) -> dict[str, Any]:
    before = ""
    if known is not None and ask.name in {"handle", "username"}:
        before = known.name.partition("@")[0] if ask.name == "username" else known.name
    if known is not None and ask.name == "instance":
        before = known.name.rpartition("@")[2]
    return {"ask": ask, "label": FIELDS.get(ask.name, ask.name), "before": before}


def _open_to(look: View) -> list[str]:
    """Name the platforms that who looks may connect: what reaches into the machine is for who looks after it."""
    return [name for name in PLATFORMS if name not in OF_MACHINE or look.me.role == Role.ADMINISTRATOR]
