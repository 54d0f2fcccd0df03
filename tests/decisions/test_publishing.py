"""The decision core: every row of the failure table, and every interleaving of a small world, ends as promised."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprint.decisions import publishing as p
from imprint.decisions.publishing import DEFAULT, Known, decide
from imprint.lifecycles.publication import PUBLICATION
from imprint.lifecycles.publication import PublicationStatus as S

RUNNING = Known(S.RUNNING)
SENT = Known(S.RUNNING, intent=True)
LOST = Known(S.UNKNOWN, intent=True, can_look=True)
TOKEN = replace(LOST, may_resend=True)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("known", "event", "action"),
    [
        # 1-2: a crash before or after the claim
        (RUNNING, p.Died(), p.TryAgain(p.NOW, crashed=True)),
        # 3-5: mid-upload; uploaded but not stored; an answer that cannot be read
        (RUNNING, p.NoAnswer(), p.TryAgain(p.NOW, counts=True)),
        (RUNNING, p.NotYet(), p.TryAgain(p.NOW, counts=True)),
        # 6-9: before the intent it is simply taken again; after it nobody can tell
        (SENT, p.Died(), p.Lose(DEFAULT.quiet)),
        (SENT, p.NoAnswer(), p.Lose(DEFAULT.quiet)),
        # 10: proven not to have left, although the intent is there
        (SENT, p.NotYet(), p.TryAgain(p.NOW, counts=True)),
        # 12-14: 5xx at publish is no answer; 429 waits, clamped, and uses no attempt; 401 renews once
        (SENT, p.RateLimited(HOUR), p.TryAgain(HOUR)),
        (SENT, p.RateLimited(timedelta(days=9999)), p.TryAgain(DEFAULT.longest_wait)),
        (SENT, p.RateLimited(-HOUR), p.TryAgain(p.NOW)),
        (RUNNING, p.SignInAgain(renewable=True), p.Renew()),
        (replace(RUNNING, renewed=True), p.SignInAgain(renewable=True), p.HoldAccount()),
        (SENT, p.SignInAgain(renewable=False), p.HoldAccount()),
        # 15-16, 19: an answer that comes late settles it, whatever was thought of it meanwhile
        (LOST, p.Accepted(), p.Succeed()),
        (Known(S.FAILED), p.Accepted(), p.Succeed()),
        (Known(S.PENDING), p.Accepted(), p.Succeed()),
        (Known(S.SUCCESS), p.Accepted(), p.Leave()),
        # 20: a look that finds nothing proves nothing
        (LOST, p.Due(), p.Look()),
        (LOST, p.NotFound(), p.LookLater(DEFAULT.between_looks)),
        (replace(LOST, looks=2), p.NotFound(), p.AskPerson()),
        (replace(LOST, looks=3), p.Due(), p.AskPerson()),
        (replace(LOST, can_look=False), p.Due(), p.AskPerson()),
        (TOKEN, p.Due(), p.SendAgain(left=True)),
        (replace(TOKEN, attempts=7), p.Due(), p.Look()),
        (LOST, p.SaidNotOut(), p.SendAgain(left=False)),
        (LOST, p.RateLimited(HOUR), p.LookLater(HOUR)),
        (LOST, p.SignInAgain(renewable=False), p.HoldAccount()),
        # 21: cancelling is for what has not left
        (Known(S.PENDING), p.Cancelled(), p.Withdraw()),
        (RUNNING, p.Cancelled(), p.Withdraw()),
        (SENT, p.Cancelled(), p.Leave()),
        (LOST, p.Cancelled(), p.Leave()),
        (Known(S.PENDING, left=True), p.Cancelled(), p.Leave()),
        (replace(RUNNING, left=True), p.Cancelled(), p.Leave()),
        # what an earlier attempt may have put out is not called failed
        (replace(RUNNING, left=True), p.Refused("no"), p.Lose(DEFAULT.quiet)),
        (replace(RUNNING, left=True, attempts=6), p.NotYet(), p.Lose(DEFAULT.quiet)),
        (replace(RUNNING, left=True, crashes=2), p.Died(), p.Lose(DEFAULT.quiet)),
        # 23: a key that has expired is no key
        (replace(TOKEN, may_resend=False), p.Due(), p.Look()),
        # 26: what kills workers is set aside
        (replace(RUNNING, crashes=2), p.Died(), p.GiveUp("quarantined")),
        (replace(SENT, crashes=9), p.Died(), p.Lose(DEFAULT.quiet)),
        # the rest
        (RUNNING, p.Refused("no"), p.GiveUp("no")),
        (replace(RUNNING, attempts=6), p.NotYet(), p.GiveUp("exhausted")),
        (RUNNING, p.Stopped(), p.TryAgain(p.NOW)),
        (SENT, p.Stopped(), p.Leave()),
        (Known(S.CANCELLED), p.NoAnswer(), p.Leave()),
    ],
)
def test_each_row_of_the_failure_table(known: Known, event: p.Event, action: p.Action) -> None:
    """What is known and what happened lead to the one right action."""
    assert decide(known, event) == action


knowns = st.builds(
    Known,
    status=st.sampled_from(list(S)),
    intent=st.booleans(),
    left=st.booleans(),
    attempts=st.integers(0, 9),
    crashes=st.integers(0, 9),
    looks=st.integers(0, 9),
    may_resend=st.booleans(),
    can_look=st.booleans(),
    renewed=st.booleans(),
)
waits = st.none() | st.timedeltas(min_value=timedelta(days=-9999), max_value=timedelta(days=9999))
events = st.one_of(
    st.sampled_from(
        [p.Accepted(), p.NoAnswer(), p.Died(), p.Stopped(), p.Due(), p.NotFound(), p.Cancelled(), p.SaidNotOut()]
    ),
    st.builds(p.Refused, st.just("code")),
    st.builds(p.SignInAgain, st.booleans()),
    st.builds(p.NotYet, waits),
    st.builds(p.RateLimited, waits),
)

AFTER = {
    p.Succeed: S.SUCCESS,
    p.TryAgain: S.PENDING,
    p.HoldAccount: S.PENDING,
    p.GiveUp: S.FAILED,
    p.Lose: S.UNKNOWN,
    p.SendAgain: S.PENDING,
    p.Withdraw: S.CANCELLED,
}


@given(knowns, events, st.floats(0, 1, exclude_max=True))
def test_nothing_ambiguous_is_ever_sent_again_blindly(known: Known, event: p.Event, roll: float) -> None:
    """After an intent only proof, the platform's key or a person's word leads back to pending."""
    action = decide(known, event, roll)
    if known.status is S.UNKNOWN and isinstance(action, p.SendAgain):
        assert known.may_resend or isinstance(event, p.SaidNotOut)
    if known.status is S.RUNNING and known.intent and isinstance(action, p.TryAgain):
        assert isinstance(event, p.NotYet | p.RateLimited)  # typed proof that nothing was published
    if known.left or (known.intent and known.status in {S.RUNNING, S.UNKNOWN}):
        assert not isinstance(action, p.Withdraw)
    if known.left:
        assert not isinstance(action, p.GiveUp)


@given(knowns, events, st.floats(0, 1, exclude_max=True))
def test_every_action_is_a_move_that_exists(known: Known, event: p.Event, roll: float) -> None:
    """What is decided can be done: the lifecycle has the move, or a late success takes several that exist."""
    action = decide(known, event, roll)
    target = AFTER.get(type(action))
    if isinstance(action, p.HoldAccount) and known.status is S.UNKNOWN:
        return  # it stays unknown; only its account waits
    if target is not None and target is not known.status and not isinstance(action, p.Succeed):
        assert PUBLICATION.move(known.status, target) is not None


@given(knowns, events, st.floats(0, 1, exclude_max=True))
def test_no_wait_is_negative_or_endless(known: Known, event: p.Event, roll: float) -> None:
    """Whatever a platform wishes, the wait is between nothing and a day."""
    action = decide(known, event, roll)
    for name in ("after", "look_after"):
        wait = getattr(action, name, timedelta(0))
        assert timedelta(0) <= wait <= DEFAULT.longest_wait


@dataclass(frozen=True)
class World:
    """A publication, a platform, and what is on its way between them."""

    known: Known
    out: int = 0
    asked: bool = False
    faults: int = 3


def next_worlds(  # noqa: C901 - one branch for each thing that can happen
    world: World, *, token: bool, lags: bool, ablated: bool
) -> Iterator[World]:
    """Give everything that can happen next: a worker takes it and any of its ends, deaths, looks and people."""
    known = world.known

    def then(event: p.Event, *, out: int = world.out, faults: int = world.faults, of: Known = known) -> World:
        return World(_after(of, decide(of, event)), out, isinstance(decide(of, event), p.AskPerson), faults)

    def effect(of: int) -> int:
        return max(of, 1) if token else of + 1  # a platform that knows the key does the same thing once

    if known.status is S.PENDING:
        claimed = replace(known, status=S.RUNNING, intent=False, renewed=False)
        yield then(p.Cancelled())
        if decide(claimed, p.Cancelled()) != p.Leave():  # else the worker goes on as if nobody had asked
            yield then(p.Cancelled(), of=claimed)
        sent = replace(claimed, intent=True)
        yield then(p.Accepted(), of=sent, out=effect(world.out))
        if world.faults:
            fewer = world.faults - 1
            yield then(p.Died(), of=claimed, faults=fewer)
            yield then(p.NotYet(), of=claimed, faults=fewer)
            yield then(p.Refused("no"), of=claimed, faults=fewer)
            yield then(p.Refused("no"), of=sent, faults=fewer)
            yield then(p.RateLimited(), of=sent, faults=fewer)
            for out in (world.out, effect(world.out)):  # cannot be told apart: applied, or not
                yield then(p.NoAnswer(), of=sent, out=out, faults=fewer)
                yield then(p.Died(), of=sent, out=out, faults=fewer)
                yield then(p.Cancelled(), of=_after(sent, decide(sent, p.Died())), out=out, faults=fewer)
    elif known.status is S.UNKNOWN and not world.asked:
        match decide(known, p.Due()):
            case p.Look():
                if world.out and not (lags and known.looks == 0):
                    yield then(p.Accepted())
                if not world.out or lags:
                    yield replace(world, known=replace(known, status=S.PENDING)) if ablated else then(p.NotFound())
            case p.SendAgain() | p.AskPerson():
                yield then(p.Due())
    elif known.status is S.UNKNOWN:  # a person looks for real
        yield then(p.Accepted()) if world.out else then(p.SaidNotOut())


def _after(known: Known, action: p.Action) -> Known:
    match action:
        case p.TryAgain(counts=counts, crashed=crashed):
            return replace(
                known,
                status=S.PENDING,
                intent=False,
                attempts=known.attempts + counts,
                crashes=known.crashes + 1 if crashed else 0,
            )
        case p.Lose():
            return replace(known, status=S.UNKNOWN, intent=True, left=True, attempts=known.attempts + 1)
        case p.LookLater():
            return replace(known, looks=known.looks + 1)
        case p.SendAgain(left):
            return replace(known, status=S.PENDING, intent=False, left=left, looks=0)
        case _:
            return replace(known, status=AFTER.get(type(action), known.status))


def explored(*, token: bool, lags: bool, ablated: bool = False) -> tuple[set[World], set[World]]:
    """Visit every world that can come to be, and name those from which nothing leads on although it is not over."""
    first = World(Known(S.PENDING, may_resend=token, can_look=True))
    seen, stuck, frontier = {first}, set(), deque([first])
    while frontier:
        world = frontier.popleft()
        onward = set(next_worlds(world, token=token, lags=lags, ablated=ablated))
        if not onward and world.known.status not in {S.SUCCESS, S.FAILED, S.CANCELLED}:
            stuck.add(world)
        frontier += onward - seen
        seen |= onward
    return seen, stuck


@pytest.mark.parametrize("token", [True, False])
@pytest.mark.parametrize("lags", [True, False])
def test_every_interleaving_publishes_at_most_once_and_comes_to_an_end(
    token: bool,  # noqa: FBT001
    lags: bool,  # noqa: FBT001
) -> None:
    """With up to three faults, lagging looks and a person who cancels: never twice, never stuck, never a false end."""
    seen, stuck = explored(token=token, lags=lags)
    assert len(seen) > 50
    assert not stuck
    assert max(world.out for world in seen) == 1
    assert all(world.out for world in seen if world.known.status is S.SUCCESS)
    assert not any(world.out for world in seen if world.known.status in {S.CANCELLED, S.FAILED})


def test_the_model_can_fail() -> None:
    """Resending when a look finds nothing, as the seeds did, is found to publish twice."""
    seen, _ = explored(token=False, lags=True, ablated=True)
    assert max(world.out for world in seen) > 1
