"""A snapshot: exactly what a publication sends, frozen when its intent is made, and the hash of it.

Whatever is edited afterwards, every attempt of that intent sends the same. The text is canonical JSON, so that the same
content has the same hash on every machine.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from typing import Any
from uuid import UUID

from imprint.platforms.work import Bytes, File, Work
from imprint.problem import Problem
from imprint.store.query import Link, query
from imprint.work.post import FILES, SHOW, Post, PostFile, lacks, locked, missing_post
from imprint.work.post_fields import OVERRIDABLE, Overridden
from imprint.work.stores import Place


@dataclass(frozen=True)
class Sending:
    """What a publication is: one post, or one file of it, on one account."""

    publication_id: UUID
    post_id: UUID
    owner: str
    account_id: UUID
    platform: str
    file_id: UUID | None


OF = query("post_of_publication", Sending)


@dataclass(frozen=True)
class Snapshot:
    """The text that is stored, and its hash."""

    text: str = field(repr=False)
    sha256: str

    @cached_property
    def data(self) -> dict[str, Any]:
        """Give it as data."""
        data: dict[str, Any] = json.loads(self.text)
        return data

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "Snapshot":
        """Write data as canonical JSON."""
        text = canonical(data)
        return cls(text, sha256(text.encode()).hexdigest())

    def work(self, opened: Callable[[UUID], Bytes]) -> Work:
        """Make the work that is sent; `opened` gives the bytes of a content. What is sent follows from the text."""
        if sha256(self.text.encode()).hexdigest() != self.sha256:
            raise Problem("snapshot.changed", "What was to be sent is not what was written down; it is not sent.")
        data = self.data
        return Work(
            key=data["key"],
            made_at=datetime.fromisoformat(data["madeAt"]),
            title=data["title"],
            description=data["description"],
            tags=tuple(data["tags"]),
            category_path=data["categoryPath"],
            is_mature=data["isMature"],
            mature_level=data["matureLevel"],
            mature_classification=tuple(data["matureClassification"]),
            gallery_ids=tuple(data["galleryIds"]),
            allow_comments=data["allowComments"],
            allow_free_download=data["allowFreeDownload"],
            is_ai_generated=data["isAiGenerated"],
            no_ai=data["noAi"],
            display_resolution=data["displayResolution"],
            options=data["options"],
            files=tuple(
                File(
                    name=each["name"],
                    type=each["type"],
                    size=each["size"],
                    sha256=each["sha256"],
                    open=opened(UUID(each["contentId"])),
                    alt=each["alt"],
                    width=each["width"],
                    height=each["height"],
                )
                for each in data["files"]
            ),
        )


def canonical(data: Mapping[str, Any]) -> str:
    """Write data so that the same data is always the same text: sorted names, no spaces, no NaN."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


async def frozen(
    connection: Link, sending: Sending, made_at: datetime, most: int | None
) -> tuple[Snapshot, dict[UUID, Place]]:
    """Freeze what a publication sends, in the transaction that claims it; and say where the bytes of its files are.

    `most` is how many files the account takes in one post; None: as many as there are.
    From its claim on nobody can change the post, and the claim has the post's row locked: an edit either came before
    and is in it, or comes after and is refused.
    """
    post = await locked(connection, sending.owner, sending.post_id)
    files = await _files(connection, post)
    places = {
        each.content_id: Place(each.store, each.key, each.size, each.sha256)
        for each in files
        if each.store and each.key and each.sha256 and each.size is not None
    }
    return Snapshot.of(described(sending, post, files, made_at, most)), places


async def look(connection: Link, publication: UUID, made_at: datetime, most: int | None) -> Snapshot:
    """Give what a publication would send if it left now; nothing is locked."""
    sending = await _sending(connection, publication)
    post = await SHOW.first(connection, sending.post_id, sending.owner)
    if post is None:
        raise missing_post()
    return Snapshot.of(described(sending, post, await _files(connection, post), made_at, most))


async def _sending(connection: Link, publication: UUID) -> Sending:
    found = await OF.first(connection, publication)
    if found is None:
        raise _missing()
    return found


async def _files(connection: Link, post: Post) -> list[PostFile]:
    """Give the files of a post that can be sent."""
    files = await FILES.all(connection, post.id)
    if missing := lacks(post, files):
        raise missing
    return files


def described(
    sending: Sending, post: Post, files: Sequence[PostFile], made_at: datetime, most: int | None
) -> dict[str, Any]:
    """Put together what one account gets of a post: words of its own or its platform's, and the files it takes."""
    written = {name: value for name, value in post.fields().items() if name in OVERRIDABLE}
    others = post.fields()["overrides"]
    own = others.get(sending.platform, {}) | others.get(str(sending.account_id), {})
    fields = Overridden.model_validate(written | {name: value for name, value in own.items() if name in OVERRIDABLE})
    words = fields.model_dump(mode="json", by_alias=True)
    body = words.pop("body")
    return {
        **words,
        "description": body if post.kind == "article" else words["description"],
        "key": str(sending.publication_id),
        "madeAt": made_at.astimezone(UTC).isoformat(),
        "kind": post.kind,
        "platform": sending.platform,
        "accountId": str(sending.account_id),
        "postId": str(post.id),
        "revision": post.revision,
        "options": {name: value for name, value in own.items() if name not in OVERRIDABLE},
        "files": [_file(each) for each in chosen(sending, files, most)],
    }


def chosen(sending: Sending, files: Sequence[PostFile], most: int | None) -> Sequence[PostFile]:
    """Pick the files of a publication: its own one, or of all as many as the account takes, the first ones."""
    if sending.file_id is not None:
        return [each for each in files if each.id == sending.file_id]
    return files[:most]


def _file(file: PostFile) -> dict[str, Any]:
    return {
        "fileId": str(file.id),
        "contentId": str(file.content_id),
        "name": file.name,
        "type": file.content_type,
        "size": file.size,
        "sha256": file.sha256,
        "alt": file.alt,
        "width": file.width,
        "height": file.height,
    }


def _missing() -> Problem:
    return Problem("publication.missing", "There is no such publication.")
