"""A request: what is sent, as one value: the same one is previewed, hashed and sent.

Secrets are kept as SecretStr until the moment of sending, so that neither a preview nor a repr can show one.
"""

import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Protocol, TypeAlias
from urllib.parse import quote_plus, urlsplit

from pydantic import SecretStr

from imprint.platforms.work import File

Value: TypeAlias = str | SecretStr
Fields: TypeAlias = tuple[tuple[str, Value], ...]
Progress: TypeAlias = Callable[[int], None]

HIDDEN = "**********"
# Some platforms turn away whoever does not say who it is, or does not take compressed answers.
ALWAYS: Fields = (("User-Agent", "Imprint/1"), ("Accept-Encoding", "gzip"), ("Connection", "close"))
_UNSAFE = re.compile(r'[\x00-\x1f\x7f"\\]')


class Later(str):
    """What stands in a preview for a value that is known only when the time comes: an id, a signature."""

    __slots__ = ()


class Body(Protocol):
    """What follows the headers; its type and size are known before the first byte."""

    @property
    def type(self) -> str:
        """Give the media type."""
        ...

    @property
    def size(self) -> int:
        """Give the number of bytes."""
        ...

    def stream(self, progress: Progress) -> AsyncIterator[bytes]:
        """Give the bytes; tell how many of a file have gone as they go."""
        ...

    def shown(self) -> object:
        """Describe the body to a person, as plain data without secrets."""
        ...


@dataclass(frozen=True)
class Text:
    """A body that is held as it is: JSON; not `known` while something in it only stands for what is still to come."""

    data: bytes
    type: str = "application/json"
    known: bool = True

    @property
    def size(self) -> int:
        """Give the number of bytes."""
        return len(self.data)

    async def stream(self, progress: Progress) -> AsyncIterator[bytes]:
        """Give the bytes."""
        del progress
        yield self.data

    def shown(self) -> object:
        """Describe the body to a person."""
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True)
class Form:
    """A body of names and values."""

    fields: Fields
    type: str = "application/x-www-form-urlencoded"

    @property
    def size(self) -> int:
        """Give the number of bytes."""
        return len(self._data())

    async def stream(self, progress: Progress) -> AsyncIterator[bytes]:
        """Give the bytes."""
        del progress
        yield self._data()

    def shown(self) -> object:
        """Describe the body to a person."""
        return [[name, shown(value)] for name, value in self.fields]

    def _data(self) -> bytes:
        return "&".join(f"{quote_plus(name)}={quote_plus(revealed(value))}" for name, value in self.fields).encode()


@dataclass(frozen=True)
class Multipart:
    """A body of names and values and one file; the boundary follows from the content, so that it can be previewed."""

    fields: Fields
    part: str
    file: File
    key: str

    @property
    def boundary(self) -> str:
        """Give the line between the parts."""
        return sha256(f"imprint {self.key} {self.file.sha256}".encode()).hexdigest()[:32]

    @property
    def type(self) -> str:
        """Give the media type."""
        return f"multipart/form-data; boundary={self.boundary}"

    @property
    def size(self) -> int:
        """Give the number of bytes."""
        return len(self._head()) + self.file.size + len(self._tail())

    async def stream(self, progress: Progress) -> AsyncIterator[bytes]:
        """Give the bytes; tell how many of the file have gone as they go."""
        yield self._head()
        sent = 0
        async for chunk in self.file.read():
            yield chunk
            sent += len(chunk)
            progress(sent)
        yield self._tail()

    def shown(self) -> object:
        """Describe the body to a person."""
        return [*([name, shown(value)] for name, value in self.fields), [self.part, described(self.file)]]

    def _head(self) -> bytes:
        parts = [
            f'--{self.boundary}\r\nContent-Disposition: form-data; name="{_quoted(name)}"\r\n\r\n{revealed(value)}\r\n'
            for name, value in self.fields
        ]
        parts.append(
            f'--{self.boundary}\r\nContent-Disposition: form-data; name="{_quoted(self.part)}"; '
            f'filename="{_quoted(self.file.name) or "file"}"\r\nContent-Type: {self.file.type}\r\n\r\n'
        )
        return "".join(parts).encode()

    def _tail(self) -> bytes:
        return f"\r\n--{self.boundary}--\r\n".encode()


@dataclass(frozen=True)
class Raw:
    """A body that is a file and nothing else."""

    file: File

    @property
    def type(self) -> str:
        """Give the media type."""
        return self.file.type

    @property
    def size(self) -> int:
        """Give the number of bytes."""
        return self.file.size

    async def stream(self, progress: Progress) -> AsyncIterator[bytes]:
        """Give the bytes; tell how many have gone as they go."""
        sent = 0
        async for chunk in self.file.read():
            yield chunk
            sent += len(chunk)
            progress(sent)

    def shown(self) -> object:
        """Describe the body to a person."""
        return described(self.file)


@dataclass(frozen=True)
class Request:
    """One request; `what` says in a sentence what it is for.

    An address can be a secret itself (whoever knows a webhook's may post to it): then only its host is shown.
    """

    what: str
    method: str
    url: str = field(repr=False)
    headers: Fields = ()
    body: Body | None = None
    secret_path: bool = False

    def sent_headers(self) -> list[tuple[str, str]]:
        """Give every header as it is sent, but Host; secrets included."""
        return [(name, revealed(value)) for name, value in self._all_headers()]

    async def digest(self) -> str:
        """Give the SHA-256 of the body as it is sent."""
        seen = sha256()
        if self.body is not None:
            async for chunk in self.body.stream(lambda _: None):
                seen.update(chunk)
        return seen.hexdigest()

    @property
    def known(self) -> bool:
        """Say whether every byte of the body is known already, so that its hash means something."""
        if isinstance(self.body, Text):
            return self.body.known
        fields = self.body.fields if isinstance(self.body, Form | Multipart) else ()
        return not any(isinstance(value, Later) for _, value in fields)

    def shown(self) -> dict[str, Any]:
        """Give the request as plain data for people, secrets hidden."""
        return {
            "what": self.what,
            "method": self.method,
            "url": self.shown_url,
            "headers": {name: shown(value) for name, value in self._all_headers()},
            "body": None if self.body is None else self.body.shown(),
        }

    @property
    def shown_url(self) -> str:
        """Give the address as people may see it."""
        if not self.secret_path:
            return self.url
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/{HIDDEN}"

    def _all_headers(self) -> Fields:
        content: Fields = ()
        if self.body is not None:
            content = (("Content-Type", self.body.type), ("Content-Length", str(self.body.size)))
        return (*ALWAYS, *self.headers, *content)


def shown(value: Value) -> str:
    """Show a value to a person."""
    return HIDDEN if isinstance(value, SecretStr) else value


def revealed(value: Value) -> str:
    """Give a value as it is sent."""
    return value.get_secret_value() if isinstance(value, SecretStr) else value


def described(file: File) -> dict[str, object]:
    """Describe a file to a person."""
    return {"file": file.name, "type": file.type, "size": file.size, "sha256": file.sha256}


def _quoted(name: str) -> str:
    # As browsers do it: no name can end its own quotes or begin a new header.
    return _UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}", name)
