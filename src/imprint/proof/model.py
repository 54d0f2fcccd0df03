"""The model: a small world over the decision core that is shipped, and everything that can happen next in it.

Two workers take steps that others can come between: claim, upload, intend, send, read the answer, record, look. A clock
takes leases back, lets quiet periods pass and due times come. A person cancels, reschedules and is asked. Up to three
faults: a worker dies or is asleep past its lease, a request is refused, limited, lost, or lands after nobody waits for
it any more. What to do next is decided by `decisions.publishing` and by nothing else. A request in flight has landed or
is gone before a quiet period is over; that is what the period is for.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, NamedTuple

from imprint.decisions import publishing as p
from imprint.decisions.publishing import DEFAULT, Known, Policy, decide
from imprint.lifecycles.publication import PublicationStatus as S

FAULTS = 3


class Worker(NamedTuple):
    """Where a worker stands; `mine`: its fence is the newest; `late`: its own clock says that its time is over."""

    step: str = "idle"
    mine: bool = False
    late: bool = False
    event: p.Event | None = None


IDLE = Worker()


class World(NamedTuple):
    """One publication, the platform, what flies between them, and everybody who has to do with it."""

    known: Known
    due: bool = True
    look: str = ""  # "quiet": a quiet period must pass; "soon": time must pass; "due"
    asked: bool = False
    evidence: bool = False  # a success that was told when its row could not take it
    out: int = 0
    flying: int = 0  # requests that nobody waits for and that may still land
    faults: int = FAULTS
    wishes: int = 2  # what the person may still change
    workers: tuple[Worker, Worker] = (IDLE, IDLE)


class Move(NamedTuple):
    """Something that can happen, whether it is a fault, and the world after it."""

    name: str
    fault: bool
    world: World


@dataclass(frozen=True)
class Rules:
    """The platform, and what was taken out of the protocol to see whether the model notices."""

    token: bool = False
    can_look: bool = True
    lags: bool = False
    fence: bool = True
    resends_when_empty: bool = False
    policy: Policy = DEFAULT


def moves(world: World, rules: Rules) -> Iterator[Move]:
    """Give everything that can happen next."""
    yield from _land(world, rules)
    yield from _clock(world, rules)
    yield from _person(world, rules)
    for place in (0, 1):
        yield from _work(world, place, rules)


def _set(world: World, place: int, worker: Worker, *, newest: bool = False, **given: Any) -> World:
    """Change a worker, and the world with it; whoever takes a new fence makes the other's old."""
    workers = list(world.workers)
    if newest:
        workers[1 - place] = workers[1 - place]._replace(mine=False)
    workers[place] = worker
    return world._replace(**given, workers=(workers[0], workers[1]))


def _old(world: World) -> World:
    """Let nobody's fence be the newest."""
    first, second = (each._replace(mine=False) for each in world.workers)
    return world._replace(workers=(first, second))


def _effect(world: World, rules: Rules) -> int:
    """Count what others see; a platform that knows the key does the same thing once."""
    return max(world.out, 1) if rules.token else world.out + 1


def _land(world: World, rules: Rules) -> Iterator[Move]:
    if world.flying:
        left = world._replace(flying=world.flying - 1)
        yield Move("a late request lands", False, left._replace(out=_effect(world, rules)))  # noqa: FBT003
        yield Move("a late request is gone", False, left)  # noqa: FBT003


def _clock(world: World, rules: Rules) -> Iterator[Move]:
    known = world.known
    holder = next(
        (each for each in world.workers if each.mine and each.step not in {"idle", "looking", "looked"}), None
    )
    if known.status is S.RUNNING and (holder is None or world.faults):
        # The lease outlives the deadline of the request: whoever has not sent by then knows that its time is over.
        first, second = (each._replace(late=each.late or each.mine) for each in world.workers)
        asleep = world._replace(workers=(first, second), faults=world.faults - (holder is not None))
        name = "the lease of a dead worker ends" if holder is None else "the lease of a sleeper ends"
        yield Move(name, holder is not None, _applied(_old(asleep), decide(known, p.Died(), policy=rules.policy)))
    if not world.due and known.status is S.PENDING:
        yield Move("its time comes", False, world._replace(due=True))  # noqa: FBT003
    if known.status is S.UNKNOWN and world.look == "soon":
        yield Move("time passes", False, world._replace(look="due"))  # noqa: FBT003
    if known.status is S.UNKNOWN and world.look == "quiet" and _settled(world):
        yield Move("the quiet period is over", False, world._replace(look="due"))  # noqa: FBT003


def _settled(world: World) -> bool:
    """Say whether nothing can reach the platform any more that left, or could leave, before the quiet period."""
    return not world.flying and not any(
        each.step == "sent" or (each.step == "intended" and not each.late) for each in world.workers
    )


def _person(world: World, rules: Rules) -> Iterator[Move]:
    known = world.known
    if world.wishes:
        action = decide(known, p.Cancelled(), policy=rules.policy)
        if isinstance(action, p.Withdraw):
            yield Move("a person cancels", False, _applied(world, action)._replace(wishes=0))  # noqa: FBT003
        if known.status is S.PENDING and not known.left:
            later = world._replace(due=False, wishes=world.wishes - 1)
            yield Move("a person reschedules", False, later)  # noqa: FBT003
    if known.status is S.UNKNOWN and world.asked:
        found = p.Accepted() if world.out else p.SaidNotOut()
        action = decide(known, found, policy=rules.policy)
        yield Move("a person looks", False, _applied(_old(world), action))  # noqa: FBT003


def _work(world: World, place: int, rules: Rules) -> Iterator[Move]:
    worker = world.workers[place]
    if worker.step != "idle" and world.faults:
        flying = world.flying + (worker.step == "sent")
        dead = _set(world, place, IDLE, faults=world.faults - 1, flying=flying)
        if worker.step in {"looking", "looked"} and worker.mine and world.known.status is S.UNKNOWN:
            dead = dead._replace(look="soon")  # nobody else may look for a while
        yield Move("a worker dies", True, dead)  # noqa: FBT003
    for name, fault, after in _STEPS[worker.step](world, place, rules):
        yield Move(f"a worker {name}", fault, after)


Steps = Iterator[tuple[str, bool, World]]


def _idle(world: World, place: int, rules: Rules) -> Steps:
    known = world.known
    if known.status is S.PENDING and world.due:
        mine = replace(known, status=S.RUNNING, intent=False, renewed=False)
        if world.evidence:
            yield "finds the evidence", False, _applied(world._replace(known=mine), p.Succeed())
            return
        if known.left and not rules.token:
            lost = decide(mine, p.Refused("once.over"), policy=rules.policy)
            yield "does not send again", False, _applied(world._replace(known=mine), lost)
            return
        yield "claims", False, _set(world, place, Worker("claimed", mine=True), newest=True, known=mine)
    if known.status is S.UNKNOWN and world.look == "due" and not world.asked:
        action = decide(known, p.Due(), policy=rules.policy)
        if isinstance(action, p.Look):
            yield "looks", False, _set(world, place, Worker("looking", mine=True), newest=True, look="taken")
        else:
            yield "need not look", False, _applied(_old(world), action)


def _claimed(world: World, place: int, rules: Rules) -> Steps:
    worker = world.workers[place]
    if world.faults:
        for event in (p.NotYet(), p.RateLimited(), p.Refused("no"), p.SignInAgain(renewable=False), p.NoAnswer()):
            ended = worker._replace(step="ended", event=event)
            yield f"uploads: {type(event).__name__}", True, _set(world, place, ended, faults=world.faults - 1)
    allowed = world.known.status is S.RUNNING and (worker.mine or not rules.fence)
    if allowed:
        intended = replace(world.known, intent=True)
        yield "intends", False, _set(world, place, worker._replace(step="intended", late=False), known=intended)
    else:
        yield "is refused by the fence", False, _set(world, place, IDLE)


def _intended(world: World, place: int, rules: Rules) -> Steps:
    worker = world.workers[place]
    if worker.late and rules.fence:
        yield "sees that its time is over", False, _set(world, place, worker._replace(step="ended", event=p.NotYet()))
    else:
        yield "sends", False, _set(world, place, worker._replace(step="sent"))


def _sent(world: World, place: int, rules: Rules) -> Steps:
    worker = world.workers[place]

    def ended(event: p.Event, **given: Any) -> World:
        return _set(world, place, worker._replace(step="ended", event=event), **given)

    landed = worker._replace(step="landed")
    yield "has its request taken", False, _set(world, place, landed, out=_effect(world, rules))
    if world.faults:
        fewer = world.faults - 1
        for event in (p.RateLimited(), p.Refused("no"), p.SignInAgain(renewable=False)):
            yield f"hears {type(event).__name__}", True, ended(event, faults=fewer)
        yield "has its request lost", True, _set(world, place, worker._replace(step="gone"), faults=fewer)
        yield "does not wait any longer", True, ended(p.NoAnswer(), faults=fewer, flying=world.flying + 1)


def _landed(world: World, place: int, rules: Rules) -> Steps:
    del rules
    worker = world.workers[place]
    yield "hears that it is out", False, _set(world, place, worker._replace(step="ended", event=p.Accepted()))
    if world.faults:
        unheard = worker._replace(step="ended", event=p.NoAnswer())
        yield "does not hear that it is out", True, _set(world, place, unheard, faults=world.faults - 1)


def _gone(world: World, place: int, rules: Rules) -> Steps:
    del rules
    worker = world.workers[place]
    yield "hears nothing", False, _set(world, place, worker._replace(step="ended", event=p.NoAnswer()))


def _ended(world: World, place: int, rules: Rules) -> Steps:
    worker, known = world.workers[place], world.known
    event = worker.event or p.NoAnswer()
    done = _set(world, place, IDLE)
    if isinstance(event, p.Accepted):
        if known.status in {S.RUNNING, S.UNKNOWN}:
            yield "records that it is out", False, _applied(_old(done), decide(known, event, policy=rules.policy))
        elif known.status is S.FAILED:
            again = replace(known, status=S.PENDING, attempts=0, crashes=0, looks=0, intent=False)
            yield "keeps the evidence", False, done._replace(known=again, evidence=True)
        else:
            yield "keeps the evidence", False, done._replace(evidence=known.status is S.PENDING)
    elif known.status is S.RUNNING and (worker.mine or not rules.fence):
        action = decide(replace(known, renewed=True), event, policy=rules.policy)
        yield f"records {type(event).__name__}", False, _applied(done, action)
    else:
        yield "is too late to record", False, done


def _looking(world: World, place: int, rules: Rules) -> Steps:
    worker = world.workers[place]
    if world.out:
        yield "sees it", False, _set(world, place, worker._replace(step="looked", event=p.Accepted()))
    if not world.out or rules.lags:
        yield "sees nothing", False, _set(world, place, worker._replace(step="looked", event=p.NotFound()))
    if world.faults:
        for event in (p.NotYet(), p.RateLimited(), p.NoAnswer()):
            failed = worker._replace(step="looked", event=event)
            yield f"cannot look: {type(event).__name__}", True, _set(world, place, failed, faults=world.faults - 1)


def _looked(world: World, place: int, rules: Rules) -> Steps:
    worker, known = world.workers[place], world.known
    event = worker.event or p.NotFound()
    done = _set(world, place, IDLE)
    if not (worker.mine or not rules.fence) or known.status is not S.UNKNOWN:
        yield "has looked for nothing", False, done
        return
    action = decide(known, event, policy=rules.policy)
    if isinstance(event, p.NotFound):
        done = done._replace(known=replace(known, looks=known.looks + 1))
    if rules.resends_when_empty and isinstance(event, p.NotFound):
        action = p.SendAgain(left=False)
    yield f"acts on {type(event).__name__}", False, _applied(done, action)


_STEPS: dict[str, Callable[[World, int, Rules], Steps]] = {
    "idle": _idle,
    "claimed": _claimed,
    "intended": _intended,
    "sent": _sent,
    "landed": _landed,
    "gone": _gone,
    "ended": _ended,
    "looking": _looking,
    "looked": _looked,
}


def _applied(world: World, action: p.Action) -> World:  # noqa: C901, PLR0911 - one case for each action
    """Do to the row what the database does for each action."""
    known = world.known
    match action:
        case p.Succeed():
            return world._replace(known=replace(known, status=S.SUCCESS, intent=False), look="", asked=False)
        case p.TryAgain(after, counts, crashed):
            again = replace(
                known,
                status=S.PENDING,
                intent=False,
                attempts=known.attempts + counts,
                crashes=known.crashes + 1 if crashed else 0,
            )
            return world._replace(known=again, due=after <= timedelta(0))
        case p.HoldAccount() if known.status is S.UNKNOWN:
            return world._replace(look="soon")
        case p.HoldAccount():
            return world._replace(known=replace(known, status=S.PENDING, intent=False, crashes=0), due=False)
        case p.GiveUp():
            return world._replace(known=replace(known, status=S.FAILED, intent=False))
        case p.Lose(look_after):
            lost = replace(known, status=S.UNKNOWN, intent=True, left=True, attempts=known.attempts + 1, crashes=0)
            return world._replace(known=lost, look="quiet" if look_after else "due")
        case p.LookLater():
            return world._replace(look="soon")
        case p.SendAgain(left):
            attempts = known.attempts if left else 0
            again = replace(known, status=S.PENDING, intent=False, left=left, looks=0, attempts=attempts)
            return world._replace(known=again, due=True, look="", asked=False)
        case p.AskPerson():
            return world._replace(asked=True, look="")
        case p.Withdraw():
            return world._replace(known=replace(known, status=S.CANCELLED, intent=False))
        case _:
            return world
