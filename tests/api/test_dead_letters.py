"""Dead letters over HTTP: a person sees and moves their own; those of the machine are for administrators."""

from uuid import UUID

from imprint.sources.contract import Fetched, SetAside
from imprint.work.ingest import Carrier, ingest
from imprint.work.scope import Role
from tests.api.test_series import walked
from tests.api.visitor import Town, Visitor

MACHINE = "/api/system/dead-letters"
OWN = "/api/dead-letters"


async def set_aside(at: Town, who: Visitor, *items: str) -> str:
    """Let items of a source of somebody be set aside, and give the source."""
    series = await who.post("/api/series", {"place": "https://serials.example/feed", "title": "Sea"}, 201)
    (source,) = (await who.get(f"/api/series/{series['id']}/sources"))["items"]
    aside = tuple(SetAside(item, "It has no number.", item) for item in items)
    async with at.database.transaction("test") as connection:
        await ingest(connection, Carrier(UUID(source["id"]), UUID(series["id"]), first=False), Fetched(set_aside=aside))
    return str(source["id"])


async def hold(at: Town, entrypoint: str, key: str) -> None:
    """Let a job be held after its last attempt."""
    async with at.database.connection() as connection:
        await connection.execute(
            "INSERT INTO pgqueuer (entrypoint, payload, priority, status, created, updated, heartbeat, execute_after) "
            "VALUES ($1, $2, 0, 'failed', now(), now(), now(), now())",
            entrypoint,
            key.encode(),
        )


async def test_each_looks_at_their_own_and_the_machine_has_all(at: Town) -> None:
    """A member sees what their sources brought; an administrator what everybody's did, and every job."""
    ada = await at.first()
    bob = await at.invited(ada, "bob")
    source = await set_aside(at, bob, "x1", "x2")
    await set_aside(at, ada, "y1")
    await hold(at, "poll", source)
    await hold(at, "chore", "clean")
    mine = (await bob.get(OWN))["items"]
    assert sorted(each["data"]["item"] for each in mine) == ["x1", "x2"]
    eve = await at.invited(bob, "eve", Role.READER)
    assert [each["moves"] for each in (await eve.get(OWN))["items"]] == [[], []]
    assert [[move["name"] for move in each["moves"]] for each in mine] == [["requeue", "discard"]] * 2
    assert await walked(bob, OWN, 1) == mine
    assert len((await bob.get(f"{OWN}?queue=ingest"))["items"]) == 2
    assert (await bob.get(f"{OWN}?queue=poll"))["items"] == []
    assert await bob.refused("GET", MACHINE) == (403, "scope.lacking")
    assert len((await ada.get(OWN))["items"]) == 1
    everything = await walked(ada, MACHINE, 2)
    assert sorted(each["queue"] for each in everything) == ["chore", "ingest", "ingest", "ingest", "poll"]
    assert everything == (await ada.get(MACHINE))["items"]
    for each in everything:
        own = each["id"] in {one["id"] for one in mine}
        answer = await bob.call("GET", f"{OWN}/{each['id']}")
        assert answer.status_code == (200 if own else 404), answer.text
        for move in ("requeue", "discard"):
            assert await bob.refused("POST", f"{MACHINE}/{each['id']}/{move}") == (403, "scope.lacking")
            if not own:
                assert await bob.refused("POST", f"{OWN}/{each['id']}/{move}") == (404, "dead_letter.missing")
    assert len(await walked(ada, MACHINE, 50)) == 5


async def test_letters_are_shown_requeued_and_let_go(at: Town) -> None:
    """With data, error and history; one by one or many; what is gone is missing, and the audit says who did it."""
    ada = await at.first()
    bob = await at.invited(ada, "bob")
    source = await set_aside(at, bob, "x1", "x2", "x3")
    letters = {each["data"]["item"]: each for each in (await ada.get(MACHINE))["items"]}
    assert [each["name"] for each in letters["x1"]["moves"]] == ["requeue", "discard"]
    path = f"{MACHINE}/{letters['x1']['id']}"
    shown = await ada.get(path)
    assert (shown["error"], shown["data"]["source"]) == ("It has no number.", "serials.example/feed")
    assert [each["what"] for each in shown["history"]] == ["set aside"]
    assert (await ada.post(f"{path}/requeue"))["moves"] == []
    assert await ada.refused("POST", f"{path}/requeue") == (404, "dead_letter.missing")
    await bob.post(f"/api/sources/{source}/disable")
    assert await ada.refused("POST", f"{MACHINE}/{letters['x2']['id']}/requeue") == (409, "dead_letter.busy")
    await ada.post(f"{MACHINE}/{letters['x2']['id']}/discard")
    wrongs: list[dict[str, object]] = [{}, {"ids": ["a1"], "everything": True}, {"ids": ["a1"], "queue": "ingest"}]
    for wrong in wrongs:
        assert await ada.refused("POST", f"{MACHINE}/bulk/discard", wrong) == (422, "dead_letter.which")
    await hold(at, "chore", "clean")
    done = await ada.post(f"{MACHINE}/bulk/discard", {"ids": [letters["x3"]["id"], "a0"]})
    assert [(each["id"], each["ok"]) for each in done["outcomes"]] == [(letters["x3"]["id"], True), ("a0", False)]
    again = await ada.post(f"{MACHINE}/bulk/requeue", {"everything": True, "queue": "chore"})
    assert [each["ok"] for each in again["outcomes"]] == [True]
    assert (await ada.get(MACHINE))["items"] == []
    async with at.database.connection() as connection:
        rows = await connection.fetch("SELECT actor, move FROM audit WHERE lifecycle = 'dead_letter' ORDER BY id")
    assert [tuple(row) for row in rows] == [("operator", move) for move in ("requeue", "discard", "discard", "requeue")]


async def test_a_person_moves_their_own_and_nobody_elses(at: Town) -> None:
    """Requeued, it is read or sent again; discarded, it is gone; the audit says who; those of another stay."""
    ada = await at.first()
    bob = await at.invited(ada, "bob")
    await set_aside(at, ada, "y1")
    source = await set_aside(at, bob, "x1", "x2", "x3")
    await hold(at, "chore", "clean")
    letters = {each["data"]["item"]: each["id"] for each in (await bob.get(OWN))["items"]}
    async with at.database.connection() as connection:
        target = await connection.fetchval(
            "INSERT INTO target (person, label, service, key_id, nonce, sealed) "
            "VALUES ($1, 'phone', 'ntfy', $2, $3, $4) RETURNING id",
            bob.signed["personId"],
            "ab" * 8,
            bytes(12),
            bytes(32),
        )
        await connection.execute(
            "INSERT INTO delivery (target_id, next_at, closed_at, failed_at, error, attempts) "
            "VALUES ($1, imprint_now(), imprint_now(), imprint_now(), 'It answered 503.', 5)",
            target,
        )
        await connection.execute("UPDATE source SET next_check_at = imprint_now() + interval '1 day'")
    (message,) = (await bob.get(f"{OWN}?queue=notify"))["items"]
    assert (await bob.post(f"{OWN}/{message['id']}/requeue"))["moves"] == []
    assert await bob.refused("POST", f"{OWN}/{message['id']}/requeue") == (404, "dead_letter.missing")
    await bob.post(f"{OWN}/{letters['x1']}/requeue")
    await bob.post(f"{OWN}/{letters['x2']}/discard")
    async with at.database.connection() as connection:
        sent = await connection.fetchrow("SELECT failed_at, attempts FROM delivery WHERE target_id = $1", target)
        due = await connection.fetchval("SELECT next_check_at <= imprint_now() FROM source WHERE id = $1", UUID(source))
    assert sent is not None
    assert (*sent, due) == (None, 0, True)
    done = await bob.post(f"{OWN}/bulk/discard", {"everything": True})
    assert [(each["id"], each["ok"]) for each in done["outcomes"]] == [(letters["x3"], True)]
    assert (await bob.get(OWN))["items"] == []
    assert sorted(each["queue"] for each in (await ada.get(MACHINE))["items"]) == ["chore", "ingest"]
    async with at.database.connection() as connection:
        rows = await connection.fetch("SELECT actor, move FROM audit WHERE lifecycle = 'dead_letter' ORDER BY id")
    moves = ("requeue", "requeue", "discard", "discard")
    assert [tuple(row) for row in rows] == [(bob.signed["personId"], move) for move in moves]
