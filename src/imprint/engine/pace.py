"""A pace: the gap between calls, shared by all workers; it widens on a 429 and narrows on success.

A key names who is called as whom: publishing takes a moment of `account:<uuid>` before each request to a platform.
`take` belongs outside any longer transaction: others wait for its row, and a rollback gives the moment away twice.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from imprint.store.query import Link, Nothing, query


@dataclass(frozen=True)
class Policy:
    """Between which gaps a pace moves, and how fast it recovers."""

    least: timedelta
    most: timedelta
    ease: float  # what is left of the gap after a success
    longest_wait: timedelta  # what a Retry-After may ask for at most

    def __post_init__(self) -> None:
        """Refuse what could never slow down, or never recover."""
        if not timedelta(0) < self.least <= self.most or not 0 < self.ease < 1 or self.longest_wait <= timedelta(0):
            raise ValueError(f"a pace cannot work like this: {self}")


@dataclass(frozen=True)
class Turn:
    """How long until the moment of the one who asked."""

    wait: timedelta


@dataclass(frozen=True)
class Slowed:
    """The gap from now on, and the next free moment."""

    gap: timedelta
    next_at: datetime


# Two calls per second is what the seed found DeviantArt to bear, and it counts per token, that is per account; the
# others publish higher limits. A minute between calls is slow enough for any of them, and 22 successes lead back.
PUBLISHING = Policy(least=timedelta(seconds=0.5), most=timedelta(seconds=60), ease=0.8, longest_wait=timedelta(days=1))

_TAKE = query("pace_take", Turn)
_SLOW = query("pace_slow", Slowed)
_REST = query("pace_rest", Nothing)
_EASE = query("pace_ease", Nothing)


async def take(
    connection: Link, key: str, policy: Policy, patience: timedelta = timedelta.max, *, calls: int = 1
) -> timedelta:
    """Reserve the next free moment for one call, or for several that follow each other, and say how long until then.

    A wait longer than the patience reserves nothing: the caller gives its work back until then and asks anew.
    Without that, those who only come back to ask would push the next free moment ahead of themselves for ever.
    """
    turn = await _TAKE.one(connection, key, policy.least, policy.most, max(patience, timedelta(0)), calls)
    return turn.wait


async def slow(connection: Link, key: str, policy: Policy, after: timedelta | None = None) -> Slowed:
    """Report a 429, and how long the other side asked us to wait."""
    wish = timedelta(0) if after is None else after
    return await _SLOW.one(connection, key, policy.least, policy.most, wish, policy.longest_wait)


async def rest(connection: Link, key: str, policy: Policy, wait: timedelta) -> None:
    """Leave a key alone for a while, because the other side says that it allows few more calls; the gap stays."""
    await _REST.run(connection, key, policy.least, min(wait, policy.longest_wait))


async def ease(connection: Link, key: str, policy: Policy) -> None:
    """Report a call that worked."""
    await _EASE.run(connection, key, policy.least, policy.most, policy.ease)
