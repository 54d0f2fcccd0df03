"""Ingestion: each chapter once, each release once, each notice once, whatever comes, how often, and from how many."""

import asyncio
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from imprint.decisions.chapter_number import ChapterNumber, Kind, from_name
from imprint.decisions.polling import Missing
from imprint.problem import Problem
from imprint.sources.contract import Chapter, SetAside
from imprint.store.db import Database
from imprint.store.query import Connection
from imprint.work import ingest as work
from imprint.work.ingest import Carrier, Taken, ingest
from tests.work.serials import add_series, add_source, chapter, fetched, follow, take_in

Rows = list[tuple[Any, ...]]


async def rows(database: Database, sql: str, *values: object) -> Rows:
    """Give rows as plain tuples."""
    async with database.connection() as connection:
        return [tuple(row) for row in await connection.fetch(sql, *values)]


async def scene(database: Database, sources: int = 1, followers: int = 0) -> tuple[UUID, list[UUID]]:
    """Add a series with sources, and people who follow it."""
    async with database.connection() as connection:
        series = await add_series(connection)
        made = [
            await add_source(connection, series, ref=f"https://s{at}.example/", host=f"s{at}") for at in range(sources)
        ]
        await follow(connection, series, *(f"person {at}" for at in range(followers)))
    return series, made


async def test_the_scenarios_of_the_seed(database: Database) -> None:
    """45, 45 from elsewhere, 45 again and 45.5: two chapters, three releases, and the repeat only refreshes a time."""
    series, (dex, park) = await scene(database, 2)
    assert (await take_in(database, series, dex, ["Chapter 45"])).taken == Taken(1, 1, 1, 1, 0)
    assert (await take_in(database, series, park, ["Ch. 45"])).taken == Taken(0, 0, 1, 1, 0)
    before = await rows(
        database, "SELECT own_id, chapter_id, first_seen_at, seen_at FROM release WHERE source_id = $1", dex
    )
    assert (await take_in(database, series, dex, ["Chapter 45"])).taken == Taken(0, 0, 0, 1, 0)
    after = await rows(
        database, "SELECT own_id, chapter_id, first_seen_at, seen_at FROM release WHERE source_id = $1", dex
    )
    assert after[0][:3] == before[0][:3]
    assert after[0][3] > before[0][3]
    assert (await take_in(database, series, dex, ["Chapter 45.5"])).taken == Taken(1, 1, 1, 1, 0)
    assert await rows(database, "SELECT slug, number FROM chapter ORDER BY number") == [
        ("45", Decimal(45)),
        ("45.5", Decimal("45.5")),
    ]
    assert await rows(database, "SELECT latest_chapter FROM series") == [(Decimal("45.5"),)]


async def test_the_same_chapter_from_five_sources_at_once(database: Database) -> None:
    """One logical chapter, five releases, and one notice for each follower, every time."""
    series, sources = await scene(database, 5, followers=20)
    for number in range(1, 11):
        taken = await asyncio.gather(*(take_in(database, series, each, [f"Chapter {number}"]) for each in sources))
        assert sorted(each.taken.chapters for each in taken) == [0, 0, 0, 0, 1]
        assert sorted(each.taken.notices for each in taken) == [0, 0, 0, 0, 20]
    assert await rows(database, "SELECT count(*) FROM chapter") == [(10,)]
    assert await rows(database, "SELECT chapter_id, count(*) FROM release GROUP BY 1 HAVING count(*) <> 5") == []
    assert await rows(database, "SELECT person, count(*) FROM notice GROUP BY 1 HAVING count(*) <> 10") == []
    assert await rows(database, "SELECT count(*) FROM notice") == [(200,)]


async def test_even_past_the_lock_the_constraints_hold(database: Database) -> None:
    """Statements that do not wait for the series make one chapter and one notice of the same, or are refused."""
    series, sources = await scene(database, 5, followers=3)

    async def unlocked(source: UUID) -> None:
        async with database.transaction("test") as connection:
            items = [("one", chapter("Chapter 1"))]
            await work.CHAPTERS.one(connection, series, source, False, *work._columns(items))  # noqa: FBT003

    await asyncio.gather(*(unlocked(each) for each in sources), return_exceptions=True)
    assert await rows(database, "SELECT count(*) FROM chapter") == [(1,)]
    assert await rows(database, "SELECT count(*) FROM notice") == [(3,)]


async def test_a_first_reading_is_silent(database: Database) -> None:
    """A thousand chapters that were there already make no notice and no job; the next one does."""
    series, (source,) = await scene(database, followers=2)
    first = await take_in(database, series, source, [f"Chapter {at}" for at in range(1, 1001)], first=True)
    assert first.taken == Taken(1000, 0, 1000, 1000, 0)
    assert await rows(database, "SELECT count(*) FROM pgqueuer") == [(0,)]
    await take_in(database, series, source, [f"Chapter {at}" for at in range(1, 1002)])
    assert await rows(
        database, "SELECT n.person, c.slug FROM notice n JOIN chapter c ON c.id = n.chapter_id ORDER BY 1"
    ) == [
        ("person 0", "1001"),
        ("person 1", "1001"),
    ]
    jobs = "SELECT entrypoint, payload FROM pgqueuer ORDER BY 1"
    assert await rows(database, jobs) == [("notify", str(series).encode())]
    async with database.connection() as connection:
        await connection.execute("INSERT INTO rule (owner, series_id, title, body) VALUES ('a', $1, 'b', 'c')", series)
    await take_in(database, series, source, ["Chapter 1002"])
    assert await rows(database, jobs) == [("announce", str(series).encode()), ("notify", str(series).encode())]


async def test_what_came_out_while_a_second_source_is_added_is_not_lost(database: Database) -> None:
    """Its first reading is silent but for what is later and higher than all that was known."""
    series, (old, new) = await scene(database, 2, followers=1)
    await take_in(database, series, old, ["Chapter 1", "Chapter 2"], first=True)
    async with database.connection() as connection:
        await connection.execute("UPDATE series SET watched_since = imprint_now() - interval '1 hour'")
    now = datetime.now(UTC)
    given = [
        chapter("Chapter 1", published_at=now),
        chapter("Chapter 1.5", published_at=now),
        chapter("Chapter 3", published_at=now - timedelta(days=2)),
        chapter("Chapter 4"),
        chapter("Chapter 5", published_at=now),
    ]
    await take_in(database, series, new, given, first=True)
    told = await rows(database, "SELECT c.slug FROM notice n JOIN chapter c ON c.id = n.chapter_id")
    assert told == [("5",)]
    assert await rows(database, "SELECT slug FROM chapter WHERE NOT silent") == [("5",)]


async def test_only_those_who_want_to_know_are_told(database: Database) -> None:
    """Not those who turned it off, nor those who follow something else, nor those who come later."""
    series, (source,) = await scene(database, followers=1)
    async with database.connection() as connection:
        other = await add_series(connection, "Another")
        await follow(connection, other, "elsewhere")
        await connection.execute("INSERT INTO follow (person, series_id, notify) VALUES ('quiet', $1, false)", series)
    await take_in(database, series, source, ["Chapter 1"])
    async with database.connection() as connection:
        await follow(connection, series, "late")
        await connection.execute("UPDATE follow SET notify = true")
    await take_in(database, series, source, ["Chapter 1"])
    assert await rows(database, "SELECT person FROM notice") == [("person 0",)]


async def test_uploads_of_one_chapter_and_specials_without_a_number(database: Database) -> None:
    """Two groups make two releases of one chapter; two specials are two chapters; a notice is nothing to read."""
    series, (source,) = await scene(database, followers=1)
    given = [
        chapter("Chapter 7", "a", group="A"),
        chapter("Ch.7v2", "b", group="B"),
        chapter("Special: Beach", "c"),
        chapter("Special: Snow", "d"),
        chapter("Extra 3", "e"),
        chapter("Notice. 2026 hiatus", "f"),
    ]
    assert (await take_in(database, series, source, given)).taken == Taken(5, 4, 6, 6, 4)
    assert await rows(database, "SELECT kind FROM chapter WHERE silent") == [("notice",)]
    assert await rows(database, "SELECT latest_chapter FROM series") == [(Decimal(7),)]


async def test_an_upload_that_gets_another_name(database: Database) -> None:
    """It moves to the chapter it is now said to be, and nobody is told of the same upload twice."""
    series, (source,) = await scene(database, followers=1)
    await take_in(database, series, source, [chapter("Chapter 54", "a")])
    await take_in(database, series, source, [chapter("Chapter 45", "a", url="https://new.example/")])
    assert await rows(database, "SELECT c.slug, r.url FROM release r JOIN chapter c ON c.id = r.chapter_id") == [
        ("45", "https://new.example/")
    ]
    assert await rows(database, "SELECT count(*) FROM notice") == [(1,)]
    assert await rows(database, "SELECT latest_chapter FROM series") == [(Decimal(54),)]  # it never falls


async def test_what_is_known_later_is_filled_in(database: Database) -> None:
    """A volume and a title that were missing come with another upload; what is there is not overwritten."""
    series, (source,) = await scene(database)
    await take_in(
        database, series, source, [chapter("Chapter 1", "a"), replace(chapter("Chapter 2", "b"), title="Old")]
    )
    late = [replace(chapter("Vol.3 Chapter 1", "a"), title="One"), replace(chapter("Chapter 2", "b"), title="New")]
    await take_in(database, series, source, late)
    assert await rows(database, "SELECT slug, volume, title FROM chapter ORDER BY id") == [
        ("1", Decimal(3), "One"),
        ("2", None, "Old"),
    ]


async def test_the_latest_chapter_never_falls_by_raw_sql_either(connection: Connection) -> None:
    """The database refuses a lower number, and none at all."""
    series = await add_series(connection)
    await connection.execute("UPDATE series SET latest_chapter = 10.5")
    for worse in ("10", "NULL"):
        with pytest.raises(asyncpg.CheckViolationError, match="never falls"):
            await connection.execute(f"UPDATE series SET latest_chapter = {worse}")
    await connection.execute("UPDATE series SET latest_chapter = 11 WHERE id = $1", series)


BAD = [
    Chapter("a", ChapterNumber(Kind.CHAPTER, "1", Decimal("1e30"))),
    Chapter("b", ChapterNumber(Kind.CHAPTER, "", Decimal(1))),
    Chapter("c", from_name("Chapter 1"), title="\0"),
    Chapter("d", from_name("Chapter 1"), title="\ud800"),
    Chapter("e", from_name("Chapter 1"), title="x" * 5000),
    Chapter("f", ChapterNumber(Kind.CHAPTER, "1", Decimal("NaN"))),
    Chapter("g", ChapterNumber(Kind.CHAPTER, "1", Decimal(1), season=2**40)),
    Chapter("h\0", from_name("Chapter 1")),
    Chapter("i", ChapterNumber("novel", "1")),  # type: ignore[arg-type] # that is what is wrong with it
    Chapter("j", from_name("Chapter 1"), published_at="yesterday"),  # type: ignore[arg-type] # and with this
    Chapter("k", ChapterNumber(Kind.CHAPTER, "1", Decimal(5), Decimal(3))),
]


async def test_one_bad_chapter_is_set_aside_and_the_others_go_in(database: Database) -> None:
    """Whatever is wrong with it, a person can see it; when it is mended it goes in and leaves no trace."""
    good = [chapter(f"Chapter {at}") for at in range(100, 130)]
    for bad in BAD:
        series, (source,) = await scene(database)
        done = await take_in(database, series, source, [*good[:17], bad, *good[17:]])
        assert (done.taken.releases, done.set_aside) == (30, 1), bad
        item = bad.id.replace("\0", "")
        found = "SELECT item, error_code, times FROM set_aside"
        assert await rows(database, found) == [(item, "ingest.refused", 1)]
        await take_in(database, series, source, [bad])
        assert await rows(database, found) == [(item, "ingest.refused", 2)]
        await take_in(database, series, source, [chapter("Chapter 999", item)])
        assert await rows(database, found) == []


async def test_what_a_source_could_not_read_is_kept_for_a_person(database: Database) -> None:
    """With its reason and its beginning; a hostile one does not fill the table."""
    series, (source,) = await scene(database)
    for at in range(12):
        async with database.transaction("test") as connection:
            aside = tuple(SetAside(f"{at}-{n}" if n else None, "no id", "{'\0\ud800") for n in range(500))
            await ingest(connection, Carrier(source, series, first=False), fetched("Chapter 1", set_aside=aside))
    (count,) = (await rows(database, "SELECT count(*) FROM set_aside"))[0]
    assert 900 <= count <= 1100
    (row,) = await rows(database, "SELECT error, data->>'item' FROM set_aside WHERE item = '0-1'")
    assert row == ("no id", "{'?")


async def test_a_gap_is_noticed(database: Database) -> None:
    """47 after 45 lacks 46; a first reading, a range and a half number lack nothing."""
    series, (source,) = await scene(database)
    assert (await take_in(database, series, source, ["Chapter 1", "Chapter 9"], first=True)).missing is None
    assert (await take_in(database, series, source, ["Chapter 10"])).missing is None
    assert (await take_in(database, series, source, ["Chapter 13"])).missing == Missing(Decimal(11), Decimal(12))
    assert (await take_in(database, series, source, ["Chapter 14-16", "Chapter 16.5", "Chapter 17"])).missing is None


async def test_what_a_whole_list_lacks_is_gone_until_it_is_back(database: Database) -> None:
    """A release is marked, its chapter stays; one that was set aside is not taken for gone."""
    series, (source,) = await scene(database, followers=1)
    whole = Carrier(source, series, first=False, whole=True)

    async def listing(*names: str | Chapter, **more: Any) -> Rows:
        async with database.transaction("test") as connection:
            await ingest(connection, whole, fetched(*names, **more))
        return await rows(database, "SELECT own_id FROM release WHERE gone_at IS NOT NULL ORDER BY 1")

    assert await listing("1", "2", "3") == []
    assert await listing("1", set_aside=(SetAside("id-2", "broken", ""),)) == [("id-3",)]
    assert await listing("1", "3") == [("id-2",)]
    assert await rows(database, "SELECT count(*) FROM notice") == [(3,)]


async def test_a_series_that_was_removed_takes_nothing_in(database: Database) -> None:
    """Whoever is late with it is told so."""
    series, (source,) = await scene(database)
    async with database.connection() as connection:
        await connection.execute("UPDATE series SET deleted_at = imprint_now()")
    with pytest.raises(Problem, match="no such series"):
        await take_in(database, series, source, ["Chapter 1"])


async def test_very_long_ids_are_told_apart(database: Database) -> None:
    """A source's own id may be as long as it likes."""
    series, (source,) = await scene(database)
    given = [chapter("Chapter 1", "見" * 1900 + "a"), chapter("Chapter 1", "見" * 1900 + "b")]
    assert (await take_in(database, series, source, given)).taken.releases == 2
    assert (await take_in(database, series, source, given)).taken.releases == 0


async def test_ten_thousand_hostile_fetches(database: Database) -> None:
    """Shuffled, repeated, edited, deleted and growing: each item once, the latest never falls, no notice twice."""
    dice = random.Random(5)  # noqa: S311 - no secret
    series, sources = await scene(database, 5, followers=3)
    numbers = [str(at) for at in range(1, 40)] + ["7.5", "12.5", "Extra 1", "Special: Snow", "Prologue", "Notice. Soon"]
    shelves = [
        [chapter(n if n[0].isalpha() else f"Chapter {n}", f"{at}-{n}-{group}") for n in numbers for group in "AB"]
        for at in range(5)
    ]
    seen: list[set[str]] = [set() for _ in sources]
    latest, polls = Decimal(-1), 10_000
    async with database.connection() as connection:
        for at in range(0, polls, 50):
            async with connection.transaction():
                for round_ in range(50):
                    which = dice.randrange(5)
                    shelf = shelves[which][: 4 + (at + round_) * len(shelves[which]) // polls]
                    given = dice.sample(shelf, min(len(shelf), dice.randint(0, 6)))
                    given += dice.choices(given, k=3) if given else []
                    if given and dice.random() < 0.2:
                        edited = dice.randrange(len(given))
                        given[edited] = replace(
                            given[edited], title=f"edited {dice.random()}", url="https://e.example/"
                        )
                    await ingest(connection, Carrier(sources[which], series, first=False), fetched(*given))
                    seen[which] |= {each.id for each in given}
            now = await connection.fetchval("SELECT coalesce(latest_chapter, -1) FROM series")
            assert now >= latest
            latest = now
        releases = await connection.fetch("SELECT source_id, own_id FROM release")
    assert {(sources[at], own) for at in range(5) for own in seen[at]} == {tuple(each) for each in releases}
    slugs = {each.number.slug for at in range(5) for each in shelves[at] if each.id in seen[at]}
    assert {row[0] for row in await rows(database, "SELECT slug FROM chapter")} == slugs
    told = await rows(database, "SELECT person, count(*), count(DISTINCT chapter_id) FROM notice GROUP BY 1 ORDER BY 1")
    assert told == [(f"person {at}", len(slugs) - 1, len(slugs) - 1) for at in range(3)]  # all but the notice


async def test_a_notice_is_made_once_for_ever(connection: Connection) -> None:
    """The database itself refuses a second one, and one of a chapter of another series."""
    series, other = await add_series(connection), await add_series(connection, "Another")
    made = await connection.fetchval(
        "INSERT INTO chapter (series_id, slug, kind, silent) VALUES ($1, 'a', 'chapter', false) RETURNING id", series
    )
    insert = "INSERT INTO notice (person, series_id, chapter_id) VALUES ('p', $1, $2)"
    await connection.execute(insert, series, made)
    with pytest.raises(asyncpg.UniqueViolationError):
        await connection.execute(insert, series, made)
    with pytest.raises(asyncpg.ForeignKeyViolationError):
        await connection.execute(insert.replace("'p'", "'q'"), other, made)
    with pytest.raises(asyncpg.ForeignKeyViolationError):
        await connection.execute("INSERT INTO follow (person, series_id) VALUES ('p', $1)", uuid4())


async def test_references_hold_and_what_they_name_stays(connection: Connection) -> None:
    """Rows that come in thousands are checked as one: none names what is not there, and nothing named goes away."""
    series, other = await add_series(connection), await add_series(connection, "Another")
    source = await add_source(connection, series)
    new = "INSERT INTO chapter (series_id, slug, kind, silent) VALUES ($1, $2, 'chapter', false) RETURNING id"
    made = await connection.fetchval(new, series, "a")
    carried = "INSERT INTO release (source_id, own_id, chapter_id) VALUES ($1, $2, $3)"
    await connection.execute(carried, source, "a", made)
    for sql, values in (
        (new, (uuid4(), "b")),
        (carried, (uuid4(), "b", made)),
        (carried, (source, "b", made + 1)),
        ("UPDATE release SET chapter_id = $1", (made + 1,)),
    ):
        with pytest.raises(asyncpg.ForeignKeyViolationError):
            await connection.execute(sql, *values)
    for sql in (
        "DELETE FROM chapter",
        "DELETE FROM series",
        "DELETE FROM source",
        "TRUNCATE chapter CASCADE",
        "TRUNCATE series CASCADE",
        "UPDATE series SET id = gen_random_uuid()",
        f"UPDATE chapter SET series_id = '{other}'",
        "UPDATE release SET source_id = gen_random_uuid()",
    ):
        with pytest.raises(asyncpg.CheckViolationError):
            await connection.execute(sql)
    async with connection.transaction():  # nor with the checks of replicas
        await connection.execute("SET LOCAL session_replication_role = replica")
        with pytest.raises(asyncpg.ForeignKeyViolationError):
            async with connection.transaction():
                await connection.execute(carried, source, "b", made + 1)
