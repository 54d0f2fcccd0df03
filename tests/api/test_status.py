"""Status, figures and health over HTTP: one's own for everybody, the machine's for administrators."""

from tests.api.visitor import Town
from tests.work.posts import Author


async def test_everybody_sees_their_own_counts_and_nobody_elses(at: Town) -> None:
    """A member's numbers are of what is theirs; the machine's are not for them."""
    ada = await at.first()
    bob = await at.invited(ada, "bob")
    author = Author(at.database, "operator")
    for state in ("pending", "failed", "unknown", "success"):
        await author.brought(state)
    await author.read("UPDATE publication SET look_at = NULL WHERE status = 'unknown'")
    mine = await ada.get("/api/status/own")
    assert (
        mine["publications"].items()
        >= {
            "waiting": 1,
            "failed": 1,
            "unknown": 1,
            "asking": 1,
            "out": 1,
            "late": 0,
        }.items()
    )
    assert (mine["posts"]["scheduled"], mine["accounts"], mine["content"]) == (1, {"connected": 4}, {"uploaded": 4})
    theirs = await bob.get("/api/status/own")
    assert (theirs["posts"], theirs["accounts"], theirs["publications"]["waiting"]) == ({}, {}, 0)
    assert theirs["publications"]["nextAt"] is None
    for path in ("/api/status", "/api/figures", "/api/health"):
        assert await bob.refused("GET", path) == (403, "scope.lacking")
    assert (await ada.get("/api/status"))["work"]["publications"]["waiting"] == 1


async def test_figures_of_ones_own_and_of_all(at: Town) -> None:
    """What publishing has done is counted from the attempts, each person's apart."""
    ada = await at.first()
    bob = await at.invited(ada, "bob")
    for author, outcome in ((Author(at.database, "operator"), "refused"), (Author(at.database, "zoe"), "no_answer")):
        publication = await author.publication(await author.brought("failed"))
        await author.read(
            "UPDATE attempt SET drift = '1 s', ended_at = imprint_now(), outcome = $2 WHERE publication_id = $1",
            publication,
            outcome,
        )
    mine = await ada.get("/api/figures/own")
    assert (mine["attempts"], mine["open"], mine["driftLastHour"]["attempts"]) == ({"refused": 1}, {}, 1)
    assert (await bob.get("/api/figures/own"))["attempts"] == {}
    assert (await ada.get("/api/figures"))["attempts"] == {"no_answer": 1, "refused": 1}


async def test_the_doctor_answers_over_http(at: Town) -> None:
    """Each finding says what was looked at, what was seen and what to do."""
    ada = await at.first()
    told = await ada.get("/api/health")
    assert {"database", "workers"} <= {each["subject"] for each in told["items"]}
    assert all(each["seen"] for each in told["items"])
    assert told["ok"] == all(each["level"] != "bad" for each in told["items"])
