"""Troubles: what a machine has after a day of work, so that its pages have something to show."""

from typing import Any
from uuid import UUID

from tests.api.test_dead_letters import hold, set_aside
from tests.api.test_notices import told
from tests.api.visitor import Visitor
from tests.browser.world import World


async def troubled(at: World, who: Visitor, post: str) -> dict[str, Any]:
    """Let there be news, dead letters of every kind, a target, a worker and a day of attempts; gives their ids."""
    await told(at.town, who, "Chapter 1", "Chapter 2", "Chapter 3: The storm")
    await set_aside(at.town, who, "entry 45 without a number")
    letter = await undelivered(at, who.signed["personId"])
    await hold(at.town, "poll", "0b0f5b3e-1c52-4a4e-9c3e-5d1f3a5f7c11")
    await _worked(at, UUID(post))
    return {"letter": letter, "person": who.signed["personId"]}


async def undelivered(at: World, person: str) -> str:
    """Let a message to somebody never have arrived, and give its dead letter."""
    async with at.database.connection() as connection:
        target = await connection.fetchval(
            "INSERT INTO target (person, label, service, key_id, nonce, sealed, last_error, last_error_at) "
            "VALUES ($1, 'phone', 'ntfy', $2, $3, $4, 'The service answered 503.', imprint_now()) RETURNING id",
            person,
            "ab" * 8,
            bytes(12),
            bytes(32),
        )
        delivery = await connection.fetchval(
            "INSERT INTO delivery (target_id, next_at, closed_at, failed_at, error, attempts) VALUES "
            "($1, imprint_now(), imprint_now(), imprint_now(), 'The service answered 503.', 5) RETURNING id",
            target,
        )
    return f"d{delivery}"


async def _worked(at: World, post: UUID) -> None:
    """Let attempts have been made all day, and a worker be there."""
    async with at.database.connection() as connection:
        await connection.execute(
            "INSERT INTO attempt (publication_id, fence, worker, began_at, drift, ended_at, outcome, remote_id) "
            "SELECT p.id, 1000 + n, 'studio:17', at, make_interval(secs => 0.2 + n % 17 * 0.3), at + interval '2 s', "
            "    CASE n % 9 WHEN 4 THEN 'rate_limited' WHEN 7 THEN 'refused' ELSE 'published' END, n::text "
            "FROM publication p, generate_series(1, 200) AS n, "
            "LATERAL (SELECT imprint_now() - n * interval '6 min' - (n * n % 31) * interval '7 s' AS at) AS moment "
            "WHERE p.post_id = $1",
            post,
        )
        await connection.execute(
            "INSERT INTO worker (id, name, version, concurrency, started_at) "
            "VALUES (gen_random_uuid(), 'studio:17', '1.0.0', 4, imprint_now() - interval '20 h')"
        )
