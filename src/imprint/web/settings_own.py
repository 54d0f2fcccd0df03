"""Settings: one's own password, sessions and keys, and whom one has invited."""

from typing import Any

from fastapi.responses import Response

from imprint.api.gate import SELF
from imprint.web.page import Looking, View, pages, seen_by
from imprint.work import api_key as api_keys
from imprint.work import invitation as invitations
from imprint.work import session as sessions
from imprint.work.scope import Role

routes = pages()
INVITES = {Role.ADMINISTRATOR: list(Role)[::-1], Role.MEMBER: [Role.READER], Role.READER: []}


@routes.get("/settings", **seen_by(SELF))
async def settings(look: Looking) -> Response:
    """Show what is one's own."""
    return look.page("settings.html", title="Settings", **await _sessions(look), **await _keys(look))


@routes.get("/settings/sessions", **seen_by(SELF))
async def own_sessions(look: Looking) -> Response:
    """Show one's sessions, again."""
    return look.part("settings_sessions.html", **await _sessions(look))


@routes.get("/settings/keys", **seen_by(SELF))
async def own_keys(look: Looking) -> Response:
    """Show one's keys, again."""
    return look.part("settings_keys.html", **await _keys(look))


@routes.get("/settings/invitations", **seen_by(SELF))
async def invited(look: Looking) -> Response:
    """Show the invitations that are open: one's own, for an administrator all."""
    roles = INVITES[Role(look.me.role)]
    return look.page("settings_invitations.html", title="Invitations", roles=roles, **await _invitations(look))


@routes.get("/settings/invitations/rows", **seen_by(SELF))
async def invited_rows(look: Looking) -> Response:
    """Show the invitations that are open, again."""
    return look.part("settings_invitations_rows.html", **await _invitations(look))


async def _sessions(look: View) -> dict[str, Any]:
    async with look.site.database.connection() as connection:
        return {"sessions": await sessions.listed(connection, look.me.person)}


async def _keys(look: View) -> dict[str, Any]:
    async with look.site.database.connection() as connection:
        found = await api_keys.listed(connection, look.me.person)
    return {"keys": [each for each in found if each.revoked_at is None], "scopes": sorted(look.me.scopes)}


async def _invitations(look: View) -> dict[str, Any]:
    by = None if look.me.role == Role.ADMINISTRATOR else look.me.person
    async with look.site.database.connection() as connection:
        return {"invitations": await invitations.listed(connection, by)}
