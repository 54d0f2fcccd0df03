"""Sign-ins: of many tries few are looked at, and the work they make does not tell whether there is such a name."""

import asyncio
import os

import pytest

from imprint.problem import Problem
from imprint.work import password, session, sign_in_limit
from imprint.work.sign_in_limit import MOST_BY_NAME, MOST_BY_NAME_AND_ADDRESS, MOST_FROM_ADDRESS
from tests.api.visitor import PASSWORD, Town

# Ten thousand in the long run; see CONTRIBUTING.md.
TRIES = int(os.environ.get("SIGN_IN_TRIES", "600"))


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """Count how often a password is really compared, and with what; the comparing itself is done once for each kind."""
    seen: list[str | None] = []
    real = password._check
    known: dict[tuple[str, str | None], bool] = {}

    def check(given: str, kept: str | None) -> bool:
        seen.append(kept)
        if (given, kept) not in known:
            known[given, kept] = real(given, kept)
        return known[given, kept]

    monkeypatch.setattr(password, "_check", check)
    return seen


async def test_limits_hold_however_many_try(at: Town, looked_at: list[str | None]) -> None:
    """From one address few are looked at, by one name not many more from everywhere; nobody comes in by trying."""
    await at.first()
    looked_at.clear()

    async def wrong(name: str, address: str) -> str:
        try:
            await session.sign_in(at.database, name, "wrong wrong wrong", address=address)
        except Problem as problem:
            return problem.code
        return "let in"

    third = TRIES // 3
    ways = {
        "one address, one name": ([("ada", "203.0.113.7")] * third, MOST_BY_NAME_AND_ADDRESS),
        "one address, many names": ([(f"nobody {n}", "203.0.113.8") for n in range(third)], MOST_FROM_ADDRESS),
        "one name, many addresses": (
            [("ada", f"198.51.{n // 200 % 200}.{n % 200}") for n in range(third)],
            MOST_BY_NAME - third,
        ),
    }
    for way, (tries, most) in ways.items():
        before = len(looked_at)
        told = await asyncio.gather(*(wrong(*each) for each in tries))
        compared = len(looked_at) - before
        assert set(told) <= {"sign_in.refused", "sign_in.too_many"}, way
        assert told.count("sign_in.refused") == compared
        assert compared <= (most if most > 0 else MOST_BY_NAME), (way, compared)
    with pytest.raises(Problem, match="too many tries"):
        await session.sign_in(at.database, "ada", PASSWORD, address="203.0.113.7")
    assert sign_in_limit.WINDOW.total_seconds() >= 600


async def test_known_and_unknown_names_make_the_same_work(
    at: Town, looked_at: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One comparing of the same cost, whether there is such a name or not; `python -m bench.sign_in` has the times."""
    ada = await at.first()
    grace = await at.invited(ada, "grace")
    await ada.post(f"/api/people/{grace.signed['personId']}/disable")
    verified: list[str] = []
    real = password._HASHER

    class Hasher:
        def verify(self, kept: str, given: bytes) -> bool:
            verified.append(kept.rpartition("$")[0].rpartition("$")[0])  # kind, memory, rounds: without salt and hash
            return real.verify(kept, given)

        hash = staticmethod(real.hash)

    monkeypatch.setattr(password, "_HASHER", Hasher())
    looked_at.clear()
    for name in ("ada", "nobody", "grace", "ADA", "x" * 200):
        with pytest.raises(Problem) as told:
            await session.sign_in(at.database, name, f"wrong for {name}", address="203.0.113.9")
        assert told.value.code == "sign_in.refused"
    assert len(looked_at) == len(verified) == 5
    assert len(set(verified)) == 1
