"""Parts of the shell around every page that change by themselves."""

from fastapi.responses import Response

from imprint.web.page import Looking, pages, seen_by
from imprint.work import notice as notices
from imprint.work.scope import Scope

routes = pages()


@routes.get("/shell/notices", **seen_by(Scope.NOTICES_READ))
async def unread(look: Looking) -> Response:
    """Show how many notices nobody has read."""
    async with look.site.database.connection() as connection:
        counted = await notices.counts(connection, look.me.owner)
    return look.part("shell_notices.html", unread=counted.unread)
