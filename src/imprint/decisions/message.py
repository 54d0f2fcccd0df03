"""What a message says that tells a person of new chapters."""

from collections.abc import Sequence
from dataclasses import dataclass

MOST_LINES = 20  # what a phone shows and every service takes
LONGEST_LINE = 300


@dataclass(frozen=True)
class News:
    """A new chapter, as a person is told of it; `label` is its number, `title` and `url` may be empty."""

    series: str
    label: str
    title: str
    url: str


@dataclass(frozen=True)
class Message:
    """What is sent: a line above, and the text."""

    title: str
    body: str


def message(news: Sequence[News]) -> Message:
    """Write the message for some news, of one series or of several; the order is kept."""
    if not news:
        raise ValueError("nothing is no news")
    series = list(dict.fromkeys(each.series for each in news))
    if len(news) == 1:
        one = news[0]
        return Message(
            _short(f"{one.series} {one.label}"), "\n".join(filter(None, (_short(one.title), one.url))) or one.label
        )
    if len(series) == 1:
        above = f"{series[0]}: {len(news)} new chapters"
    else:
        above = f"{len(news)} new chapters in {len(series)} series"
    lines = [_line(each, named=len(series) > 1) for each in news[:MOST_LINES]]
    if len(news) > MOST_LINES:
        lines.append(f"and {len(news) - MOST_LINES} more")
    return Message(_short(above), "\n".join(lines))


def _line(news: News, *, named: bool) -> str:
    said = f"{news.series} {news.label}" if named else news.label
    told = f"{said}: {news.title}" if news.title else said
    return f"{_short(told)} {news.url}".strip()


def _short(text: str) -> str:
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= LONGEST_LINE else one_line[: LONGEST_LINE - 1] + "…"
