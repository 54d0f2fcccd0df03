"""Uploads: ask for an address, send the bytes there, have them confirmed."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from imprint.api.gate import needs, router
from imprint.api.shape import Given, Shape, Text, shape
from imprint.api.site import Base, Here, Me
from imprint.work import attach
from imprint.work import post as posts
from imprint.work import upload as uploads
from imprint.work.scope import Scope
from imprint.work.upload import Wanted

routes = router("uploads")

Confirmed = shape(
    "Confirmed",
    uploads.Confirmed,
    example={
        "fileId": "2c0b7e1e-52f4-4a2e-9a39-4f1f0f6f6f0a",
        "status": "uploaded",
        "size": 48213,
        "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "contentType": "image/png",
    },
)


class Ask(Given):
    """What will be sent; with `postId` it becomes a file of that post, with `fileId` a failed upload is done again."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        json_schema_extra={"examples": [{"filename": "lighthouse.png", "contentType": "image/png", "fileSize": 48213}]},
    )

    filename: Annotated[Text, Field(min_length=1, max_length=1000)]
    content_type: Annotated[Text, Field(max_length=100)]
    file_size: Annotated[int, Field(ge=0, le=2**62)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    post_id: UUID | None = None
    file_id: UUID | None = None
    alt: Annotated[Text, Field(max_length=5000)] = ""


class Asked(Shape):
    """Where to PUT the bytes, until when, and what to confirm afterwards."""

    upload_url: str
    file_id: UUID
    storage_key: str
    expires_at: datetime


class Confirm(Given):
    """Which upload."""

    file_id: UUID


@routes.post("/uploads/presigned-url", response_model=Asked, status_code=201, openapi_extra=needs(Scope.CONTENT_WRITE))
async def ask(site: Here, me: Me, base: Base, given: Ask) -> dict[str, Any]:
    """Promise what will be sent, and get the address to send it to."""
    wanted = Wanted(given.filename, given.content_type.lower(), given.file_size, given.sha256)
    stores = site.stores_at(base)
    if given.post_id:  # before anything is made for it
        async with site.database.connection() as connection:
            await posts.show(connection, me.owner, given.post_id)
    if given.file_id:
        asked = await uploads.ask_again(site.database, stores, site.settings, given.file_id, wanted, me.owner)
    else:
        asked = await uploads.ask(site.database, stores, site.settings, wanted, me.owner)
    if given.post_id and not given.file_id:
        await attach.attach(site.database, me.owner, given.post_id, asked.file_id, given.alt)
    return {
        "uploadUrl": asked.upload_url,
        "fileId": asked.file_id,
        "storageKey": asked.storage_key,
        "expiresAt": asked.expires_at,
    }


@routes.post("/uploads/confirm", response_model=Confirmed, openapi_extra=needs(Scope.CONTENT_WRITE))
async def confirm(site: Here, me: Me, given: Confirm) -> dict[str, Any]:
    """Have what was sent verified: size, hash and type; asked again, the answer is the same."""
    done = await uploads.confirm(site.database, site.stores, given.file_id, me.owner)
    return {
        "fileId": done.file_id,
        "status": done.status,
        "size": done.size,
        "sha256": done.sha256,
        "contentType": done.content_type,
    }
