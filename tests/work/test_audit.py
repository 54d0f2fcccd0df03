"""The audit is a chain: whatever is done to it by hand is found, and what is not touched is in order."""

import os
import random
from datetime import timedelta

import pytest

from imprint.store.db import Database
from imprint.work import audit
from tests.waiting import until
from tests.work.posts import Author

# A thousand in the long run; see CONTRIBUTING.md.
TAMPERED = int(os.environ.get("TAMPERED_LINES", "300"))


async def findings(database: Database) -> list[str]:
    """Check everything."""
    async with database.connection() as connection:
        return (await audit.verify(connection)).findings


async def by_hand(database: Database, *statements: str) -> None:
    """Do what only somebody with the database's own rights can do."""
    async with database.connection() as connection, connection.transaction():
        await connection.execute("ALTER TABLE audit DISABLE TRIGGER ALL")
        for statement in statements:
            await connection.execute(statement)
        await connection.execute("ALTER TABLE audit ENABLE ALWAYS TRIGGER audit_refuse")
        await connection.execute("ALTER TABLE audit ENABLE ALWAYS TRIGGER audit_chain")


async def sealed(database: Database, seals: int) -> None:
    """Seal until there are so many: each waits for transactions of the whole server, also those of other tests."""

    async def enough() -> bool:
        await audit.seal(database)
        async with database.connection() as connection:
            return (await audit.verify(connection)).seals >= seals

    await until(enough)


async def test_an_untouched_audit_is_in_order_before_and_after_its_seals(author: Author) -> None:
    """Lines of any letters are hashed here as in the database; seals follow each other over all of them."""
    database = author.database
    for actor in ("ada", 'with "quotes" \\ and\nlines', "Ünïcödé 🦊 \x7f\x01", ""):
        async with database.transaction(actor, actor) as connection:
            await connection.execute("INSERT INTO content (name) VALUES ('x')")
    await author.brought("success")
    assert await findings(database) == []
    for number in (1, 2):
        await sealed(database, number)
        await author.draft()
    async with database.connection() as connection:
        found = await audit.verify(connection)
    assert (found.seals, found.findings) == (2, [])
    assert found.lines > 10
    assert found.newest is not None
    assert found.newest.startswith("2:")


async def test_a_seal_waits_for_who_may_still_write(author: Author) -> None:
    """A line whose number was drawn before the seal and that is committed after it is in the seal."""
    database = author.database
    await author.draft()
    async with database.connection() as late:
        transaction = late.transaction()
        await transaction.start()
        await late.execute("INSERT INTO content (name) VALUES ('late')")
        await author.draft()
        for _ in range(3):
            await audit.seal(database)
        async with database.connection() as connection:
            assert (await audit.verify(connection)).seals == 0
        await transaction.commit()
    await sealed(database, 1)
    async with database.connection() as connection:
        found = await audit.verify(connection)
    assert (found.seals, found.findings) == (1, [])
    await author.pass_time(timedelta(days=2))
    await audit.seal(database)
    assert await findings(database) == []


async def test_every_line_that_is_touched_is_found(author: Author) -> None:
    """Each field changed, a line removed, one added, two exchanged, a row moved without a line: all are found."""
    database = author.database
    for state in ("success", "failed", "unknown", "uploading"):
        await author.brought(state)
    await sealed(database, 1)
    await author.draft()  # and some lines that no seal holds yet
    async with database.connection() as connection:
        ids = [row[0] for row in await connection.fetch("SELECT id FROM audit ORDER BY id")]
    changes = (
        "UPDATE audit SET actor = actor || 'x' WHERE id = {id}",
        "UPDATE audit SET reason = coalesce(reason, '') || 'x' WHERE id = {id}",
        "UPDATE audit SET at = at + interval '1 microsecond' WHERE id = {id}",
        "UPDATE audit SET move = move || 'x' WHERE id = {id}",
        "UPDATE audit SET target = target || 'x' WHERE id = {id}",
        "UPDATE audit SET source = coalesce(source, '') || 'x' WHERE id = {id}",
        "UPDATE audit SET lifecycle = lifecycle || 'x' WHERE id = {id}",
        "UPDATE audit SET row_id = gen_random_uuid() WHERE id = {id}",
        "UPDATE audit SET sha256 = sha256(sha256) WHERE id = {id}",
        "DELETE FROM audit WHERE id = {id}",
        """INSERT INTO audit (lifecycle, row_id, move, target, actor, sha256)
        SELECT lifecycle, row_id, 'forged', target, 'forger', sha256 FROM audit WHERE id = {id}""",
    )
    chance = random.Random(1)  # noqa: S311 - which line, not a secret
    for number in range(TAMPERED):
        change = changes[number % len(changes)].format(id=chance.choice(ids))
        async with database.connection() as connection:
            transaction = connection.transaction()
            await transaction.start()
            await connection.execute("ALTER TABLE audit DISABLE TRIGGER ALL")
            await connection.execute(change)
            assert (await audit.verify(connection)).findings, change
            await transaction.rollback()
    assert await findings(database) == []


async def test_a_whole_history_cannot_vanish(author: Author) -> None:
    """Neither that of a row, sealed or not, nor a seal in the middle, nor a row moved past its triggers."""
    database = author.database
    post = await author.draft()
    for number in (1, 2, 3):
        await sealed(database, number)
        await author.draft()
    await by_hand(database, f"DELETE FROM audit WHERE row_id = '{post}'")
    found = await findings(database)
    assert any("seal 1" in each for each in found)
    assert any(f"{post} is draft, and its last line says nothing" in each for each in found)


async def test_the_database_refuses_to_break_a_seal(author: Author) -> None:
    """A seal that is whole is neither changed nor removed, without first taking its guard away."""
    await author.draft()
    await sealed(author.database, 1)
    async with author.database.connection() as connection:
        for statement in (
            "UPDATE audit_seal SET upto = 1 WHERE number = 1",
            "DELETE FROM audit_seal",
            "TRUNCATE audit_seal",
        ):
            with pytest.raises(Exception, match="never broken"):
                await connection.execute(statement)
