"""The files of a post: attach, take off, put in order, describe."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg

from imprint.lifecycles.post import PostStatus
from imprint.problem import Problem
from imprint.store.db import Database
from imprint.store.query import Link, query
from imprint.work.post import FILES, MOST_FILES, Post, PostFile, Row, explained, locked, show, still_ready


@dataclass(frozen=True)
class Picture:
    """How far the content of a file is, and whether its thumbnail can be shown."""

    id: UUID
    status: str
    error_code: str | None
    thumbnail: bool


@dataclass(frozen=True)
class Pictured:
    """A file of a post and its picture."""

    file: PostFile
    picture: Picture

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data, with where its thumbnail is."""
        small = f"/api/content/{self.file.content_id}/download?variant=thumbnail" if self.picture.thumbnail else None
        about = {"status": self.picture.status, "errorCode": self.picture.error_code, "thumbnail": small}
        return {**self.file.as_data(), **about}


ATTACH = query("post_attach", Row)
DETACH = query("post_detach", Row)
PLACE = query("post_place", Row)
DESCRIBE = query("post_describe", Row)
PICTURES = query("post_pictures", Picture)
LONGEST_ALT = 5000


async def listed(connection: Link, owner: str, post: UUID) -> list[Pictured]:
    """Give the files of a post in their order, with their pictures."""
    files = (await show(connection, owner, post)).files
    pictures = {each.id: each for each in await PICTURES.all(connection, post)}
    return [Pictured(each, pictures[each.id]) for each in files if each.id in pictures]


async def attach(database: Database, owner: str, post: UUID, content: UUID, alt: str = "") -> list[PostFile]:
    """Put content at the end of a post's files; its bytes may be confirmed later."""
    _refuse_alt(alt)
    async with database.transaction(owner, "a file was attached") as connection:
        found = await _changeable(connection, owner, post)
        if len(await FILES.all(connection, post)) >= MOST_FILES:
            raise Problem("post.many_files", f"A post has {MOST_FILES} files at most.")
        try:
            if await ATTACH.first(connection, post, content, owner, alt) is None:
                raise Problem("content.missing", "There is no such content.")
        except asyncpg.UniqueViolationError:
            raise Problem("post.file_twice", "This file is attached already.") from None
        except asyncpg.CheckViolationError as refused:
            raise explained(refused, found) from None
        return await _kept(connection, owner, post)


async def detach(database: Database, owner: str, post: UUID, file: UUID) -> list[PostFile]:
    """Take a file off a post; a post that is ready keeps at least one."""
    async with database.transaction(owner, "a file was taken off") as connection:
        found = await _changeable(connection, owner, post)
        try:
            if await DETACH.first(connection, file, post) is None:
                raise _no_file()
        except asyncpg.CheckViolationError as refused:
            raise explained(refused, found) from None
        left = [each.id for each in await FILES.all(connection, post)]
        await PLACE.all(connection, post, left)
        return await _kept(connection, owner, post)


async def arrange(database: Database, owner: str, post: UUID, order: Sequence[UUID]) -> list[PostFile]:
    """Put the files into this order; every one of them must be named once."""
    async with database.transaction(owner, "the files were put in order") as connection:
        found = await locked(connection, owner, post)
        known = [file.id for file in await FILES.all(connection, post)]
        if sorted(known) != sorted(order):
            raise Problem("post.wrong_order", "Name every file of the post, each once, in the order you want.")
        try:
            await PLACE.all(connection, post, list(order))
        except asyncpg.CheckViolationError as refused:
            raise explained(refused, found) from None
        return await FILES.all(connection, post)


async def describe(database: Database, owner: str, post: UUID, file: UUID, alt: str) -> list[PostFile]:
    """Say what can be seen in a file, for those who cannot see it."""
    _refuse_alt(alt)
    async with database.transaction(owner, "a file was described") as connection:
        found = await locked(connection, owner, post)
        try:
            if await DESCRIBE.first(connection, file, post, alt) is None:
                raise _no_file()
        except asyncpg.CheckViolationError as refused:
            raise explained(refused, found) from None
        return await FILES.all(connection, post)


async def _changeable(connection: Link, owner: str, post: UUID) -> Post:
    found = await locked(connection, owner, post)
    if found.upload_mode == "multiple" and found.status == PostStatus.SCHEDULED:
        # Each of its files has a publication of its own: one more or less would be one that nobody planned.
        raise Problem("post.planned", "Its files are scheduled one by one; unschedule it before you change them.")
    return found


async def _kept(connection: Link, owner: str, post: UUID) -> list[PostFile]:
    await still_ready(connection, owner, post)
    return await FILES.all(connection, post)


def _refuse_alt(alt: str) -> None:
    if len(alt) > LONGEST_ALT or "\x00" in alt:
        raise Problem("post.invalid", f"alt: it has {LONGEST_ALT} letters at most.")


def _no_file() -> Problem:
    return Problem("post.no_such_file", "This post has no such file.")
