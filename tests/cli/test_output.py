"""Tables on narrow terminals: no id, no time and no address is ever broken, and nothing is lost."""

from collections.abc import Sequence

import pytest

from imprint.cli.output import print_table, say

Captured = pytest.CaptureFixture[str]
COLUMNS = ["id", "title", "state", "next", ""]
LONG = "A lighthouse at dusk, seen from the sea by a sailor who was late"
ADDRESS = "https://example.com/gallery/a-lighthouse-at-dusk-seen-from-the-sea-1234567890"
ROWS = [
    ("1a2b3c4d", LONG, "scheduled", "2030-05-01 18:03 CEST", ""),
    ("9f8e7d6c", "灯台 [red]", "published", "2030-05-02 18:03 CEST", ""),
]


def printed(capsys: Captured, columns: list[str], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Print a table and give its lines."""
    print_table("Posts", columns, rows)
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("width", [80, 60, 40])
def test_a_table_keeps_to_the_width_of_the_terminal(
    width: int, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts are broken between words; ids and moments are whole; where even that is too wide each row stands alone."""
    monkeypatch.setenv("COLUMNS", str(width))
    lines = printed(capsys, COLUMNS, ROWS)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    for whole in ("1a2b3c4d", "scheduled", "2030-05-01 18:03 CEST", "灯台 [red]"):
        assert whole in text
    assert [word for word in text.split() if word in LONG.split()] == LONG.split()


def test_an_address_is_never_broken(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """One can click on it or copy it, however narrow the terminal is; what is not known takes no line."""
    monkeypatch.setenv("COLUMNS", "60")
    lines = printed(capsys, COLUMNS, [("1a2b3c4d", "A tower", "published", "", ADDRESS)])
    assert lines == ["Posts", "1a2b3c4d", "  title  A tower", "  state  published", f"         {ADDRESS}"]


def test_a_column_that_tells_nothing_makes_room(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """With it the rows would not fit into one line each."""
    monkeypatch.setenv("COLUMNS", "40")
    rows = [("1a2b3c4d", "A tower", "", "2030-05-01 18:03")]
    assert printed(capsys, ["id", "title", "last error", "next"], rows) == [
        "Posts",
        "id        title    next",
        "1a2b3c4d  A tower  2030-05-01 18:03",
    ]


def test_what_a_program_reads_is_one_line_a_row(capsys: Captured) -> None:
    """Without a terminal nothing is broken."""
    lines = printed(capsys, COLUMNS, ROWS)
    assert len(lines) == 2 + len(ROWS)
    assert LONG in lines[2]
    say("x" * 300)
    assert capsys.readouterr().out == "x" * 300 + "\n"
