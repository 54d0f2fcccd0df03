"""PostgreSQL and the declarations agree about every move there could be, also when asked by raw SQL."""

from enum import StrEnum
from itertools import product
from uuid import UUID

import asyncpg
import pytest

from imprint.lifecycles.lifecycle import Lifecycle
from imprint.lifecycles.registry import LIFECYCLES
from imprint.store.query import Link

# What a row needs to exist at all, apart from its lifecycle.
ROWS = {
    "post": "INSERT INTO post DEFAULT VALUES RETURNING id",
    "publication": """
        INSERT INTO publication (post_id, account_id, due_at)
        SELECT post.id, account.id, imprint_now() FROM post, account RETURNING publication.id""",
    "content": "INSERT INTO content DEFAULT VALUES RETURNING id",
    "object": """
        WITH c AS (INSERT INTO content DEFAULT VALUES RETURNING id)
        INSERT INTO object (content_id) SELECT id FROM c RETURNING id""",
    "derivation": """
        WITH c AS (INSERT INTO content DEFAULT VALUES RETURNING id),
             o AS (INSERT INTO object (content_id) SELECT id FROM c RETURNING content_id)
        INSERT INTO derivation (parent_id, variant, recipe_version) SELECT content_id, 'thumbnail', 1 FROM o
        RETURNING id""",
    "source": "INSERT INTO source (name) VALUES ('s') RETURNING id",
    "account": "INSERT INTO account (platform, name) VALUES ('sandbox', 'a') RETURNING id",
}

FILLED = {
    "lease_until": "imprint_now()",
    "intent_at": "imprint_now()",
    "phase": "'uploading'",
    "remote_id": "'r'",
    "error_code": "'e'",
    "store": "'local'",
    "key": "'k'",
    "size": "1",
    "sha256": "repeat('0', 64)",
    "content_type": "'image/png'",
    "expected_size": "1",
    "expected_type": "'image/png'",
    "nonce": "'n'",
    "expires_at": "imprint_now()",
    "object_id": "(SELECT id FROM object LIMIT 1)",
}


def columns(lifecycle: Lifecycle, state: StrEnum) -> str:
    """Write what an UPDATE must set besides the status for the state's own rules to hold."""
    wanted = {column: FILLED[column] for column in lifecycle.needs.get(state, ())}
    wanted |= dict.fromkeys(lifecycle.bars.get(state, ()), "NULL")
    return "".join(f", {column} = {value}" for column, value in wanted.items())


async def brought_to(connection: Link, lifecycle: Lifecycle, state: StrEnum) -> UUID:
    """Make a row and walk it to a state along moves that exist."""
    if lifecycle.table == "publication":
        await connection.execute(ROWS["account"])
        post = await connection.fetchval(ROWS["post"])
        await connection.execute("UPDATE post SET status = 'draft' WHERE id = $1", post)
    row: UUID = await connection.fetchval(ROWS[lifecycle.table])
    for step in path(lifecycle, state):
        await moved(connection, lifecycle, row, step)
    return row


async def moved(connection: Link, lifecycle: Lifecycle, row: UUID, state: StrEnum) -> None:
    """Move a row by raw SQL, as anybody with a database prompt could."""
    await connection.execute(
        f"UPDATE {lifecycle.table} SET status = $1{columns(lifecycle, state)} WHERE id = $2", str(state), row
    )


def path(lifecycle: Lifecycle, state: StrEnum) -> list[StrEnum]:
    """Find the shortest way from the beginning to a state."""
    ways: dict[StrEnum, list[StrEnum]] = {lifecycle.initial: []}
    frontier = [lifecycle.initial]
    for here in frontier:
        for arrow in lifecycle.open_to(here):
            if arrow.target not in ways:
                ways[arrow.target] = [*ways[here], arrow.target]
                frontier.append(arrow.target)
    return ways[state]


@pytest.mark.parametrize("lifecycle", LIFECYCLES, ids=lambda lifecycle: lifecycle.table)
async def test_postgresql_allows_exactly_the_declared_moves(connection: Link, lifecycle: Lifecycle) -> None:
    """Every (from, to) pair is tried by raw SQL: the declared ones pass and are audited, all others are refused."""
    tried = 0
    for source, target in product(lifecycle.states, repeat=2):
        transaction = connection.transaction()
        await transaction.start()
        row = await brought_to(connection, lifecycle, source)
        before = await connection.fetchval("SELECT count(*) FROM audit WHERE row_id = $1", row)
        refused = await refusal_of(connection, lifecycle, row, target)
        lines = (
            []
            if refused
            else await connection.fetch(
                "SELECT move, source, target FROM audit WHERE row_id = $1 ORDER BY id OFFSET $2", row, before
            )
        )
        await transaction.rollback()
        expected = lifecycle.move(source, target)
        seen = (refused, [tuple(line) for line in lines])
        if source == target:  # to stay where one is is no move: it is allowed, and leaves no line
            assert seen == (None, [])
        elif expected is None:
            assert seen == ("lifecycle_move", [])
        else:
            assert seen == (None, [(expected, source, target)])
        tried += 1
    assert tried == len(lifecycle.states) ** 2


async def refusal_of(connection: Link, lifecycle: Lifecycle, row: UUID, target: StrEnum) -> str | None:
    """Try a move and name the rule that refused it, None when it passed."""
    try:
        async with connection.transaction():
            await moved(connection, lifecycle, row, target)
    except asyncpg.CheckViolationError as refusal:
        return str(refusal.constraint_name)
    return None


@pytest.mark.parametrize("lifecycle", LIFECYCLES, ids=lambda lifecycle: lifecycle.table)
async def test_a_row_begins_in_the_initial_state_and_no_other(connection: Link, lifecycle: Lifecycle) -> None:
    """A raw INSERT with any other status than the first is refused."""
    await brought_to(connection, lifecycle, lifecycle.initial)
    for state in lifecycle.states:
        if state == lifecycle.initial:
            continue
        await connection.execute(f"ALTER TABLE {lifecycle.table} ALTER COLUMN status SET DEFAULT '{state}'")
        with pytest.raises(asyncpg.CheckViolationError):
            await connection.execute(ROWS[lifecycle.table])


async def test_a_state_that_is_not_declared_does_not_exist(connection: Link) -> None:
    """The seed's undefined `active` content cannot be written."""
    with pytest.raises(asyncpg.CheckViolationError):
        await connection.execute("INSERT INTO content (status) VALUES ('active')")


async def test_what_a_state_needs_is_demanded_by_the_database(connection: Link) -> None:
    """A publication cannot succeed without an id, fail without a code, or be cancelled once it may have left."""
    row = await brought_to(connection, LIFECYCLES[1], LIFECYCLES[1].states("running"))
    for change in (
        "status = 'success', lease_until = NULL, phase = NULL",
        "status = 'failed', lease_until = NULL, phase = NULL",
        "status = 'cancelled', lease_until = NULL, phase = NULL, intent_at = imprint_now()",
        "lease_until = NULL",
    ):
        with pytest.raises(asyncpg.CheckViolationError):
            await connection.execute(f"UPDATE publication SET {change} WHERE id = $1", row)


async def test_an_insert_that_is_thrown_away_leaves_no_line(connection: Link) -> None:
    """ON CONFLICT DO NOTHING is not an event."""
    row = await connection.fetchval(ROWS["post"])
    before = await connection.fetchval("SELECT count(*) FROM audit")
    await connection.execute("INSERT INTO post (id) VALUES ($1) ON CONFLICT DO NOTHING", row)
    assert await connection.fetchval("SELECT count(*) FROM audit") == before


async def test_the_audit_says_who_and_why_and_refuses_to_be_changed(connection: Link) -> None:
    """Actor and reason come from the transaction; UPDATE, DELETE and TRUNCATE are refused, replica mode or not."""
    async with connection.transaction():
        await connection.execute(
            "SELECT set_config('imprint.actor', 'ada', true), set_config('imprint.reason', 'x', true)"
        )
        row = await connection.fetchval(ROWS["post"])
    line = await connection.fetchrow("SELECT actor, reason, move, source FROM audit WHERE row_id = $1", row)
    assert line is not None
    assert tuple(line) == ("ada", "x", "create", None)
    for mode in ("origin", "replica"):
        await connection.execute(f"SET session_replication_role = {mode}")
        for tampering in ("UPDATE audit SET actor = 'eve'", "DELETE FROM audit", "TRUNCATE audit"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(tampering)
        with pytest.raises(asyncpg.CheckViolationError):
            await connection.execute("UPDATE post SET status = 'published'")


async def test_the_time_of_the_status_moves_with_it(connection: Link) -> None:
    """`status_at` is the moment of the last move, also when raw SQL says otherwise."""
    row = await connection.fetchval(ROWS["post"])
    await connection.execute("SET imprint.clock_offset = '1 day'")
    await connection.execute("UPDATE post SET status = 'draft', status_at = '2000-01-01' WHERE id = $1", row)
    ahead = await connection.fetchval("SELECT status_at > statement_timestamp() + interval '23 h' FROM post")
    assert ahead
