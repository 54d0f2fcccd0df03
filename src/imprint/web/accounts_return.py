"""Where platforms send people back to, when Imprint was let in or was not."""

from fastapi.responses import Response

from imprint.api.accounts import RETURN_PATH, finished
from imprint.problem import Problem
from imprint.web.page import Looking, pages, seen_by
from imprint.work.scope import Scope

routes = pages()


@routes.get(RETURN_PATH, **seen_by(Scope.ACCOUNTS_WRITE))
async def came_back(look: Looking) -> Response:
    """Go on with the sign-in of an account; the address itself is the proof that it was begun here."""
    try:
        account = await finished(look.site, look.me, str(look.request.url))
    except Problem as problem:
        return look.page("accounts_return.html", http_status=400, title="Not connected", sentence=problem.sentence)
    name = account["label"] or account["name"] or account["platform"]
    return look.page("accounts_return.html", title="Connected", sentence=f"{name} is connected.")
