"""The files of a post: attach, take off, put in order, describe."""

from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from imprint.api.gate import needs, router
from imprint.api.posts import File
from imprint.api.shape import Given, Shape, Text, shape
from imprint.api.site import Here, Me
from imprint.work import attach as files
from imprint.work.post import PostFile
from imprint.work.scope import Scope

routes = router("posts")
WRITE = needs(Scope.POSTS_WRITE)

Pictured = shape(
    "PicturedFile", PostFile, without={"store", "key"}, status=str, error_code=str | None, thumbnail=str | None
)
Alt = Annotated[Text, Field(max_length=5000, examples=["A white lighthouse on a rock, the sky red behind it."])]


class Files(Shape):
    """The files of a post, in their order."""

    items: list[File]  # type: ignore[valid-type] # a shape made from its dataclass


class PicturedFiles(Shape):
    """The files of a post, in their order; `thumbnail` is where a small picture of one is, as soon as it is made."""

    items: list[Pictured]  # type: ignore[valid-type]


class Attach(Given):
    """Content to attach, and what can be seen in it."""

    content_id: UUID
    alt: Alt = ""


class FileOrder(Given):
    """Every file of the post, each once, in the order one wants."""

    files: Annotated[list[UUID], Field(max_length=100)]


class Describe(Given):
    """What can be seen, for those who cannot see it."""

    alt: Alt


@routes.get("/posts/{post}/files", response_model=PicturedFiles, openapi_extra=needs(Scope.POSTS_READ))
async def listed(site: Here, me: Me, post: UUID) -> dict[str, Any]:
    """List the files of a post, each with how far its content is, and where its thumbnail is."""
    async with site.database.connection() as connection:
        return {"items": [each.as_data() for each in await files.listed(connection, me.owner, post)]}


@routes.post("/posts/{post}/files", response_model=Files, status_code=201, openapi_extra=WRITE)
async def attach(site: Here, me: Me, post: UUID, given: Attach) -> dict[str, Any]:
    """Put content at the end of a post's files; its bytes may be confirmed later."""
    return _files(await files.attach(site.database, me.owner, post, given.content_id, given.alt))


@routes.put("/posts/{post}/files", response_model=Files, openapi_extra=WRITE)
async def arrange(site: Here, me: Me, post: UUID, given: FileOrder) -> dict[str, Any]:
    """Put the files into an order."""
    return _files(await files.arrange(site.database, me.owner, post, given.files))


@routes.patch("/posts/{post}/files/{file}", response_model=Files, openapi_extra=WRITE)
async def describe(site: Here, me: Me, post: UUID, file: UUID, given: Describe) -> dict[str, Any]:
    """Say what can be seen in a file."""
    return _files(await files.describe(site.database, me.owner, post, file, given.alt))


@routes.delete("/posts/{post}/files/{file}", response_model=Files, openapi_extra=WRITE)
async def detach(site: Here, me: Me, post: UUID, file: UUID) -> dict[str, Any]:
    """Take a file off a post; one that is ready keeps at least one."""
    return _files(await files.detach(site.database, me.owner, post, file))


def _files(found: list[PostFile]) -> dict[str, Any]:
    return {"items": [each.as_data() for each in found]}
