"""The text of a Bluesky post: how long it may be, what in it is a link, a mention or a tag, and where a thread breaks.

Bluesky marks what is special in a text from outside, by facets: from which byte of its UTF-8 up to which, the end not
included.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from unicodedata import category

from imprint.platforms.graphemes import count, graphemes
from imprint.platforms.limits import TextLimit, Unit

MOST = (TextLimit(300, Unit.GRAPHEMES), TextLimit(3000, Unit.BYTES))
LONGEST_TAG = 64
MOST_TAG_BYTES = 640
_LINK = re.compile(r"(?:^|(?<=[\s(]))https?://[^\s<>\"]+", re.IGNORECASE)
_MENTION = re.compile(
    r"(?:^|(?<=[\s(]))@((?:[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)+[a-zA-Z](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)"
)
_TAG = re.compile(r"(?:^|(?<=\s))[#＃]([^\s\u00ad\u2060\u200a-\u200d\u20e2]+)")  # noqa: RUF001 - the other number sign
_CLOSING = ".,;:!?'\"“”’»"  # noqa: RUF001 - what ends a sentence, not a link
# Where a thread breaks, the best place first; what is kept before it must be at least so much of the whole.
_BREAKS = (re.compile(r"\n\s*\n"), re.compile(r"(?<=[.!?…])\s+"), re.compile(r"\s+"))
_LEAST_OF_A_PART = 0.5


@dataclass(frozen=True)
class Mark:
    """Something special in a text: from one character up to another, and what it is."""

    start: int
    end: int
    kind: str
    value: str


def fits(text: str) -> bool:
    """Say whether one post can hold a text."""
    return all(limit.fits(text) for limit in MOST)


def marks(text: str) -> list[Mark]:
    """Find links, mentions and tags, in their order; none reaches into another."""
    found: list[Mark] = []
    for mark in sorted([*_links(text), *_mentions(text), *_tags(text)], key=lambda each: (each.start, -each.end)):
        if not found or mark.start >= found[-1].end:
            found.append(mark)
    return found


def mentioned(text: str) -> list[str]:
    """Name the handles that a text mentions, each once."""
    return list(dict.fromkeys(mark.value for mark in marks(text) if mark.kind == "mention"))


def facets(text: str, dids: Mapping[str, str]) -> list[dict[str, object]]:
    """Write what is special in a text as facets; who is mentioned and not known stays plain text."""
    made: list[dict[str, object]] = []
    for mark in marks(text):
        match mark.kind:
            case "link":
                feature = {"$type": "app.bsky.richtext.facet#link", "uri": mark.value}
            case "tag":
                feature = {"$type": "app.bsky.richtext.facet#tag", "tag": mark.value}
            case _ if dids.get(mark.value):
                feature = {"$type": "app.bsky.richtext.facet#mention", "did": dids[mark.value]}
            case _:
                continue
        index = {"byteStart": _bytes(text[: mark.start]), "byteEnd": _bytes(text[: mark.end])}
        made.append({"$type": "app.bsky.richtext.facet", "index": index, "features": [feature]})
    return made


def parts(text: str) -> list[str]:
    """Break a text into posts that fit, between paragraphs, sentences or words; a word that is too long is cut."""
    found: list[str] = []
    rest = text.strip()
    while rest and not fits(rest):
        kept = _broken(_longest(rest))
        found.append(kept.rstrip())
        rest = rest[len(kept) :].strip()
    return [*found, rest] if rest or not found else found


def _longest(text: str) -> str:
    """Give the longest beginning that fits, a few characters more where the next one is a space."""
    letters = graphemes(text)
    low, high = 1, len(letters)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits("".join(letters[:middle])) else (low, middle - 1)
    spaces = 0
    while low + spaces < len(letters) and letters[low + spaces].isspace():
        spaces += 1
    return "".join(letters[: low + spaces])


def _broken(piece: str) -> str:
    if piece[-1:].isspace():
        return piece
    for where in _BREAKS:
        ends = [found.end() for found in where.finditer(piece) if found.end() >= len(piece) * _LEAST_OF_A_PART]
        if ends:
            return piece[: ends[-1]]
    words = [found.end() for found in _BREAKS[-1].finditer(piece)]
    return piece[: words[-1]] if words else piece


def _links(text: str) -> Iterator[Mark]:
    for found in _LINK.finditer(text):
        uri = found[0].rstrip(_CLOSING)
        while uri.endswith(")") and uri.count("(") < uri.count(")"):
            uri = uri[:-1].rstrip(_CLOSING)
        if len(uri.partition("://")[2]) > 0:
            yield Mark(found.start(), found.start() + len(uri), "link", uri)


def _mentions(text: str) -> Iterator[Mark]:
    for found in _MENTION.finditer(text):
        yield Mark(found.start(), found.end(), "mention", found[1].lower())


def _tags(text: str) -> Iterator[Mark]:
    for found in _TAG.finditer(text):
        tag = found[1]
        while tag and category(tag[-1]).startswith("P"):
            tag = tag[:-1]
        said = any(not letter.isdigit() and not category(letter).startswith("P") for letter in tag)
        if said and count(tag) <= LONGEST_TAG and _bytes(tag) <= MOST_TAG_BYTES:
            yield Mark(found.start(), found.start() + 1 + len(tag), "tag", tag)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
