"""A request with a key of its own is done once, also when its server dies at the worst moment."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest

from imprint.problem import Problem, Unavailable
from imprint.store.db import Database
from imprint.store.stamp import Stamp, mark
from imprint.work import idempotency, post
from imprint.work.idempotency import Answered
from tests.api.visitor import Town, Visitor, answers
from tests.waiting import until
from tests.work.test_person import operator

# A real server that kills itself: with its post written but not committed, committed but not answered, or answered
# but not sent.
MORTAL = """
import asyncio, os, signal, sys
from pathlib import Path
from imprint.api import gate
from imprint.api.server import serve
from imprint.engine.address import address, listen
from imprint.settings import load
from imprint.store import db
from imprint.web.house import build
from imprint.work import post

def dying_after(does):
    async def dies(*given, **more):
        await does(*given, **more)
        os.kill(os.getpid(), signal.SIGKILL)
    return dies

async def main(point, url, home):
    module, name = {"before": (db, "mark"), "between": (post, "create"), "after": (gate, "once")}[point]
    setattr(module, name, dying_after(getattr(module, name)))
    settings = load({"IMPRINT_HOME": home, "IMPRINT_DATABASE_URL": url})
    opened = listen("127.0.0.1", 0)
    print(address(opened), flush=True)
    async with db.open_database(url) as database:
        await serve(database, lambda: build(database, settings, None), opened, asyncio.Event())

asyncio.run(main(*sys.argv[1:]))
"""
BODY = {"title": "Once"}
KEYED = {"Idempotency-Key": "k"}


@asynccontextmanager
async def mortal(point: str, url: str, home: Path) -> AsyncIterator[str]:
    """Run a server that kills itself at a point."""
    command = [sys.executable, "-c", MORTAL, point, url, str(home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            at = (await asyncio.to_thread(process.stdout.readline)).strip()
            assert at, "it did not start"
            await until(lambda: answers(at))
            yield at
            assert await asyncio.to_thread(process.wait, 20) == -signal.SIGKILL
        finally:
            process.kill()


async def killed(at: Town, by: Visitor, point: str, url: str, home: Path) -> Visitor:
    """Let a server die in the middle of a request; give the program that asked, at a server that lives."""
    program = await at.program(by, "posts:write")
    async with mortal(point, url, home) as dying, httpx2.AsyncClient(trust_env=False) as http:
        with pytest.raises(httpx2.TransportError):
            await http.post(f"{dying}/api/posts", json=BODY, headers={**program.http.headers, **KEYED})
    return program


async def lease_ends(database: Database) -> None:
    """Let the time pass after which a server is thought dead."""
    async with database.connection() as connection:
        await connection.execute("UPDATE idempotency SET running_until = running_until - interval '1 minute'")


async def posts_of(visitor: Visitor) -> int:
    """Count what there is."""
    return len((await visitor.get("/api/posts"))["items"])


@pytest.mark.parametrize("point", ["before", "between", "after"])
async def test_a_server_that_is_killed(point: str, at: Town, database_url: str, home: Path) -> None:
    """What was not committed is done by the next try, once; what was, is not done again."""
    program = await killed(at, await at.first(), point, database_url, home)
    assert await posts_of(program) == (0 if point == "before" else 1)
    if point != "after":
        running = await program.call("POST", "/api/posts", BODY, **KEYED)
        assert (running.status_code, running.json()["code"]) == (409, "idempotency.running")
        assert 1 <= int(running.headers["Retry-After"]) <= idempotency.LEASE.total_seconds()
        await lease_ends(at.database)
    tries = [await program.call("POST", "/api/posts", BODY, **KEYED) for _ in range(2)]
    if point == "between":
        assert {(each.status_code, each.json()["code"]) for each in tries} == {(409, "idempotency.answer_lost")}
    else:
        assert [each.status_code for each in tries] == [201, 201]
        assert tries[1].headers["Idempotency-Replayed"] == "true"
    assert await posts_of(program) == 1


async def test_after_a_death_two_at_once_do_it_once(at: Town) -> None:
    """Of many who come when the lease is over, one does it; the others wait for the answer or get it."""
    ada = await at.first()
    async with at.database.connection() as connection:
        person = await connection.fetchval("SELECT id FROM person")
        sent = httpx2.Request("POST", "http://x", json=BODY).content
        digest = sha256(b"POST /api/posts?\n" + sent).hexdigest()
        await idempotency.BEGIN.first(connection, person, "k", digest, idempotency.LASTS, idempotency.LEASE)
    assert await ada.refused("POST", "/api/posts", BODY, **KEYED) == (409, "idempotency.running")
    await lease_ends(at.database)
    came = await asyncio.gather(*(ada.call("POST", "/api/posts", BODY, **KEYED) for _ in range(12)))
    assert {each.status_code for each in came} <= {201, 409}
    assert sum(each.status_code == 201 and "Idempotency-Replayed" not in each.headers for each in came) == 1
    assert await posts_of(ada) == 1


async def test_a_request_that_is_cut_off_after_its_commit_is_not_done_again(
    at: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that is told to stop, and cannot wait, knows at once what it leaves behind."""
    ada = await at.first()
    created, asked = post.create, asyncio.Event()

    async def hangs(*given: object) -> None:
        await created(*given)  # type: ignore[arg-type]
        asked.set()
        await asyncio.sleep(60)

    monkeypatch.setattr(post, "create", hangs)
    asking = asyncio.create_task(ada.call("POST", "/api/posts", BODY, **KEYED))
    await asked.wait()
    for task in asyncio.all_tasks():
        if getattr(task.get_coro(), "__qualname__", "") == "RequestResponseCycle.run_asgi":
            task.cancel()
    assert (await asking).status_code == 500
    assert await ada.refused("POST", "/api/posts", BODY, **KEYED) == (409, "idempotency.answer_lost")
    assert await posts_of(ada) == 1


async def test_what_fails_after_a_commit_keeps_its_answer(database: Database) -> None:
    """A request with several transactions that fails on its way is answered the same again; a crash is only told."""
    ada, ran = await operator(database), 0

    def ends(status: int) -> Callable[[], Awaitable[Answered]]:
        async def do() -> Answered:
            nonlocal ran
            ran += 1
            for title in ("one", "two"):
                await post.create(database, ada, {"title": title})
            return Answered(status, "a", b"told")

        return do

    for _ in range(2):
        assert (await idempotency.once(database, ada, "k", b"r", ends(424))).body == b"told"
    assert ran == 1
    assert (await idempotency.once(database, ada, "l", b"r", ends(503))).body == b"told"
    with pytest.raises(Problem, match="answer was lost"):
        await idempotency.once(database, ada, "l", b"r", ends(503))
    assert ran == 2


async def test_what_changes_nothing_may_be_done_again(database: Database) -> None:
    """A transaction that only looks, or is rolled back, leaves no stamp: the next try is a first one."""
    ada, ran = await operator(database), 0

    async def fails() -> Answered:
        nonlocal ran
        ran += 1
        async with database.transaction(ada) as connection:
            await connection.fetch("SELECT FROM post")
        async with database.transaction(ada) as connection:
            await connection.execute("INSERT INTO post (title, owner) VALUES ('x', $1)", ada)
            raise Unavailable("x.away", "It is away.")

    for _ in range(2):
        with pytest.raises(Unavailable):
            await idempotency.once(database, ada, "k", b"r", fails)
    assert ran == 2


async def test_a_look_before_the_change_does_not_hide_it(database: Database) -> None:
    """The stamp is set by the first transaction that changes something, not by the first one; also in one another."""
    ada = await operator(database)

    async def nested() -> Answered:
        async with database.transaction(ada) as connection:
            await connection.fetch("SELECT FROM post")
        async with database.transaction(ada) as connection:
            await connection.execute("INSERT INTO post (title, owner) VALUES ('outer', $1)", ada)
            await asyncio.gather(*(post.create(database, ada, {"title": "inner"}) for _ in range(3)))
        raise RuntimeError

    async with asyncio.timeout(10):
        with pytest.raises(RuntimeError):
            await idempotency.once(database, ada, "k", b"r", nested)
    with pytest.raises(Problem, match="answer was lost"):
        await idempotency.once(database, ada, "k", b"r", nested)


async def test_who_was_thought_dead_commits_nothing(database: Database) -> None:
    """A server that slept through its lease finds that another does the request, and rolls back."""
    ada = await operator(database)

    async def does() -> Answered:
        await post.create(database, ada, {"title": "second"})
        return Answered(200, "a", b"second")

    async def sleeps() -> Answered:
        async with database.transaction(ada) as connection:
            await connection.execute("INSERT INTO post (title, owner) VALUES ('first', $1)", ada)
            await lease_ends(database)
            assert (await idempotency.once(database, ada, "k", b"r", does)).body == b"second"
        return Answered(200, "a", b"first")

    with pytest.raises(Problem) as refused:
        await idempotency.once(database, ada, "k", b"r", sleeps)
    assert refused.value.code == "idempotency.taken_over"
    async with database.connection() as connection:
        assert await connection.fetchval("SELECT array_agg(title) FROM post") == ["second"]
    assert (await idempotency.once(database, ada, "k", b"r", sleeps)).again


async def test_a_long_request_keeps_its_lease(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Signs of life are given as long as it runs."""
    ada = await operator(database)
    monkeypatch.setattr(idempotency, "RENEW_SECONDS", 0.05)

    async def renewed() -> bool:
        async with database.connection() as connection:
            return bool(await connection.fetchval("SELECT running_until > imprint_now() FROM idempotency"))

    async def takes_long() -> Answered:
        await lease_ends(database)
        await until(renewed)
        return Answered(200, "a", b"x")

    assert (await idempotency.once(database, ada, "k", b"r", takes_long)).body == b"x"


async def test_a_stamp_of_nobody_is_refused(database: Database) -> None:
    """What was dropped or forgotten cannot be committed under its old stamp."""
    async with database.transaction("x") as connection:
        assert not await mark(connection, Stamp("nobody", "k", uuid4()))  # nothing has changed yet
        await connection.execute("INSERT INTO post (title, owner) VALUES ('x', 'x')")
        with pytest.raises(Problem, match="asked for again"):
            await mark(connection, Stamp("nobody", "k", uuid4()))
