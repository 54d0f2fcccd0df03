"""Limits: what a platform takes, as data; and what of a work does not fit."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from unicodedata import combining

from imprint.platforms.graphemes import count
from imprint.platforms.work import File, Work


class Unit(StrEnum):
    """What a platform counts when it measures a text."""

    CHARACTERS = "characters"
    BYTES = "bytes"
    GRAPHEMES = "graphemes"  # what a person takes for one character, however many it is made of


@dataclass(frozen=True)
class TextLimit:
    """How long a text may be, counted as the platform counts."""

    most: int
    unit: Unit = Unit.CHARACTERS

    def length(self, text: str) -> int:
        """Measure a text."""
        match self.unit:
            case Unit.BYTES:
                return len(text.encode("utf-8", "replace"))
            case Unit.GRAPHEMES:
                return count(text)
            case _:
                return len(text)

    def fits(self, text: str) -> bool:
        """Say whether a text is short enough."""
        return self.length(text) <= self.most


@dataclass(frozen=True)
class Limits:
    """What a platform takes; None is no limit. Types empty: any type."""

    types: frozenset[str] = frozenset()
    least_files: int = 0
    most_files: int | None = None
    bytes: int | None = None
    edge: int | None = None
    pixels: int | None = None
    title: TextLimit | None = None
    description: TextLimit | None = None
    # Of platforms that know one text only: all of these hold for it.
    text: tuple[TextLimit, ...] = ()
    tags: int | None = None
    tag: TextLimit | None = None
    needs_title: bool = False
    needs_alt: bool = False
    # What of the one text is counted: some platforms take every link for equally long.
    counted: Callable[[str], str] = field(default=str, repr=False)


@dataclass(frozen=True)
class Misfit:
    """Something of a work that a platform will not take; `rendition` when a smaller or other image would do."""

    code: str
    sentence: str
    rendition: bool = False


def misfits(name: str, limits: Limits, work: Work) -> list[Misfit]:
    """List everything of a work that is outside the limits of the platform of that name."""
    return [*_texts(name, limits, work), *_counts(name, limits, work), *_files(name, limits, work)]


def _texts(name: str, limits: Limits, work: Work) -> Iterator[Misfit]:
    if limits.needs_title and not _visible(work.title):
        yield Misfit("fit.no_title", f"{name} wants a title.")
    for what, text, limit in (
        ("title", work.title, limits.title),
        ("description", work.description, limits.description),
    ):
        if limit is not None and (length := limit.length(text)) > limit.most:
            yield Misfit(
                f"fit.long_{what}", f"The {what} has {length} {limit.unit}; {name} takes {limit.most} at most."
            )
    for tag in work.tags:
        if limits.tag is not None and limits.tag.length(tag) > limits.tag.most:
            yield Misfit("fit.long_tag", f"The tag {tag!r} is longer than the {limits.tag.most} that {name} takes.")


def _counts(name: str, limits: Limits, work: Work) -> Iterator[Misfit]:
    if limits.tags is not None and len(work.tags) > limits.tags:
        yield Misfit("fit.many_tags", f"There are {len(work.tags)} tags; {name} takes {limits.tags} at most.")
    if len(work.files) < limits.least_files:
        yield Misfit("fit.few_files", f"{name} wants {limits.least_files} file; there are {len(work.files)}.")
    if limits.most_files is not None and len(work.files) > limits.most_files:
        yield Misfit("fit.many_files", f"There are {len(work.files)} files; {name} takes {limits.most_files} at most.")


def _files(name: str, limits: Limits, work: Work) -> Iterator[Misfit]:
    for file in work.files:
        if limits.types and file.type not in limits.types:
            yield Misfit("fit.type", f"{name} does not take {file.type} ({file.name}).", rendition=True)
        if limits.bytes is not None and file.size > limits.bytes:
            yield Misfit(
                "fit.large", f"{file.name} has {file.size} bytes; {name} takes {limits.bytes}.", rendition=True
            )
        if limits.needs_alt and not _visible(file.alt):
            yield Misfit("fit.no_alt", f"{name} wants a description of {file.name} for those who cannot see it.")
        yield from _pixels(name, limits, file)


def _pixels(name: str, limits: Limits, file: File) -> Iterator[Misfit]:
    if file.width is None or file.height is None:
        return
    if limits.edge is not None and max(file.width, file.height) > limits.edge:
        yield Misfit("fit.edge", f"{file.name} is longer than the {limits.edge} px that {name} takes.", rendition=True)
    if limits.pixels is not None and file.width * file.height > limits.pixels:
        yield Misfit("fit.pixels", f"{file.name} has more pixels than {name} takes.", rendition=True)


def _visible(text: str) -> bool:
    return any(letter.isprintable() and not letter.isspace() and not combining(letter) for letter in text)
