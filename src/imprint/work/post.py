"""Posts: write, change, look at, declare ready, copy, delete. When they go out is decided in schedule.py.

Every function is one transaction. The rules are told here in sentences; those that protect what was sent are also
triggers, which refuse whoever goes past this file.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from imprint.lifecycles.post import POST, PostStatus
from imprint.problem import Problem
from imprint.store.db import Database
from imprint.store.query import Link, Nothing, query
from imprint.work.naming import to_camel
from imprint.work.post_fields import Fields, checked
from imprint.work.prefix import Candidate, bounds, picked

MOST_FILES = 100
# Until something of it is to go out: nothing that a worker could be about to take.
WITH_ITS_AUTHOR = (PostStatus.REVIEW, PostStatus.DRAFT)
EDITABLE = (*WITH_ITS_AUTHOR, PostStatus.SCHEDULED, PostStatus.FAILED)


@dataclass(frozen=True)
class Post:
    """A post as it is written down."""

    id: UUID
    owner: str
    kind: str
    title: str
    description: str
    body: str
    tags: list[str]
    category_path: str | None
    is_mature: bool
    mature_level: str | None
    mature_classification: list[str]
    gallery_ids: list[str]
    allow_comments: bool
    allow_free_download: bool
    is_ai_generated: bool
    no_ai: bool
    display_resolution: int
    upload_mode: str
    overrides: str
    late_policy: str
    late_hours: int | None
    zone: str
    revision: int
    status: str
    status_at: datetime
    created_at: datetime
    edited_at: datetime

    def fields(self) -> dict[str, Any]:
        """Give what a person wrote, by the names of the JSON."""
        written = {to_camel(name): getattr(self, name) for name in Fields.model_fields}
        return {**written, "overrides": json.loads(self.overrides)}

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {
            "id": self.id,
            "status": self.status,
            **self.fields(),
            "revision": self.revision,
            "statusAt": self.status_at,
            "createdAt": self.created_at,
            "editedAt": self.edited_at,
        }


@dataclass(frozen=True)
class PostFile:
    """A file of a post and what is known of its bytes; `confirmed` when they are here and verified."""

    id: UUID
    content_id: UUID
    position: int
    alt: str
    name: str
    store: str | None
    key: str | None
    size: int | None
    sha256: str | None
    content_type: str | None
    width: int | None
    height: int | None
    confirmed: bool

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data, without where its bytes are."""
        return {to_camel(name): value for name, value in asdict(self).items() if name not in {"store", "key"}}


@dataclass(frozen=True)
class Planned:
    """A publication of a post and the account it is on."""

    id: UUID
    account_id: UUID
    platform: str
    label: str | None
    name: str
    file_id: UUID | None
    status: str
    status_at: datetime
    phase: str | None
    scheduled_at: datetime | None
    zone: str | None
    jitter_seconds: int
    due_at: datetime
    held: bool
    crashes: int
    remote_id: str | None
    error_code: str | None
    url: str | None
    published_at: datetime | None
    attempts: int
    held_why: str | None
    held_until: datetime | None
    look_at: datetime | None

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        data = {to_camel(name): value for name, value in asdict(self).items() if name != "due_at"}
        return {**data, "actualPublishAt": self.due_at}


@dataclass(frozen=True)
class Listed:
    """A post in a list: how many files it has, on how many accounts it is out, and when it goes out next."""

    id: UUID
    kind: str
    title: str
    status: str
    status_at: datetime
    created_at: datetime
    zone: str
    files: int
    out: int
    next_at: datetime | None

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {to_camel(name): value for name, value in vars(self).items()}


@dataclass(frozen=True)
class Count:
    """How many posts are in a state."""

    status: str
    posts: int


@dataclass(frozen=True)
class Row:
    """A row that was made, found or changed."""

    id: UUID


@dataclass(frozen=True)
class Shown:
    """Everything about one post."""

    post: Post
    files: list[PostFile]
    publications: list[Planned]

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data, with the moves that are open to it."""
        return {
            **self.post.as_data(),
            "files": [each.as_data() for each in self.files],
            "publications": [each.as_data() for each in self.publications],
            "moves": [{"name": arrow.name, "to": str(arrow.target)} for arrow in POST.open_to(self.post.status)],
        }


CREATE = query("post_create", Row)
SHOW = query("post_show", Post)
LOCK = query("post_lock", Post)
FOUND = query("post_found", Candidate)
LIST = query("post_list", Listed)
COUNTS = query("post_counts", Count)
EDIT = query("post_edit", Row)
FILES = query("post_files", PostFile)
PUBLICATIONS = query("post_publications", Planned)
APPROVE = query("post_approve", Row)
REOPEN = query("post_reopen", Row)
REWORK = query("post_rework", Row)
COPY = query("post_copy", Row)
COPY_FILES = query("post_copy_files", Nothing)


async def create(database: Database, owner: str, given: Mapping[str, object]) -> UUID:
    """Make a post, in review; `given` has the names of the JSON."""
    fields = checked(given)
    async with database.transaction(owner, "a new post") as connection:
        return (await CREATE.one(connection, owner, *fields.columns())).id


async def edit(
    database: Database, owner: str, post: UUID, changes: Mapping[str, object], *, revision: int | None = None
) -> Shown:
    """Change what is given and nothing else; with `revision` only if nobody has changed it in the meantime.

    A post that is out, on its way or unknown stays as it is; one that is ready or scheduled must stay ready.
    """
    async with database.transaction(owner, "edited") as connection:
        before = await locked(connection, owner, post)
        if revision is not None and revision != before.revision:
            raise Problem("post.changed", "Somebody has changed this post in the meantime; look at it again.")
        fields = checked({**before.fields(), **changes})
        if fields.upload_mode != before.upload_mode and before.status not in WITH_ITS_AUTHOR:
            raise Problem("post.planned", "How files are uploaded cannot be changed while it is scheduled.")
        if before.status not in EDITABLE:
            raise frozen(before)
        try:
            await EDIT.one(connection, post, owner, *fields.columns())
        except asyncpg.CheckViolationError as refused:
            raise explained(refused, before) from None
        await still_ready(connection, owner, post)
        return await show(connection, owner, post)


async def ready(database: Database, owner: str, post: UUID) -> None:
    """Declare a post ready: it needs a title and a confirmed file, an article a body; every file must be confirmed."""
    async with database.transaction(owner, "it is ready") as connection:
        found = await locked(connection, owner, post)
        if found.status != PostStatus.REVIEW:
            raise Problem(
                "post.not_in_review", f"Only a post in review can be declared ready; this one is {_is(found)}."
            )
        if missing := lacks(found, await FILES.all(connection, post)):
            raise missing
        await APPROVE.one(connection, post)


async def reopen(database: Database, owner: str, post: UUID) -> None:
    """Take a draft back into review, or a post that failed back to its author as a draft."""
    async with database.transaction(owner, "it needs more work") as connection:
        found = await locked(connection, owner, post)
        move = {PostStatus.DRAFT: REOPEN, PostStatus.FAILED: REWORK}.get(PostStatus(found.status))
        if move is None:
            raise Problem(
                "post.not_reopenable",
                f"Only a draft or a post that failed can be taken back; this one is {_is(found)}.",
            )
        try:
            await move.one(connection, post)
        except asyncpg.CheckViolationError:
            raise unknown() from None


async def duplicate(database: Database, owner: str, post: UUID) -> UUID:
    """Make another post of the same words and files, in review."""
    async with database.transaction(owner, f"a copy of {post}") as connection:
        made = await COPY.first(connection, post, owner)
        if made is None:
            raise missing_post()
        await COPY_FILES.run(connection, post, made.id)
        return made.id


async def show(connection: Link, owner: str, post: UUID) -> Shown:
    """Give everything about one post."""
    found = await SHOW.first(connection, post, owner)
    if found is None:
        raise missing_post()
    return Shown(found, await FILES.all(connection, post), await PUBLICATIONS.all(connection, post))


async def listed(
    connection: Link, owner: str, *, status: str | None = None, after: Listed | None = None, limit: int = 100
) -> list[Listed]:
    """Give a page of posts, the newest first, going on after the last one of the page before."""
    if status is not None and status not in set(PostStatus):
        raise Problem("post.no_such_state", f"A post is never {status!r}; it is {', '.join(PostStatus)}.")
    at, last = (after.created_at, after.id) if after else (None, None)
    return await LIST.all(connection, owner, status, at, last, limit)


async def counts(connection: Link, owner: str) -> dict[str, int]:
    """Say how many posts there are in each state."""
    return {row.status: row.posts for row in await COUNTS.all(connection, owner)}


async def find(connection: Link, owner: str, text: str) -> UUID:
    """Find a post by its id or by the first letters of it, as a person types them."""
    return picked(text, await FOUND.all(connection, *bounds(text), owner), missing_post())


async def locked(connection: Link, owner: str, post: UUID) -> Post:
    """Give a post and keep it as it is until the transaction ends."""
    found = await LOCK.first(connection, post, owner)
    if found is None:
        raise missing_post()
    return found


async def still_ready(connection: Link, owner: str, post: UUID) -> None:
    """Raise when a post that was declared ready no longer is."""
    found = await locked(connection, owner, post)
    if found.status != PostStatus.REVIEW and (missing := lacks(found, await FILES.all(connection, post))):
        raise missing


def lacks(post: Post, files: Sequence[PostFile]) -> Problem | None:
    """Say what a post still needs before it can go out; None when it is ready."""
    if not post.title.strip():
        return Problem("post.no_title", "A post needs a title.")
    if post.kind == "article" and not post.body.strip():
        return Problem("post.no_body", "An article needs a body.")
    if post.kind == "artwork" and not files:
        return Problem("post.no_file", "A post needs at least one file.")
    if unconfirmed := next((file for file in files if not file.confirmed), None):
        return Problem(
            "post.unconfirmed_file", f"The bytes of {unconfirmed.name!r} are not here, or not confirmed yet."
        )
    return None


def explained(refused: asyncpg.CheckViolationError, post: Post) -> Exception:
    """Turn a refusal of the database into a sentence; one that nobody expected stays what it is."""
    return frozen(post) if refused.constraint_name == "post_frozen" else refused


def frozen(post: Post) -> Problem:
    """Say why a post cannot be changed."""
    if post.status == PostStatus.PUBLISHED:
        return Problem("post.published", "A published post cannot be changed; duplicate it.")
    if post.status in {PostStatus.UPLOADING, PostStatus.PUBLISHING}:
        return Problem("post.on_its_way", "It is on its way and cannot be changed now; cancel it first, or wait.")
    return unknown()


def unknown() -> Problem:
    """Say that nobody knows whether it is out."""
    return Problem(
        "post.unknown", "Nobody can tell whether it is out somewhere; look at the platform and resolve that first."
    )


def missing_post() -> Problem:
    """Say that there is no such post."""
    return Problem("post.missing", "There is no such post.")


def _is(post: Post) -> str:
    return f"in {post.status}" if post.status == PostStatus.REVIEW else post.status
