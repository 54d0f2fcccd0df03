"""The status of the machine: what waits, runs, is late or stuck."""

import asyncio
from typing import Any

from imprint.api.gate import needs, router
from imprint.api.site import Here
from imprint.work.scope import Scope
from imprint.work.status import status as look

routes = router("system")
PATIENCE = 3.0


@routes.get("/status", response_model=dict[str, Any], openapi_extra=needs(Scope.SYSTEM_READ))
async def status(site: Here) -> dict[str, Any]:
    """Give what waits, runs, is late or stuck, and which workers are alive; for administrators."""
    async with asyncio.timeout(PATIENCE), site.database.connection() as connection:
        return (await look(connection)).as_data()
