"""`imprint prove model`: visits every world that the model can come to, and names those that break the promise."""

from collections import deque
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from imprint.decisions.publishing import Known, Policy
from imprint.lifecycles.publication import PublicationStatus as S
from imprint.proof.model import Rules, World, moves

OVER = {S.SUCCESS, S.FAILED, S.CANCELLED}


@dataclass(frozen=True)
class Explored:
    """What was found: how many worlds there are, and the first of each kind that must not be, with the way to it."""

    states: int
    duplicates: int
    stuck: int
    false_ends: int
    example: tuple[str, ...]

    @property
    def unsafe(self) -> bool:
        """Say whether a promise can be broken."""
        return bool(self.duplicates or self.stuck or self.false_ends)


def explore(rules: Rules) -> Explored:
    """Visit every world that can come to be; name those that break a promise, and those from which none is kept."""
    first = World(Known(S.PENDING, may_resend=rules.token, can_look=rules.can_look))
    came: dict[World, tuple[World, str] | None] = {first: None}
    before: dict[World, list[World]] = {}
    frontier = deque([first])
    while frontier:
        world = frontier.popleft()
        for name, fault, after in moves(world, rules):
            after = _alike(after)  # noqa: PLW2901 - the two workers are the same
            if not fault:
                before.setdefault(after, []).append(world)
            if after not in came:
                came[after] = (world, name)
                frontier.append(after)
    twice = [world for world in came if world.out > 1]
    false = [world for world in came if _false(world)]
    stuck = came.keys() - _leads_to_an_end(came, before)
    bad = next(iter([*twice, *false, *stuck]), None)
    return Explored(len(came), len(twice), len(stuck), len(false), _way(came, bad))


def _alike(world: World) -> World:
    first, second = sorted(world.workers, key=repr)
    return world._replace(workers=(first, second))


def _false(world: World) -> bool:
    """Say whether a world says what is not so: out though it is not, or over though it is, and nobody will tell."""
    if world.known.status is S.SUCCESS:
        return world.out == 0
    quiet = not world.flying and all(each.step == "idle" for each in world.workers)
    return world.known.status in {S.FAILED, S.CANCELLED} and world.out > 0 and quiet


def _leads_to_an_end(worlds: dict[World, Any], before: dict[World, list[World]]) -> set[World]:
    """Give the worlds from which an end can be reached without another fault."""
    good = {world for world in worlds if world.known.status in OVER}
    frontier = deque(good)
    while frontier:
        for world in before.get(frontier.popleft(), ()):
            if world not in good:
                good.add(world)
                frontier.append(world)
    return good


def _way(came: dict[World, tuple[World, str] | None], to: World | None) -> tuple[str, ...]:
    names: list[str] = []
    while to is not None and (step := came[to]) is not None:
        names.append(step[1])
        to = step[0]
    return tuple(reversed(names))


PLATFORMS = {
    "knows our key": Rules(token=True),
    "knows our key and cannot be looked at": Rules(token=True, can_look=False),
    "can be looked at": Rules(),
    "can be looked at and shows things late": Rules(lags=True),
    "can only be sent to": Rules(can_look=False),
}
ABLATIONS = {
    "resend when a look-up is empty": Rules(lags=True, resends_when_empty=True),
    "no quiet period": Rules(policy=Policy(quiet=timedelta(0))),
    "no fence": Rules(fence=False),
}


def prove_model() -> dict[str, Any]:
    """Explore every platform; then see that each ablation is found to be unsafe."""
    found = {name: explore(rules) for name, rules in PLATFORMS.items()}
    ablated = {name: explore(rules) for name, rules in ABLATIONS.items()}
    wrong = [f"{name}: {', '.join(each.example)}" for name, each in found.items() if each.unsafe]
    wrong += [f"{name}: the model does not notice" for name, each in ablated.items() if not each.unsafe]
    return {
        "states": sum(each.states for each in found.values()),
        "duplicates": sum(each.duplicates for each in found.values()),
        "stuck": sum(each.stuck for each in found.values()),
        "false_ends": sum(each.false_ends for each in found.values()),
        "platforms": {name: each.states for name, each in found.items()},
        "ablations": [
            {"name": name, "unsafe": each.unsafe, "example": list(each.example)} for name, each in ablated.items()
        ],
        "wrong": wrong,
    }
