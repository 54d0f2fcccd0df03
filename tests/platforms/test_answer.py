"""Answers: what they say about when to come again, however hostile."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprint.platforms.answer import LONGEST, Answer, retry_after
from imprint.platforms.failure import Stage


@pytest.mark.parametrize(
    ("said", "means"),
    [
        (None, None),
        ("", None),
        ("0", timedelta(0)),
        ("7", timedelta(seconds=7)),
        (" 120 ", timedelta(minutes=2)),
        ("007", timedelta(seconds=7)),
        ("-5", None),
        ("NaN", None),
        ("inf", None),
        ("1e3", None),
        ("1.5", None),
        ("5, 6", None),
        ("٣", None),
        ("1" + "0" * 18, LONGEST),
        ("9" * 5000, LONGEST),
        ("soon", None),
        ("Sun, 06 Nov 1994 08:49:37 GMT", timedelta(0)),
        ("Sun, 99 Nov 1994 08:49:37 GMT", None),
        ("Fri, 31 Dec 9999 23:59:59 GMT", LONGEST),
        ("Mon, 01 Jan 0001 00:00:00 GMT", timedelta(0)),
    ],
)
def test_retry_after(said: str | None, means: timedelta | None) -> None:
    """Seconds and dates are read, and nothing else; what is past is now, what is absurd is a year."""
    assert retry_after(said) == means


def test_a_date_is_counted_from_the_answers_own_clock() -> None:
    """A server whose clock is years away still means two minutes when it says so."""
    now = datetime(1999, 5, 1, 12, tzinfo=UTC)
    until = format_datetime(now + timedelta(minutes=2), usegmt=True)
    said = Answer(429, {"retry-after": until, "date": format_datetime(now, usegmt=True)}, b"")
    assert said.after() == timedelta(minutes=2)
    soon = format_datetime(datetime.now(UTC) + timedelta(minutes=2), usegmt=True)
    waits = retry_after(soon, "not a date")
    assert waits
    assert timedelta(minutes=1) < waits <= timedelta(minutes=2)


@given(st.text(max_size=60), st.none() | st.text(max_size=40))
def test_anything_at_all(said: str, date: str | None) -> None:
    """Whatever is said, nothing breaks and nobody waits a negative time or for ever."""
    waits = retry_after(said, date)
    assert waits is None or timedelta(0) <= waits <= LONGEST


@pytest.mark.parametrize("body", [b"", b"  ", b"[1]", b"null", b'"x"', b"{", b"\xff\xfe", b"[" * 100_000, b"1" * 5000])
def test_a_body_that_is_no_object_is_empty(body: bytes) -> None:
    """Adapters look for what they need; what cannot be read has nothing in it."""
    assert Answer(200, {}, body).json() == {}


def test_an_answer_that_is_not_understood_is_evidence() -> None:
    """The status is kept, and so is the wish to be left alone."""
    lost = Answer(503, {"retry-after": "9"}, b"").not_understood("x.y", "It said nothing.")
    assert (lost.evidence.status, lost.evidence.stage, lost.evidence.left) == (503, Stage.ANSWERED, True)
    assert lost.after == timedelta(seconds=9)
