"""A moment: what servers write as dates is read, always with a zone, and nonsense is none."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprint.sources.moment import from_epoch, moment

NEW_YEAR = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    ["2024-01-01T00:00:00Z", "2024-01-01T01:00:00+01:00", "2024-01-01", "20240101T000000Z", "2024-01-01 00:00:00",
     "Mon, 01 Jan 2024 00:00:00 GMT", "Sun, 31 Dec 2023 19:00:00 -0500", "1 Jan 2024 00:00:00 +0000",
     " 2024-01-01T00:00:00.000Z "],
)  # fmt: skip
def test_dates_are_read_in_their_usual_forms(text: str) -> None:
    """ISO 8601 and the dates of e-mail, with a zone, or in UTC without one."""
    assert moment(text) == NEW_YEAR


@given(st.text() | st.none() | st.integers())
def test_no_text_is_too_odd_for_a_moment(text: object) -> None:
    """There is a moment with a zone, or none."""
    for found in (moment(text), from_epoch(text)):
        assert found is None or found.tzinfo is UTC


@pytest.mark.parametrize("value", [1704067200, 1704067200000, "1704067200", "1704067200000"])
def test_seconds_and_milliseconds_are_told_apart(value: object) -> None:
    """Nobody publishes in the year 55970."""
    assert from_epoch(value) == NEW_YEAR
