"""The entrance: sign in, make the first account, take up an invitation."""

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Query
from fastapi.responses import RedirectResponse, Response

from imprint.api.gate import OPEN, who
from imprint.problem import Problem
from imprint.web.page import Looking, View, pages, seen_by
from imprint.work import person as people

routes = pages()


@routes.get("/sign-in", **seen_by(OPEN))
async def sign_in(look: Looking, wanted: Annotated[str, Query(alias="next")] = "/") -> Response:
    """Ask for name and password; who is here already goes on, and as long as nobody is, the first one is welcome."""
    if await _here(look):
        return RedirectResponse(_ours(wanted), 303)
    if not await _anybody(look):
        return RedirectResponse("/first", 303)
    return look.page("sign_in.html", title="Sign in", wanted=_ours(wanted))


@routes.get("/first", **seen_by(OPEN))
async def first(look: Looking) -> Response:
    """Let the first visitor make the first account; the code is in the address after `#`, which no server sees."""
    if await _anybody(look):
        return RedirectResponse("/sign-in", 303)
    return look.page("first.html", title="Welcome")


@routes.get("/invitation", **seen_by(OPEN))
async def invitation(look: Looking) -> Response:
    """Let somebody in who was invited; the code is in the address after `#`."""
    return look.page("invitation.html", title="You are invited")


async def _here(look: View) -> bool:
    try:
        await who(look.request)
    except Problem:
        return False
    return True


async def _anybody(look: View) -> bool:
    async with look.site.database.connection() as connection:
        return await people.any_there(connection)


def _ours(wanted: str) -> str:
    """Give where to go on: only an address of ours."""
    parts = urlsplit(wanted)
    safe = wanted.startswith("/") and not wanted.startswith(("//", "/\\")) and not parts.scheme and not parts.netloc
    return wanted if safe and wanted.isprintable() else "/"
