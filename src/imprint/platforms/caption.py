"""A caption: the one text that a platform without titles gets, made of title, description, link and tags.

Whoever writes a text for a platform gets exactly that. What is made here always fits where it can: first the
description is shortened, then hashtags are left out; title and link stay.
"""

import re
from collections.abc import Callable, Sequence
from unicodedata import category

from imprint.platforms.graphemes import graphemes
from imprint.platforms.work import Work

Fits = Callable[[str], bool]

BETWEEN = "\n\n"
SHORTENED = "…"
# What is left of a description must be worth reading.
SHORTEST = 20


def caption(work: Work, fits: Fits, link: str | None = None) -> str:
    """Write the text of a work that fits, as long as its title and link do."""
    tags = hashtags(work.tags, work.description)
    head, tail = work.title, link or ""
    while tags and not fits(_joined(head, "", tail, tags)):
        tags = tags[:-1]

    def whole(description: str) -> str:
        return _joined(head, description, tail, tags)

    if fits(whole(work.description)):
        return whole(work.description)
    return whole(_shortened(work.description, lambda some: fits(whole(some))))


def unshortened(work: Work, link: str | None = None) -> str:
    """Write the text of a work with everything in it, however long."""
    return _joined(work.title, work.description, link or "", hashtags(work.tags, work.description))


def hashtags(tags: Sequence[str], besides: str = "") -> list[str]:
    """Write tags as hashtags, each once: words run together, and no tag is a number; not what a text has already."""
    there = {_words(each)[0].casefold() for each in re.findall(r"#(\S+)", besides) if _words(each)}
    found: dict[str, str] = {}
    for tag in tags:
        words = _words(tag)
        plain = words[0] if len(words) == 1 else "".join(word[:1].upper() + word[1:] for word in words)
        if any(letter.isalpha() for letter in plain) and plain.casefold() not in there:
            found.setdefault(plain.casefold(), f"#{plain}")
    return list(found.values())


def _words(text: str) -> list[str]:
    """Give what of a text can stand in a hashtag: letters with their marks, digits, underscores."""
    return "".join(
        letter if letter.isalnum() or letter == "_" or category(letter).startswith("M") else " " for letter in text
    ).split()


def _joined(title: str, description: str, link: str, tags: Sequence[str]) -> str:
    parts = (title, description.strip(), link, " ".join(tags))
    return BETWEEN.join(part for part in parts if part)


def _shortened(text: str, fits: Fits) -> str:
    """Give the longest beginning that fits with its dots, cut between words where there are some."""
    letters = graphemes(text.strip())
    low, high = 0, len(letters)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits("".join(letters[:middle]) + SHORTENED) else (low, middle - 1)
    if low < SHORTEST:
        return ""
    kept = "".join(letters[:low]).rstrip()
    if low < len(letters) and not letters[low - 1].isspace() and not letters[low].isspace():
        kept = re.sub(r"\s+\S*\Z", "", kept) or kept
    kept = kept.rstrip(" \t\n,;:–—-")  # noqa: RUF001 - dashes
    return kept + SHORTENED
