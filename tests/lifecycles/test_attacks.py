"""Ways around the lifecycles that somebody with a database prompt might try, each of them closed."""

from datetime import timedelta

import asyncpg
import pytest

from imprint.engine.lease import PUBLICATIONS
from imprint.store.query import Connection
from tests.engine.scene import add_account, add_publication

LEASE = timedelta(seconds=30)


async def test_tables_of_the_same_name_do_not_fool_the_guard(connection: Connection) -> None:
    """A temporary lifecycle_move and a temporary audit are not looked at, nor is another search path."""
    row = await connection.fetchval("INSERT INTO post DEFAULT VALUES RETURNING id")
    await connection.execute(
        "CREATE TEMP TABLE lifecycle_move AS"
        " SELECT 'post' AS lifecycle, 'review' AS source, 'published' AS target, 'magic' AS name, '' AS why"
    )
    await connection.execute("CREATE TEMP TABLE audit (LIKE public.audit)")
    with pytest.raises(asyncpg.CheckViolationError):
        await connection.execute("UPDATE post SET status = 'published' WHERE id = $1", row)
    await connection.execute("UPDATE post SET status = 'draft' WHERE id = $1", row)
    assert await connection.fetchval("SELECT count(*) FROM public.audit WHERE row_id = $1", row) == 2


async def test_every_function_of_ours_sees_our_tables_only(connection: Connection) -> None:
    """Each PL/pgSQL function names its search path; PgQueuer's own looks at no table."""
    open_ones = await connection.fetch("""
        SELECT proname FROM pg_proc JOIN pg_language l ON l.oid = prolang
        WHERE pronamespace = 'public'::regnamespace AND lanname = 'plpgsql' AND proname <> 'fn_pgqueuer_changed'
          AND NOT coalesce(proconfig, '{}') @> ARRAY['search_path=public, pg_temp']""")
    assert [row[0] for row in open_ones] == []


async def test_a_rule_in_the_way_of_the_audit_stops_the_move(connection: Connection) -> None:
    """What cannot be written down does not happen."""
    await connection.execute("CREATE RULE silence AS ON INSERT TO audit DO INSTEAD NOTHING")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await connection.execute("INSERT INTO post DEFAULT VALUES")


async def test_what_may_have_left_cannot_be_cancelled_forgotten_or_deleted(connection: Connection) -> None:
    """Not in one step, not in two, and not by lowering the fence."""
    row = await add_publication(connection, await add_account(connection))
    assert await PUBLICATIONS.claim(connection, row, LEASE)
    await connection.execute(
        "UPDATE publication SET phase = 'publishing', intent_at = imprint_now() WHERE id = $1", row
    )
    for trick in (
        "UPDATE publication SET status = 'cancelled', phase = NULL, lease_until = NULL, intent_at = NULL",
        "UPDATE publication SET phase = 'uploading', intent_at = NULL",
        "UPDATE publication SET fence = 0",
        "DELETE FROM publication",
        "TRUNCATE publication CASCADE",
        "UPDATE publication SET id = gen_random_uuid()",
    ):
        with pytest.raises(asyncpg.CheckViolationError):
            await connection.execute(trick)


@pytest.mark.parametrize("moment", ["10000-01-01", "-infinity", "4000-01-01 BC", "infinity"])
async def test_a_time_that_no_program_can_hold_is_refused(connection: Connection, moment: str) -> None:
    """One odd row must not stop every clock."""
    await add_publication(connection, await add_account(connection))
    for change in (
        f"UPDATE publication SET due_at = '{moment}'",
        f"UPDATE publication SET lease_until = '{moment}', status = 'running', phase = 'uploading'",
        f"UPDATE chore SET next_at = '{moment}'",
    ):
        with pytest.raises(asyncpg.CheckViolationError):
            await connection.execute(change)
