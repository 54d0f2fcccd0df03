"""Upload URLs: the right to send one object, for a while, carried by whoever has the URL.

A local store has URLs of our own: `…/TOKEN`, where the token is what was granted and an HMAC-SHA256 over it, both in
letters that no proxy rewrites. What is signed is exactly what is sent: there is no second form to disagree with.
An S3 store has URLs that its server checks; they carry neither size nor type, and what comes is not an object yet:
`Blobs.accept` makes it one when it keeps the promise.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol
from urllib.parse import urlsplit
from uuid import uuid4

from imprint.blobs.key import is_key
from imprint.blobs.ring import Ring
from imprint.blobs.s3 import S3Blobs
from imprint.problem import Problem

_PURPOSE = b"imprint upload url 1\0"  # keeps a signature made for anything else from ever fitting here
_TOKEN = re.compile(r"([A-Za-z0-9_-]{1,2000})\.([A-Za-z0-9_-]{43})")
_METHOD = re.compile(r"[A-Z]{3,7}")
_TYPE = re.compile(r"[!-~]{1,100}/[!-~]{1,100}")
_OWNER = re.compile(r"[!-~]{1,200}")
_NONCE = re.compile(r"[0-9a-f]{32}")
_MOST = 5 * 1024**4  # the largest object S3 knows


class BadUpload(Problem):
    """This URL gives no right to what was tried with it, or cannot be made."""


@dataclass(frozen=True)
class Grant:
    """The right to send one object.

    It can be used once: before taking the bytes, the caller marks the nonce as used in the row it was kept in when
    the URL was given out (`… SET used_at = … WHERE nonce = $1 AND used_at IS NULL`; zero rows: refuse). Should that
    ever fail, the store still refuses a second object with the same key.
    """

    key: str
    size: int
    content_type: str
    owner: str
    expires: datetime
    nonce: str = field(default_factory=lambda: uuid4().hex)
    method: str = "PUT"

    def __post_init__(self) -> None:
        """Refuse what could not be written into a URL and read again as the same."""
        fine = (
            _METHOD.fullmatch(self.method)
            and is_key(self.key)
            and 0 <= self.size <= _MOST
            and _TYPE.fullmatch(self.content_type)
            and _OWNER.fullmatch(self.owner)
            and _NONCE.fullmatch(self.nonce)
            and self.expires.tzinfo is UTC
            and not self.expires.microsecond
        )
        if not fine:
            raise BadUpload("upload.bad_request", "Nothing like this can be uploaded.")


class Uploads(Protocol):
    """Gives out URLs by which clients send objects."""

    async def url(self, grant: Grant, now: datetime) -> str:
        """Make the URL for a grant; now is the database's."""
        ...


class LocalUploads:
    """Signs URLs of our own and recognises them."""

    def __init__(self, ring: Ring, base: str) -> None:
        self._ring = ring
        self._base = base.rstrip("/")

    def at(self, base: str) -> "LocalUploads":
        """Sign with the same keys for another address of ours."""
        return LocalUploads(self._ring, base)

    async def url(self, grant: Grant, now: datetime) -> str:
        """Sign."""
        _left(grant, now)
        packed = pack(grant)
        return f"{self._base}/{_letters(packed)}.{_letters(self._ring.sign(_PURPOSE + packed))}"

    def grant(self, method: str, target: str, now: datetime) -> Grant:
        """Read the grant out of a request's method and target (path and query, as they came); refuse any other.

        Whether it was used before is for the caller to find out: see Grant.
        """
        folder = f"{urlsplit(self._base).path}/"
        parts = _TOKEN.fullmatch(target.removeprefix(folder)) if target.startswith(folder) else None
        packed, signature = (_bytes(part) for part in parts.groups()) if parts else (None, None)
        if not packed or not signature or not self._ring.verifies(_PURPOSE + packed, signature):
            raise BadUpload("upload.refused", "This upload URL is not one that was given out.")
        grant = unpack(packed)
        if method != grant.method:
            raise BadUpload("upload.refused", f"This upload URL is for {grant.method} and for nothing else.")
        _left(grant, now)
        return grant


class S3Uploads:
    """Lets the store sign."""

    def __init__(self, blobs: S3Blobs) -> None:
        self._blobs = blobs

    async def url(self, grant: Grant, now: datetime) -> str:
        """Sign; the server's clock decides when the time is over."""
        return await self._blobs.upload_url(grant.key, _left(grant, now))


def _left(grant: Grant, now: datetime) -> timedelta:
    left = grant.expires - now
    if left <= timedelta(0):
        raise BadUpload("upload.expired", "The time for this upload is over; ask for a new URL.")
    return left


def pack(grant: Grant) -> bytes:
    """Write a grant, each field with its length before it: no two grants are ever written the same."""
    fields = (
        grant.method,
        grant.key,
        str(grant.size),
        grant.content_type,
        str(int(grant.expires.timestamp())),
        grant.owner,
        grant.nonce,
    )
    return b"".join(len(each).to_bytes(2) + each.encode("ascii") for each in fields)


def unpack(packed: bytes) -> Grant:
    """Read what `pack` has written."""
    fields = []
    while packed:
        length = int.from_bytes(packed[:2])
        fields.append(packed[2 : 2 + length].decode("ascii"))
        packed = packed[2 + length :]
    method, key, size, content_type, expires, owner, nonce = fields
    return Grant(
        key=key,
        size=int(size),
        content_type=content_type,
        owner=owner,
        expires=datetime.fromtimestamp(int(expires), UTC),
        nonce=nonce,
        method=method,
    )


def _letters(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def _bytes(letters: str) -> bytes | None:
    """Read letters; None when the same bytes would be written differently, as the last letter leaves room for."""
    try:
        data = urlsafe_b64decode(letters + "=" * (-len(letters) % 4))
    except Error:
        return None
    return data if _letters(data) == letters else None
