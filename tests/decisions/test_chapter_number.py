"""A chapter's number: read from fields or names, exactly, and never taken for another's."""

import ast
import inspect
import unicodedata
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from imprint.decisions import chapter_number
from imprint.decisions.chapter_number import (
    LONGEST_NAME,
    LONGEST_SLUG,
    ChapterNumber,
    Kind,
    from_fields,
    from_name,
    normal,
    slugged,
)

EXTRA, SPECIAL, NOTICE = Kind.EXTRA, Kind.SPECIAL, Kind.NOTICE


def told(found: ChapterNumber) -> dict[str, Any]:
    """Give what was found, without what was not."""
    facts = {"number": found.number, "end": found.end, "volume": found.volume, "season": found.season}
    texts = {name: str(value) for name, value in facts.items() if value is not None}
    version = {} if found.version is None else {"version": str(found.version)}
    kind = {} if found.kind is Kind.CHAPTER else {"kind": found.kind}
    return texts | version | kind | ({"slug": found.slug} if found.number is None else {})


def chapter(number: str, **more: str) -> dict[str, Any]:
    """Write down what a numbered chapter should be read as."""
    return {"number": number, **more}


def other(kind: Kind, slug: str, **more: str) -> dict[str, Any]:
    """Write down what something without a number should be read as."""
    return {"slug": slug, **({} if kind is Kind.CHAPTER else {"kind": kind}), **more}


NAMES: dict[str, dict[str, Any]] = {
    # English, plain
    "Chapter 12": chapter("12"),
    "Ch.12": chapter("12"),
    "ch 12.5": chapter("12.5"),
    "Ch.012": chapter("12"),
    "c012": chapter("12"),
    "Chapter_12": chapter("12"),
    "Chapter#12": chapter("12"),
    "Chp 12": chapter("12"),
    "chapter-12-5": chapter("12.5"),
    "Chapter 12-5": chapter("12.5"),
    "Chapter 12,5": chapter("12.5"),
    "Chapter 12½": chapter("12.5"),
    "Chapter 1,000": chapter("1000"),
    "Chapter 0": chapter("0"),
    "Chapter 2024": chapter("2024"),
    "Chapter 12: The Fall": chapter("12"),
    "Chapter 12 - 100% Wolf": chapter("12"),
    "12th Chapter": chapter("12"),
    "Episode 12 - Notice": chapter("12"),
    "#12": chapter("12"),
    "#12 The Announcement": chapter("12"),
    "No. 12": chapter("12"),
    "№12": chapter("12"),
    "Issue #12": chapter("12"),
    "012": chapter("12"),
    "12": chapter("12"),
    "12.5": chapter("12.5"),
    "2024": chapter("2024"),
    "⑫": chapter("12"),
    "12. The Beginning": chapter("12"),
    "12 - The Beginning": chapter("12"),
    "12 The Beginning": chapter("12"),
    "Mission 12": chapter("12"),
    "Day 12: Rain": chapter("12"),
    "Act 3": chapter("3"),
    "Legend 12": chapter("12"),
    "Vol. TBD Ch. 5": chapter("5"),
    # letters, parts
    "Chapter 12a": chapter("12.1"),
    "Ch.12B": chapter("12.2"),
    "Chapter 12 Part 2": chapter("12.2"),
    "Chapter 12 (Part 2)": chapter("12.2"),
    "Chapter 12 - Part II: Dawn": chapter("12.2"),
    "Chapter 12 pt.11": chapter("12.902"),
    "Chapter 12 (2)": chapter("12.2"),
    "Chapter 12 (2/3)": chapter("12.2"),
    "Chapter 12 (2024)": chapter("12"),
    "Part 2": chapter("2"),
    # ranges, and what only looks like one
    "Ch.10-11": chapter("10", end="11"),
    "Ch.10 - 11": chapter("10", end="11"),
    "Chapters 10 to 12": chapter("10", end="12"),
    "Chapter 10 & 11": chapter("10", end="11"),
    "Ch. 10,11": chapter("10", end="11"),
    "Ch.10.5-11": chapter("10.5", end="11"),
    "Chapter 10 - 11 Days Later": chapter("10"),
    "Chapter 10 – 11 Days Later": chapter("10"),  # noqa: RUF001 - the dash people write
    "Chapter 10: 11 Days Later": chapter("10"),
    "Chapter 3 - 2049": chapter("3"),
    "Chapter 5 and 10 men": chapter("5"),
    "Ch.12 & 15": chapter("12"),
    # numerals and words
    "Chapter IV": chapter("4"),
    "chapter iv": chapter("4"),
    "Chapter XII: The Fall": chapter("12"),
    "Chapter I: Start": chapter("1"),
    "Chapter XLII": chapter("42"),
    "Chapter Twelve": chapter("12"),
    "Episode Twenty-One: Gone": chapter("21"),
    "CHAPTER MIX": other(Kind.CHAPTER, "chapter-mix"),
    "Chapter I Am Hero": other(Kind.CHAPTER, "chapter-i-am-hero"),
    # seasons
    "2nd Season Episode 5": chapter("5", season="2"),
    "S2 E5": chapter("5", season="2"),
    "S02E05": chapter("5", season="2"),
    "Season 2 Ep. 5": chapter("5", season="2"),
    "[Season 2] Ep. 5": chapter("5", season="2"),
    "(S2) Episode 5": chapter("5", season="2"),
    "S2 - 5": chapter("5", season="2"),
    "Season 2 - 5": chapter("5", season="2"),
    "2x05": chapter("5", season="2"),
    "Ep. 100 (Season 1 Finale)": chapter("100", season="1"),
    "Season 2 Prologue": other(SPECIAL, "s2-prologue", season="2"),
    # volumes
    "Vol.3": other(Kind.CHAPTER, "volume-3", volume="3"),
    "Volume 12 (complete)": other(Kind.CHAPTER, "volume-12", volume="12"),
    "Vol. 1-3": other(Kind.CHAPTER, "volume-1", volume="1"),
    "Vol.3 Ch.12": chapter("12", volume="3"),
    "v01 c012": chapter("12", volume="1"),
    "Volume II Chapter 4": chapter("4", volume="2"),
    "Vol.3 Ch.12-15": chapter("12", end="15", volume="3"),
    "Vol.3 Extra": other(EXTRA, "v3-extra", volume="3"),
    # versions, endings
    "Ch.45v2": chapter("45", version="2"),
    "Ch.45 v2": chapter("45", version="2"),
    "Ch.45 (v2)": chapter("45", version="2"),
    "Ep.12.5v2 [END]": chapter("12.5", version="2"),
    "Chapter 12 [END]": chapter("12"),
    "Chapter 12 (Final)": chapter("12"),
    "Solo Leveling 110 [END]": chapter("110"),
    "Naruto 700 The End": chapter("700"),
    # beside the count
    "Extra 3": other(EXTRA, "extra-3"),
    "Extra3": other(EXTRA, "extra-3"),
    "Extra Chapter 3": other(EXTRA, "extra-3"),
    "Bonus Chapter 3": other(EXTRA, "extra-3"),
    "Extra": other(EXTRA, "extra"),
    "Extra: The Beach": other(EXTRA, "extra-the-beach"),
    "Bonus Chapter: Cats": other(EXTRA, "extra-cats"),
    "Extra 2026-01-02": other(EXTRA, "extra-2026-01-02"),
    "Series Name Extra 3 The Beach": other(EXTRA, "extra-3"),
    "Omake": other(EXTRA, "omake"),
    "Omake 2": other(EXTRA, "omake-2"),
    "Side Story 2": other(EXTRA, "side-story-2"),
    "Side Story Ch. 5": other(EXTRA, "side-story-5"),
    "Ch.12 Omake": other(EXTRA, "12-omake"),
    "Chapter 12 Extra": other(EXTRA, "12-extra"),
    "Chapter 12: Extra Credit": chapter("12"),
    "Chapter 12.5 Extra": chapter("12.5"),
    "Chapter 7.5: Omake": chapter("7.5"),
    "Afterword": other(EXTRA, "afterword"),
    "Interlude 2": other(EXTRA, "interlude-2"),
    "Prologue": other(SPECIAL, "prologue"),
    "Epilogue": other(SPECIAL, "epilogue"),
    "Chapter 200 - Epilogue [END]": chapter("200"),
    "Oneshot": other(SPECIAL, "oneshot"),
    "One-shot": other(SPECIAL, "oneshot"),
    "Special 3": other(SPECIAL, "special-3"),
    "SP 2": other(SPECIAL, "special-2"),
    "Chapter 5 Special": chapter("5"),
    "Special Forces 12": chapter("12"),
    "Final Chapter": other(SPECIAL, "final"),
    "Preview": other(SPECIAL, "preview"),
    # notices
    "Notice. 2026 hiatus": other(NOTICE, "notice-2026-hiatus"),
    "2026 hiatus": other(NOTICE, "notice-2026-hiatus"),
    "Notice: Chapter 50 delayed": other(NOTICE, "notice-chapter-50-delayed"),
    "Hiatus Announcement": other(NOTICE, "notice-hiatus-announcement"),
    "Notice": other(NOTICE, "notice"),
    "Q&A": other(NOTICE, "notice-q-a"),
    "Author's Note": other(NOTICE, "notice-author-s-note"),
    "Notice Me Senpai Ch. 12": chapter("12"),
    # numbers that count something else
    "100% Perfect Girl 5": chapter("5"),
    "20th Century Boys 12": chapter("12"),
    "86 Eighty-Six Chapter 12": chapter("12"),
    "Blade Runner 2049 - 5": chapter("5"),
    "Area 51 12": chapter("12"),
    "Christmas 2024": other(Kind.CHAPTER, "christmas-2024"),
    "2026-11-15 Update": other(Kind.CHAPTER, "update-2026-11-15"),
    "Chapter 99999999999": other(Kind.CHAPTER, "chapter-99999999999"),
    "Photo 20240101123456789": other(Kind.CHAPTER, "photo-20240101123456789"),
    "-1": other(Kind.CHAPTER, "name-1"),
    # no number at all
    "The Beach": other(Kind.CHAPTER, "the-beach"),
    "The Legend": other(Kind.CHAPTER, "the-legend"),
    "The End": other(Kind.CHAPTER, "the-end"),
    # Spanish, Portuguese, Italian
    "Capítulo 12": chapter("12"),
    "Capitulo 12": chapter("12"),
    "Cap. 12": chapter("12"),
    "Capítulo 12: El fin": chapter("12"),
    "Tomo 3 Capítulo 12": chapter("12", volume="3"),
    "Temporada 2 Capítulo 5": chapter("5", season="2"),
    "Capítulo especial 2": other(SPECIAL, "special-2"),
    "Capítulo final": other(SPECIAL, "final"),
    "Prólogo": other(SPECIAL, "prologue"),
    "Capitolo 12": chapter("12"),
    # French
    "Chapitre 12": chapter("12"),
    "Tome 3 Chapitre 12": chapter("12", volume="3"),
    "Saison 2 Épisode 5": chapter("5", season="2"),
    "Épilogue": other(SPECIAL, "epilogue"),
    # German
    "Kapitel 12": chapter("12"),
    "12. Kapitel": chapter("12"),
    "Band 3 Kapitel 12": chapter("12", volume="3"),
    "Staffel 2 Folge 5": chapter("5", season="2"),
    # Japanese
    "第12話": chapter("12"),
    "第１２話": chapter("12"),
    "第五話「出会い」": chapter("5"),
    "第百二十話": chapter("120"),
    "【第5話】": chapter("5"),
    "第10-12話": chapter("10", end="12"),
    "第12話 前編": chapter("12.1"),
    "第12話(2)": chapter("12.2"),
    "第3巻": other(Kind.CHAPTER, "volume-3", volume="3"),
    "第3巻 第12話": chapter("12", volume="3"),
    "最終話": other(SPECIAL, "final"),
    "番外編": other(EXTRA, "extra"),
    "番外編3": other(EXTRA, "extra-3"),
    "番外編 第3話": other(EXTRA, "extra-3"),
    "特別編 夏休み": other(SPECIAL, "special-夏休み"),
    # Korean
    "12화": chapter("12"),
    "시즌2 5화": chapter("5", season="2"),
    "2기 5화": chapter("5", season="2"),
    "3권 12화": chapter("12", volume="3"),
    "외전 3화": other(EXTRA, "side-story-3"),
    "프롤로그": other(SPECIAL, "prologue"),
    "휴재 공지": other(NOTICE, "notice-휴재-공지"),
    # Chinese
    "第十二章": chapter("12"),
    "第一百零三话": chapter("103"),
    "第二季 第5话": chapter("5", season="2"),
    "番外": other(EXTRA, "extra"),
    # Vietnamese, Russian, Turkish, Indonesian, Polish, Thai, Arabic
    "Chương 12": chapter("12"),
    "Chap 12": chapter("12"),
    "Tập 3 Chương 12": chapter("12", volume="3"),
    "Ngoại truyện 3": other(EXTRA, "side-story-3"),
    "Глава 12": chapter("12"),
    "12 глава": chapter("12"),
    "Том 3 Глава 12": chapter("12", volume="3"),
    "Том 3. Глава 12.5 - Название": chapter("12.5", volume="3"),
    "Bölüm 12": chapter("12"),
    "12. Bölüm": chapter("12"),
    "Bab 12": chapter("12"),
    "Rozdział 12": chapter("12"),
    "ตอนที่ 12": chapter("12"),
    "الفصل ١٢": chapter("12"),
}


@pytest.mark.parametrize("name", NAMES)
def test_names_are_read_as_people_mean_them(name: str) -> None:
    """Each name gives exactly these facts and no others."""
    assert told(from_name(name)) == NAMES[name]


@pytest.mark.parametrize(
    ("name", "series", "number"),
    [
        ("100% Perfect Girl 5", "100% Perfect Girl", "5"),
        ("86 -Eighty Six- 12", "86: Eighty-Six", "12"),
        ("7 Days 3", "7 Days", "3"),
        ("Area 51 - 12 The 13th Floor", "Area 51", "12"),
        ("Chapter 12 [Special Forces]", "Special Forces", "12"),
        ("MISSION 12", "Mission 12", "12"),
    ],
)
def test_the_series_title_is_not_part_of_the_name(name: str, series: str, number: str) -> None:
    """Numbers and words of the series' own title are not its chapters', unless there is nothing else."""
    assert from_name(name, series=series).number == Decimal(number)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"number": "12"}, chapter("12")),
        ({"number": "12.50", "volume": "3"}, chapter("12.5", volume="3")),
        ({"number": "12a"}, chapter("12.1")),
        ({"number": "10-11"}, chapter("10", end="11")),
        ({"number": "5", "name": "Extra"}, chapter("5")),
        ({"number": "Extra 2"}, other(EXTRA, "extra-2")),
        ({"number": None, "name": "Oneshot"}, other(SPECIAL, "oneshot")),
        ({"number": "", "name": "5 Years Later"}, other(Kind.CHAPTER, "5-years-later")),
        ({"number": None, "name": "Chapter 5"}, chapter("5")),
        ({"number": None, "name": "Extra 2", "volume": "4"}, other(EXTRA, "v4-extra-2", volume="4")),
        ({"number": None, "name": None, "volume": "4"}, other(Kind.CHAPTER, "volume-4", volume="4")),
        ({"number": None, "name": None, "fallback": "A-1"}, other(Kind.CHAPTER, "id-a-1")),
        ({"number": "1", "volume": "none"}, chapter("1")),
    ],
)
def test_a_sources_own_fields_come_first(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    """A number field is believed, an empty one too: a title's number is taken only when a word says what it counts."""
    assert told(from_fields(fields.pop("number"), **fields)) == expected


WHOLE = st.integers(0, 999_999)
FRACTIONS = st.sampled_from(["", ".1", ".5", ".25", ".99", ".125"])
NUMBERS = st.builds(lambda whole, fraction: Decimal(f"{whole}{fraction}"), WHOLE, FRACTIONS)

FORMS = (
    "Chapter {}",
    "ch.{}",
    "Ch {}: A Title",
    "Chapter {} - A Title",
    "Vol.3 Ch.{}",
    "Season 2 Ep. {}",
    "S02 E{}",
    "#{}",
    "Capítulo {}",
    "Chapitre {}",
    "Kapitel {}",
    "第{}話",
    "{}화",
    "第{}章",
    "Chương {}",
    "Глава {}",
    "{}",
    "00{}",
    "Ch.{}v2",
    "Chapter {} [END]",
    "A Series Ch. {}",
)


@given(NUMBERS, st.sampled_from(FORMS))
def test_a_number_is_read_back_from_every_form(number: Decimal, form: str) -> None:
    """However it is written, the exact number comes back, and the slug ends with it."""
    found = from_name(form.format(number))
    assert found.number == number
    assert found.slug.endswith(f"{number:f}")


@given(NUMBERS, st.sampled_from(FORMS))
def test_full_width_and_foreign_digits_are_digits(number: Decimal, form: str) -> None:
    """The same name in full-width or Arabic digits is the same chapter."""
    written = form.format(number)
    wide = "".join(chr(ord(each) + 0xFEE0) if each.isdecimal() else each for each in written)
    arabic = "".join(chr(ord(each) + 0x0630) if each.isdecimal() else each for each in written)
    assert from_name(wide) == from_name(arabic) == from_name(written)


@given(st.integers(1, 999))
def test_numerals_are_read_back(number: int) -> None:
    """Chinese numerals, in places or digit by digit, and Roman ones where they are in use."""
    digits, places = "零一二三四五六七八九", ("", "十", "百")
    placed = "".join(
        (digits[int(each)] + places[len(str(number)) - 1 - at]) if each != "0" else ""
        for at, each in enumerate(str(number))
    )
    if number > 100 and str(number)[1] == "0" and str(number)[2] != "0":
        placed = f"{digits[number // 100]}百零{digits[number % 10]}"
    by_digit = "".join(digits[int(each)] for each in str(number))
    assert from_name(f"第{placed}章").number == from_name(f"第{by_digit}话").number == number
    if number < 400:
        tens, ones = (
            ("", "X", "XX", "XXX", "XL", "L", "LX", "LXX", "LXXX", "XC"),
            ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"],
        )
        roman = "C" * (number // 100) + tens[number // 10 % 10] + ["", *ones][number % 10]
        assert from_name(f"Chapter {roman}").number == number


@given(
    NUMBERS,
    st.none() | st.integers(1, 50),
    st.none() | st.integers(1, 9),
    st.none() | st.integers(0, 500).map(Decimal),
    st.none() | st.integers(1, 99),
)
def test_the_label_reads_back_as_the_same(
    number: Decimal, more: int | None, season: int | None, volume: Decimal | None, version: int | None
) -> None:
    """What we write ourselves, we read ourselves: number, range, season, volume and version."""
    end = None if more is None else number.to_integral_value() + more
    whole = "" if season in {None, 1} else f"s{season}-"
    slug = f"{whole}{number:f}" + ("" if end is None else f"-{end:f}")
    assume(end is None or number < end < 1_000_000)
    made = ChapterNumber(Kind.CHAPTER, slug, number, end, volume, season, version)
    assert from_name(made.label) == made


ODD = st.text(max_size=60) | st.lists(
    st.sampled_from(
        [
            "Chapter",
            "Ch.",
            "Vol.",
            "v",
            "S2",
            "Season",
            "Extra",
            "Omake",
            "Special",
            "Notice",
            "hiatus",
            "12",
            "10-11",
            "12.5",
            "1,000",
            "½",
            "IV",
            "-",
            ":",
            "(",
            ")",
            "[",
            "]",
            "#",
            "%",
            "2024",
            "第",
            "話",
            "十二",
            "화",
            "番外",
            "前編",
            "part",
            "END",
            "final",
            ".",
            ",",
            "~",
            "&",
            "́",
            "\u200b",
            "\ud800",
            "٣",
            "९",
        ]
    ),
    max_size=8,
).map(" ".join)


@given(ODD, ODD, ODD)
@example("\ud800", "", "")
@example("9" * 5000, "9" * 5000, "")
@example("-" * LONGEST_NAME, "", "")
@example("(" * LONGEST_NAME + "end", "", "")
def test_no_text_is_too_odd(name: str, series: str, fallback: str) -> None:
    """Whatever a stranger writes, there is an answer with a slug that PostgreSQL can hold, and no float in it."""
    for found in (
        from_name(name, series=series, fallback=fallback),
        from_fields(name, volume=series, name=fallback, fallback=fallback),
        from_fields(None, volume=name, name=series, fallback=fallback),
    ):
        assert found.slug
        assert len(found.slug) <= 2 * LONGEST_SLUG
        assert "\0" not in found.slug
        found.slug.encode("utf-8")
        for number in (found.number, found.end, found.volume):
            assert number is None or (type(number) is Decimal and number.is_finite() and number >= 0)
        assert found.end is None or (found.number is not None and found.number < found.end)
        assert (found.number is None) == (found.slug != _numbered_slug(found))
        assert found.place == found.place


def _numbered_slug(found: ChapterNumber) -> str | None:
    if found.number is None:
        return None
    season = "" if found.season in {None, 1} else f"s{found.season}-"
    return f"{season}{found.number:f}" + ("" if found.end is None else f"-{found.end:f}")


@given(ODD)
def test_what_has_no_number_is_never_taken_for_a_number(name: str) -> None:
    """The slug of something un-numbered is not the slug of any chapter with a number."""
    found = from_name(name)
    if found.number is None:
        again = from_fields(found.slug)
        assert again.number is None or again.slug != found.slug


@given(ODD)
def test_normal_once_is_normal(text: str) -> None:
    """Writing a normal text the normal way changes nothing, nor does slugging a slug."""
    assert normal(normal(text)) == normal(text)
    assert unicodedata.is_normalized("NFKC", normal(text))
    assert slugged(slugged(text)) == slugged(text)


@given(ODD)
def test_dress_does_not_matter(name: str) -> None:
    """Case, spaces around, and invisible letters make no difference to what is read."""
    assert from_name(f"  {name}\u200b ").slug == from_name(name).slug


@given(st.lists(st.text("abcdefg ", min_size=1, max_size=10).filter(str.strip), min_size=2, max_size=2))
def test_extras_with_different_names_stay_apart(names: list[str]) -> None:
    """Two un-numbered specials do not collapse into one, whatever their titles."""
    one, two = (from_name(f"Extra: {name}") for name in names)
    assert (one.slug == two.slug) == (" ".join(names[0].split()) == " ".join(names[1].split()))


def test_names_too_long_to_be_read_stay_apart() -> None:
    """What differs only behind the part that is read still has its own slug."""
    long = "Extra: " + "word " * LONGEST_NAME
    assert from_name(f"{long}one").slug != from_name(f"{long}two").slug
    assert len(from_name(f"{long}one").slug) <= LONGEST_SLUG + len("extra-")


def test_nameless_ones_are_told_apart_by_their_source() -> None:
    """Without any name the source's own id is the identity; without that, at least the text itself."""
    assert from_name("", fallback="a").slug != from_name("", fallback="b").slug
    assert from_name("!!!").slug != from_name("???").slug


@given(NUMBERS, NUMBERS)
def test_order_is_the_numbers_order(one: Decimal, two: Decimal) -> None:
    """Chapters sort by number within a season, seasons come before numbers, un-numbered ones at the end."""
    first, second = (from_name(f"Ch.{number}") for number in (one, two))
    assert (first.place < second.place) == (one < two)
    assert from_name(f"S1 E{one}").place < from_name(f"S2 E{two}").place < from_name("Epilogue").place


@given(st.integers(1, 98))
def test_parts_keep_their_order_and_never_meet(part: int) -> None:
    """Part 10 comes after part 9 and is not part 1, though 12.10 = 12.1."""
    before, after = (from_name(f"Chapter 12 Part {at}").number for at in (part, part + 1))
    assert before is not None
    assert after is not None
    assert 12 < before < after < 13


def test_there_is_no_float_in_the_module() -> None:
    """No literal, no call and no division could ever make one."""
    tree = ast.parse(inspect.getsource(chapter_number))
    for node in ast.walk(tree):
        assert not (isinstance(node, ast.Constant) and isinstance(node.value, float))
        assert not (isinstance(node, ast.Name) and node.id == "float")
        assert not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div))


def test_the_table_is_long_enough_to_mean_something() -> None:
    """At least eighty names, in the languages we promise."""
    assert len(NAMES) >= 80
