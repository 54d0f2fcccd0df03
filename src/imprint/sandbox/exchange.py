"""An exchange as a simulated site sees it: the call that came in, and the reply that goes out."""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qsl

from imprint.sandbox.multipart import Part, parts


@dataclass(frozen=True)
class Call:
    """A request that has been read whole; `path` is the one inside the site, header names are in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    query_pairs: tuple[tuple[str, str], ...]
    headers: Mapping[str, str]
    body: bytes
    base_url: str
    # What a lagging look-up does not show yet: everything younger than so many seconds.
    lag: float = 0

    def form(self) -> list[tuple[str, str]]:
        """Give the fields of a form, a multipart one without its files."""
        if self.type == "application/x-www-form-urlencoded":
            return parse_qsl(self.body.decode("utf-8", "replace"), keep_blank_values=True)
        return [(part.name, part.text) for part in self.parts() if part.filename is None]

    def parts(self) -> list[Part]:
        """Give the parts of a multipart body."""
        return parts(self.headers.get("content-type", ""), self.body)

    @property
    def type(self) -> str:
        """Give the media type of the body without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


@dataclass(frozen=True)
class Reply:
    """What is answered."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    def packed(self) -> "Reply":
        """Compress the body."""
        return replace(self, body=gzip.compress(self.body, 1), headers={**self.headers, "Content-Encoding": "gzip"})

    def with_headers(self, **more: str) -> "Reply":
        """Add headers; an underscore stands for a dash."""
        return replace(self, headers={**self.headers, **{name.replace("_", "-"): more[name] for name in more}})


def json_reply(data: object, status: int = 200) -> Reply:
    """Answer with JSON."""
    return Reply(status, json.dumps(data).encode(), {"Content-Type": "application/json"})


def html_reply(text: str, status: int = 200) -> Reply:
    """Answer with a page that can load nothing from elsewhere."""
    policy = "default-src 'none'; img-src 'self'; style-src 'unsafe-inline'"
    return Reply(status, text.encode(), {"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy})
