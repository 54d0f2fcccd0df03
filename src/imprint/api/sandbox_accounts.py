"""The sandbox: an account to try everything with, in one request."""

from typing import Any

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from imprint.api.accounts import EXAMPLE, Account, told
from imprint.api.gate import needs, router
from imprint.api.shape import Shape
from imprint.api.site import Here, Me
from imprint.work import sandbox_account
from imprint.work.scope import Scope

routes = router("accounts")


class Tried(Shape):
    """An account of the sandbox, and where one sees what arrives there."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        json_schema_extra={
            "examples": [
                {
                    "account": {**EXAMPLE, "platform": "wordpress", "label": "Sandbox"},
                    "gallery": "http://127.0.0.1:7700/",
                }
            ]
        },
    )

    account: Account  # type: ignore[valid-type] # a shape made from its dataclass
    gallery: str


@routes.post("/sandbox-account", response_model=Tried, status_code=201, openapi_extra=needs(Scope.ACCOUNTS_WRITE))
async def connect(site: Here, me: Me) -> dict[str, Any]:
    """Connect an account of the sandbox on this machine; asked again, it gives the one that is there."""
    account, gallery = await sandbox_account.connect(site.database, site.vault, site.sandbox, me.owner)
    return {"account": told(me, account), "gallery": gallery}
