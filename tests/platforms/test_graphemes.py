"""Graphemes, bytes and captions against text that is easy to count wrongly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprint.platforms.caption import caption, hashtags, unshortened
from imprint.platforms.graphemes import count, graphemes
from imprint.platforms.limits import TextLimit, Unit
from tests.platforms.works import work

FAMILY = "👨‍👩‍👧‍👦"
TRICKY = [
    ("", 0, 0),
    ("plain", 5, 5),
    ("a\r\nb", 3, 4),
    (FAMILY, 1, 25),
    ("🇩🇪🇫🇷", 2, 16),
    ("👍🏽", 1, 8),
    ("🏳️‍🌈", 1, 14),
    ("1️⃣", 1, 7),
    ("e\u0301", 1, 3),
    ("Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A", 2, 38),
    ("مرحبا", 5, 10),
    ("\u202eabc", 4, 6),
    ("שָׁלוֹם", 4, 14),
    ("\u1100\u1161\u11a8", 1, 9),
    ("ก็", 1, 6),
    ("https://example.org/ü", 21, 22),
]


@pytest.mark.parametrize(("text", "letters", "size"), TRICKY, ids=range(len(TRICKY)))
def test_tricky_text_is_counted_as_people_count(text: str, letters: int, size: int) -> None:
    """Emoji sequences, flags, combining marks, right-to-left text and syllables are each one."""
    assert count(text) == letters
    assert TextLimit(1, Unit.GRAPHEMES).length(text) == letters
    assert TextLimit(1, Unit.BYTES).length(text) == size
    assert TextLimit(1).length(text) == len(text)


@given(st.text())
def test_a_text_is_the_sum_of_its_graphemes(text: str) -> None:
    """Nothing is lost when a text is taken apart, and there are never more graphemes than characters."""
    assert "".join(graphemes(text)) == text
    assert count(text) == len(graphemes(text)) <= len(text)


def test_hashtags() -> None:
    """Words run together, marks stay, numbers and what the text has already are left out, each comes once."""
    assert hashtags(("harbour", "Ink Drawing", "été", "sea-side view", "2024", "Harbour", "हिन्दी", "c++", "!")) == [
        "#harbour",
        "#InkDrawing",
        "#été",
        "#SeaSideView",
        "#हिन्दी",
        "#c",
    ]
    assert hashtags(("harbour", "ink"), "At the #Harbour, again") == ["#ink"]


def test_a_caption_has_everything_while_it_fits() -> None:
    """Title, description, link and tags, in this order."""
    made = work(title="Harbour", description=" Early light. ", tags=("ink",))
    whole = "Harbour\n\nEarly light.\n\nhttps://example.org/1\n\n#ink"
    assert caption(made, lambda _: True, "https://example.org/1") == whole
    assert unshortened(made, "https://example.org/1") == whole
    assert caption(work(title="", description="", tags=()), lambda _: True) == ""


@given(st.text(max_size=400), st.integers(20, 300))
def test_a_caption_fits_and_keeps_the_title(description: str, most: int) -> None:
    """However long the description, the text fits, begins with the title and has the link."""
    made = work(title="Harbour", description=description, tags=("a", "b"))
    limit = TextLimit(most, Unit.GRAPHEMES)
    text = caption(made, limit.fits, "x://y")
    assert limit.fits(text)
    assert text.startswith("Harbour")
    assert "x://y" in text


def test_a_description_is_cut_between_words() -> None:
    """What does not fit ends with dots, never within a family or a word; a few words alone are left out."""
    made = work(title="T", description=f"one two three four five six {FAMILY} seven eight", tags=())
    assert caption(made, TextLimit(32, Unit.GRAPHEMES).fits) == "T\n\none two three four five six…"
    assert caption(made, TextLimit(33, Unit.GRAPHEMES).fits) == f"T\n\none two three four five six {FAMILY}…"
    assert caption(made, TextLimit(12, Unit.GRAPHEMES).fits) == "T"
    tags = work(title="T", description="", tags=("one", "two", "three"))
    assert caption(tags, TextLimit(9).fits) == "T\n\n#one"
