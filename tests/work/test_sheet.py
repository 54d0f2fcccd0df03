"""Sheets: what goes out comes back the same, a wrong row keeps all others out, and no cell is a formula."""

import csv
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest

from imprint.decisions.schedule import Bounds
from imprint.problem import Problem
from imprint.settings import load
from imprint.store.db import Database
from imprint.work import sheet
from imprint.work.catalogue import Wanted
from imprint.work.fitting import Fitting
from imprint.work.sheet import Brought
from imprint.work.vault import Vault
from tests.work.posts import Author

SOON = (datetime.now(UTC) + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M")


async def bring(author: Author, text: str, *, keep: bool = True) -> list[Brought]:
    """Bring a sheet in, as a person in Berlin."""
    fitting = Fitting(Vault.of(load({"IMPRINT_HOME": "/nowhere"})))  # no account here has a sign-in to open
    return await sheet.bring(
        author.database, Bounds(), author.owner, text, zone="Europe/Berlin", fitting=fitting, keep=keep
    )


async def out(author: Author) -> str:
    """Write everything that a person has."""
    async with author.database.connection() as connection:
        return await sheet.written(connection, author.owner, Wanted())


async def count(author: Author) -> int:
    """Count posts."""
    return int(await author.read("SELECT count(*) FROM post"))


async def test_rows_become_posts_with_files_accounts_and_times(database: Database) -> None:
    """A row with a time is scheduled where it says, one without stays in review; semicolons part cells as well."""
    author = Author(database)
    await author.account("Gallery")
    await author.content()
    rows = f"\ufefftitle;tags;time;account;files\nA light;sea, dusk;{SOON};gallery;a.png\nLater;;;;\n"
    light, later = await bring(author, rows)
    assert (light.row, later.row, light.problem, later.problem) == (2, 3, None, None)
    assert light.post is not None
    assert later.post is not None
    shown = await author.show(light.post)
    assert (shown.post.status, shown.post.tags, shown.files[0].name) == ("scheduled", ["sea", "dusk"], "a.png")
    assert shown.publications[0].zone == "Europe/Berlin"
    assert await author.status(later.post) == "review"


async def test_one_wrong_row_keeps_all_out_and_each_is_told(database: Database) -> None:
    """Every row is tried, so that all mistakes are seen at once; what was right is not kept either."""
    author = Author(database)
    await author.account("Gallery")
    rows = (
        "title,kind,body,account,time,files\n"
        "Right,article,Words.,,,\n"
        "No file,artwork,,Gallery," + SOON + ",\n"
        "Nowhere,article,Words.,Attic," + SOON + ",\n"
        "When?,article,Words.,Gallery,soon,\n"
        "Never,article,Words.,Gallery,,\n"
        "What?,poem,,,,\n"
        "Lost,artwork,,,,gone.png\n"
    )
    told = await bring(author, rows)
    assert [each.problem.code if each.problem else None for each in told] == [
        None,
        "post.no_file",
        "sheet.no_account",
        "schedule.bad_time",
        "sheet.no_time",
        "post.invalid",
        "sheet.no_file",
    ]
    assert await count(author) == 0


async def test_a_preview_keeps_nothing_and_promises_what_comes(database: Database) -> None:
    """The same rows tried and kept say the same."""
    author = Author(database)
    rows = "title,kind,body\nOne,article,Words.\nTwo,article,Words.\n"
    tried = await bring(author, rows, keep=False)
    assert await count(author) == 0
    kept = await bring(author, rows)
    assert [(each.row, each.title, each.problem) for each in tried] == [
        (each.row, each.title, each.problem) for each in kept
    ]
    assert await count(author) == 2


@pytest.mark.parametrize("title", ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "'=already", "'", "plain, “quoted”"])
async def test_no_cell_is_a_formula_and_comes_back_as_it_was(database: Database, title: str) -> None:
    """A spreadsheet runs nothing of what others wrote, and what is brought in again has the same words."""
    author = Author(database)
    await author.review(title=title, description="=1+1\nand “more”", tags=["=a", "b"])
    written = await out(author)
    (row,) = csv.DictReader(StringIO(written))
    assert not [cell for cell in row.values() if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert row["state"] == "review"
    (again,) = await bring(author, written)
    assert again.post is not None
    shown = await author.show(again.post)
    assert (shown.post.title, shown.post.description) == (title, "=1+1\nand “more”")
    assert shown.post.tags == ["=a", "b"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "sheet.empty"),
        ("title\n", "sheet.empty"),
        ("title,colour\nA,red\n", "sheet.no_column"),
        ("description\nA\n", "sheet.no_column"),
        ("title,title\nA,B\n", "sheet.no_column"),
        ('title\n"never ends\n', "sheet.unreadable"),
        ("title\nA,B\n", "sheet.unreadable"),
        ("title\n" + "A\n" * 501, "sheet.too_long"),
    ],
)
async def test_what_is_no_sheet_is_refused_in_a_sentence(database: Database, text: str, code: str) -> None:
    """Nothing is made of it."""
    with pytest.raises(Problem) as refused:
        await bring(Author(database), text)
    assert refused.value.code == code


async def test_two_files_of_one_name_are_not_guessed(database: Database) -> None:
    """A name that could mean either is asked about."""
    author = Author(database)
    await author.content()
    await author.content()
    (told,) = await bring(author, "title,files\nWhich?,a.png\n")
    assert told.problem is not None
    assert told.problem.code == "sheet.many_files"
