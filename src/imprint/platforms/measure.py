"""Measures: how much of a platform's room a work takes, counted as the platform counts; also of what does not fit."""

from collections.abc import Iterator
from dataclasses import dataclass

from imprint.platforms.caption import unshortened
from imprint.platforms.limits import Limits
from imprint.platforms.work import Work


@dataclass(frozen=True)
class Measure:
    """One thing that a platform counts: how much there is, and how much it takes."""

    what: str
    used: int
    most: int
    unit: str
    # What is too long is shortened by itself, and need not be mended by a person.
    shortened: bool = False

    @property
    def fits(self) -> bool:
        """Say whether it is little enough."""
        return self.used <= self.most


def measures(limits: Limits, work: Work) -> list[Measure]:
    """Measure everything of a work that the platform has a limit for."""
    return [*_texts(limits, work), *_counts(limits, work)]


def _texts(limits: Limits, work: Work) -> Iterator[Measure]:
    for what, text, limit in (
        ("title", work.title, limits.title),
        ("description", work.description, limits.description),
    ):
        if limit is not None:
            yield Measure(what, limit.length(text), limit.most, limit.unit)
    if work.options.get("thread"):  # it has as many posts as it needs
        return
    own, link, warning = (_text(work, name) for name in ("text", "link", "contentWarning"))
    text = unshortened(work, link) if own is None else own
    for limit in limits.text:
        used = limit.length(limits.counted(text)) + limit.length(warning or "")
        yield Measure("text", used, limit.most, limit.unit, shortened=own is None)


def _text(work: Work, option: str) -> str | None:
    given = work.options.get(option)
    return given if isinstance(given, str) else None


def _counts(limits: Limits, work: Work) -> Iterator[Measure]:
    if limits.tags is not None:
        yield Measure("tags", len(work.tags), limits.tags, "tags")
    if limits.most_files is not None:
        yield Measure("files", len(work.files), limits.most_files, "files")
    if limits.bytes is not None and work.files:
        # A file that is too large is made smaller, as long as it is a picture.
        yield Measure("largest file", max(file.size for file in work.files), limits.bytes, "bytes", shortened=True)
