"""A message says what is new, in words that fit on a phone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprint.decisions.message import LONGEST_LINE, MOST_LINES, Message, News, message

NEWS = st.builds(
    News, st.text(min_size=1), st.text(min_size=1), st.text(), st.sampled_from(["", "https://a.example/1"])
)


def test_one_chapter() -> None:
    """Its series and number above, its title and address below; without either its number is there twice."""
    assert message([News("Sea", "Ch.7", "Waves", "https://a/7")]) == Message("Sea Ch.7", "Waves\nhttps://a/7")
    assert message([News("Sea", "Ch.7", "", "")]) == Message("Sea Ch.7", "Ch.7")


def test_several_chapters_of_one_series() -> None:
    """A line each, without the series."""
    told = message([News("Sea", "Ch.7", "Waves", "https://a/7"), News("Sea", "Ch.8", "", "")])
    assert told == Message("Sea: 2 new chapters", "Ch.7: Waves https://a/7\nCh.8")


def test_several_series() -> None:
    """A line each, with the series."""
    told = message([News("Sea", "Ch.7", "", ""), News("Hill", "Ch.1", "", "https://b/1")])
    assert told == Message("2 new chapters in 2 series", "Sea Ch.7\nHill Ch.1 https://b/1")


def test_there_is_an_end_to_it() -> None:
    """Of very many the first are named and the others counted."""
    told = message([News("Sea", f"Ch.{number}", "", "") for number in range(MOST_LINES + 5)])
    assert told.body.splitlines()[-1] == "and 5 more"
    assert len(told.body.splitlines()) == MOST_LINES + 1


def test_nothing_is_no_news() -> None:
    """A message about nothing is a mistake of ours."""
    with pytest.raises(ValueError, match="no news"):
        message([])


@given(st.lists(NEWS, min_size=1, max_size=40))
def test_whatever_is_in_the_names_a_line_is_a_line(news: list[News]) -> None:
    """Names with line breaks or of any length neither break a line nor make it endless."""
    told = message(news)
    assert len(told.title) <= LONGEST_LINE
    assert "\n" not in told.title
    assert len(told.body.split("\n")) <= MOST_LINES + 1 or len(news) == 1
    assert all(len(line) <= LONGEST_LINE + 30 for line in told.body.split("\n")) or len(news) == 1
