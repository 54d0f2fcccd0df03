"""An answer: what came back, whole and decoded; and what it says about when to come again."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from imprint.platforms.failure import Evidence, NoAnswer, Stage

# Whoever asks for longer means "never"; the caller clamps much lower. A timedelta can hold it.
LONGEST = timedelta(days=366)
_DIGITS = 18


@dataclass(frozen=True)
class Answer:
    """A complete HTTP answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    @property
    def ok(self) -> bool:
        """Say whether the status claims success."""
        return 200 <= self.status <= 299  # noqa: PLR2004 - the class of statuses that means success

    @property
    def type(self) -> str:
        """Give the media type without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def json(self) -> dict[str, object]:
        """Give the body as an object; empty when it is none: adapters look for what they need and miss it."""
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def items(self) -> list[dict[str, object]]:
        """Give the objects of a body that is a list; NoAnswer when it is none: an empty list says something."""
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, list):
            raise self.not_understood("answer.no_list", "The answer is not the list it should be.")
        return [each for each in found if isinstance(each, dict)]

    def after(self) -> timedelta | None:
        """Say how long Retry-After asks to wait; counted from the answer's own Date, so that clocks may differ."""
        return retry_after(self.headers.get("retry-after"), self.headers.get("date"))

    def until(self, moment: datetime) -> timedelta:
        """Say how long it is to a moment that the answer names; by its own Date, never negative, a year at most."""
        now = _moment(self.headers.get("date", "")) or datetime.now(UTC)
        return min(max(moment - now, timedelta(0)), LONGEST)

    def not_understood(self, code: str, sentence: str) -> NoAnswer:
        """Make the failure of an answer that says nothing trustworthy about what was done."""
        return NoAnswer(code, sentence, Evidence(Stage.ANSWERED, self.status), after=self.after())


def retry_after(said: str | None, date: str | None = None) -> timedelta | None:
    """Read a Retry-After: seconds or a date; None when it is neither, never negative, never more than a year."""
    text = (said or "").strip()
    if text.isascii() and text.isdigit():
        seconds = int(text) if len(text.lstrip("0")) <= _DIGITS else None
        return LONGEST if seconds is None else min(timedelta(seconds=min(seconds, 10**9)), LONGEST)
    moment = _moment(text)
    if moment is None:
        return None
    now = _moment(date or "") or datetime.now(UTC)
    return min(max(moment - now, timedelta(0)), LONGEST)


def _moment(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
