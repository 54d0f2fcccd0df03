"""A work: what one publication sends, frozen when the intent is made, so that every attempt sends the same."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Literal

from imprint.platforms.failure import Refused

Bytes = Callable[[], AsyncIterator[bytes]]


@dataclass(frozen=True)
class File:
    """A file of a work; `name` is only a label, the bytes come from `open` and are held to size and hash."""

    name: str
    type: str
    size: int
    sha256: str
    open: Bytes = field(repr=False, compare=False)
    alt: str = ""
    width: int | None = None
    height: int | None = None

    async def read(self) -> AsyncIterator[bytes]:
        """Give the bytes; the last of them only once all have proved to be what was promised.

        A receiver that was told the size therefore never gets a complete file with the wrong bytes in it.
        """
        seen, size, last = sha256(), 0, b""
        async for chunk in self.open():
            if not chunk:
                continue
            size += len(chunk)
            if size > self.size:
                break
            if last:
                yield last
            seen.update(chunk)
            last = chunk
        if size != self.size or seen.hexdigest() != self.sha256:
            raise Refused("file.changed", f"The file {self.name!r} is no longer what it was when it was confirmed.")
        if last:
            yield last


@dataclass(frozen=True)
class RemoteFile:
    """A file that a platform has taken; stored as it is, so that a retry does not upload again."""

    id: str  # whatever the platform calls it; numbers too, as text: they may be larger than other programs can hold
    sha256: str
    data: str = ""  # more that the platform wants back as it was, as JSON: Bluesky's blob object


@dataclass(frozen=True)
class Work:
    """One post for one account; `key` is the once-key and never changes for a publication.

    `made_at` is fixed with the rest and is the moment a platform is told, where one wants to be told (Bluesky).
    `options` are the overrides for this platform that are no fields of a post: each adapter has a type for its own.
    `prepared` is what the platform's `prepare` has found there: the number of a tag, the id of somebody mentioned.
    """

    key: str
    made_at: datetime
    title: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    category_path: str | None = None
    is_mature: bool = False
    mature_level: Literal["strict", "moderate"] | None = None
    mature_classification: tuple[str, ...] = ()
    gallery_ids: tuple[str, ...] = ()
    allow_comments: bool = True
    allow_free_download: bool = False
    is_ai_generated: bool = False
    no_ai: bool = False
    display_resolution: int = 0
    options: Mapping[str, object] = field(default_factory=dict)
    files: tuple[File, ...] = ()
    uploads: tuple[RemoteFile, ...] = ()
    prepared: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what could not be told apart from another work, or dated."""
        if not self.key:
            raise ValueError("a work has a once-key")
        if self.made_at.tzinfo is None:
            raise ValueError("a work is made at a moment, and that has a zone")

    def uploaded(self, file: File) -> RemoteFile | None:
        """Give what the platform made of a file, None while it has not been uploaded."""
        return next((each for each in self.uploads if each.sha256 == file.sha256), None)

    def with_upload(self, remote: RemoteFile) -> "Work":
        """Give the same work with one more file uploaded."""
        return replace(self, uploads=(*self.uploads, remote))

    def with_prepared(self, found: Mapping[str, str]) -> "Work":
        """Give the same work with more that is known of it at the platform."""
        return replace(self, prepared={**self.prepared, **found})

    def as_data(self) -> dict[str, object]:
        """Give the work as people and other programs read it, in camelCase, without what belongs to one platform."""
        return {
            "title": self.title,
            "description": self.description,
            "tags": list(self.tags),
            "categoryPath": self.category_path,
            "isMature": self.is_mature,
            "matureLevel": self.mature_level,
            "matureClassification": list(self.mature_classification),
            "isAiGenerated": self.is_ai_generated,
            "noAi": self.no_ai,
            "madeAt": self.made_at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
            "files": [
                {"name": each.name, "type": each.type, "size": each.size, "sha256": each.sha256, "alt": each.alt}
                for each in self.files
            ],
        }
