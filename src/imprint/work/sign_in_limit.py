"""Limits on signing in: how often somebody may try, by a name, from an address, and by a name from an address.

A try is counted before it is made, so that a thousand at once are counted as a thousand. One address cannot shut
another one out of a name; many together can, for as long as the window lasts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import IPv6Address, ip_address
from math import ceil

from imprint.problem import Problem
from imprint.store.query import Link, Nothing, query
from imprint.work.secret import hashed

WINDOW = timedelta(minutes=15)
MOST_BY_NAME_AND_ADDRESS = 10
MOST_FROM_ADDRESS = 50
MOST_BY_NAME = 200


@dataclass(frozen=True)
class Tried:
    """How many tries there were in a window, and how long it lasts."""

    tries: int
    lasts: timedelta


TRY = query("sign_in_limit_try", Tried)
CLEAR = query("sign_in_limit_clear", Nothing)


class TooMany(Problem):
    """There were too many tries; `seconds` until the next one."""

    def __init__(self, seconds: int) -> None:
        minutes = ceil(seconds / 60)
        super().__init__(
            "sign_in.too_many",
            f"There were too many tries; try again in {minutes} minute{'s' if minutes != 1 else ''}.",
        )
        self.seconds = seconds


@dataclass(frozen=True)
class _Bucket:
    kind: str
    key: str
    most: int


async def count(connection: Link, name: str | None, address: str) -> None:
    """Count a try, and refuse it when there were too many; in a transaction of its own, so that it stays counted."""
    waits = []
    for bucket in _buckets(name, address):
        tried = await TRY.one(connection, bucket.kind, bucket.key, WINDOW)
        if tried.tries > bucket.most:
            waits.append(tried.lasts)
    if waits:
        raise TooMany(max(1, ceil(max(waits).total_seconds())))


async def clear(connection: Link, name: str, address: str) -> None:
    """Forget the tries of one who has come in; those of the name from elsewhere stay."""
    for bucket in _buckets(name, address):
        if bucket.kind == "both":
            await CLEAR.run(connection, bucket.kind, bucket.key)


def network(address: str) -> str:
    """Give what of an address one person has: of IPv6 a whole network, since that is what one is given."""
    try:
        found = ip_address(address)
    except ValueError:
        return "nowhere"
    if isinstance(found, IPv6Address):
        return str(found.ipv4_mapped or IPv6Address(int(found) >> 64 << 64))
    return str(found)


def _buckets(name: str | None, address: str) -> Sequence[_Bucket]:
    # Always in this order: two who try at once never wait for each other in a circle.
    place = network(address)
    buckets = [_Bucket("address", hashed(place), MOST_FROM_ADDRESS)]
    if name is not None:
        low = name.lower()
        buckets.append(_Bucket("both", hashed(f"{place} {low}"), MOST_BY_NAME_AND_ADDRESS))
        buckets.append(_Bucket("name", hashed(low), MOST_BY_NAME))
    return buckets
