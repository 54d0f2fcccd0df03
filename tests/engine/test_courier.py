"""The courier sends in a child that cannot reach private hosts, cannot keep us waiting, and is gone when it is idle."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import pytest

from imprint.engine.courier import Courier, NotSent
from imprint.problem import Problem
from tests.waiting import until
from tests.work.readers import Receiver, receiving


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Run a receiver."""
    with receiving() as running:
        yield running


@pytest.fixture
async def couriers() -> AsyncIterator[list[Courier]]:
    """Close every courier in the end."""
    opened: list[Courier] = []
    yield opened
    for each in opened:
        await each.close()


def hired(couriers: list[Courier], *allowed: str, seconds: float = 20, idle_seconds: float = 20) -> Courier:
    """Give a courier who may go to these hosts."""
    couriers.append(Courier(frozenset(allowed), seconds=seconds, idle_seconds=idle_seconds))
    return couriers[-1]


async def refused(courier: Courier, url: str) -> str:
    """Try to send, and give the sentence of what went wrong."""
    with pytest.raises(NotSent) as caught:
        await courier.send(url, "title", "body", trusted=True)
    return caught.value.sentence


def running(pid: int) -> bool:
    """Say whether a process is there."""
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


async def test_private_hosts_are_refused_by_their_address(couriers: list[Courier], receiver: Receiver) -> None:
    """Whatever the address is called and in whichever scheme, no connection is made unless the host is named."""
    courier, port = hired(couriers), receiver.port
    for scheme in ("json", "xml", "form", "gotify"):
        for host in ("127.0.0.1", "localhost", "169.254.169.254"):
            assert "not public" in await refused(courier, f"{scheme}://{host}:{port}/token-of-some-length")
        for host in ("127.1", "0x7f000001", "[::1]", "[::ffff:127.0.0.1]", "2130706433"):
            await refused(courier, f"{scheme}://{host}:{port}/token-of-some-length")
    assert "not public" in await refused(courier, f"mailto://me:secret@localhost:{port}?smtp=127.0.0.1&to=a@b.example")
    assert receiver.calls == 0


@pytest.mark.parametrize(
    ("allowed", "reached"), [("127.0.0.1", 1), ("localhost", 1), ("localhost:{}", 1), ("127.0.0.1:1", 0)]
)
async def test_a_host_the_operator_names_is_reached(
    allowed: str, reached: int, couriers: list[Courier], receiver: Receiver
) -> None:
    """By address or by name, with a port or without."""
    courier = hired(couriers, allowed.format(receiver.port))
    if reached:
        await courier.send(receiver.url, "title", "body", trusted=True)
    else:
        assert "not public" in await refused(courier, receiver.url)
    assert receiver.calls == reached


async def test_errors_do_not_tell_the_address(couriers: list[Courier], receiver: Receiver) -> None:
    """What stands in it may be a secret; what went wrong is said."""
    courier = hired(couriers, "127.0.0.1")
    receiver.status = 404
    sentence = await refused(courier, f"json://user:hunter22@127.0.0.1:{receiver.port}/T0kenOfMine")
    assert "error=404" in sentence
    for secret in ("hunter22", "T0kenOfMine"):
        assert secret not in sentence
    with pytest.raises(Problem) as caught:
        await courier.look("discord://hunter22hunter22")
    assert "hunter22" not in caught.value.sentence


async def test_what_hangs_is_given_up_and_ended(couriers: list[Courier], receiver: Receiver) -> None:
    """The next message has a child of its own, and the old one, in which something hangs, is gone."""
    courier = hired(couriers, "127.0.0.1", seconds=1)
    assert await courier.look(receiver.url) == "JSON"
    first = courier.pid
    assert first
    receiver.may_answer.clear()
    assert "1 seconds" in await refused(courier, f"{receiver.url}?rto=60")
    receiver.may_answer.set()
    await courier.send(receiver.url, "title", "body", trusted=True)
    assert courier.pid != first

    async def gone() -> bool:
        return not running(first)

    await until(gone)


async def test_many_at_once(couriers: list[Courier], receiver: Receiver) -> None:
    """Each gets its own answer."""
    courier = hired(couriers, "127.0.0.1")
    sends = [courier.send(receiver.url, "t", f"{number}", trusted=True) for number in range(40)]
    bad = [refused(courier, "json://10.0.0.1/") for _ in range(10)]
    await asyncio.gather(*sends, *bad)
    assert sorted(map(int, receiver.bodies)) == list(range(40))


async def test_a_child_that_is_killed_is_an_answer_too(couriers: list[Courier], receiver: Receiver) -> None:
    """Whoever waits hears of it, and the next one is sent by a new child."""
    courier = hired(couriers, "127.0.0.1")
    await courier.look(receiver.url)
    receiver.may_answer.clear()
    waiting = asyncio.create_task(refused(courier, receiver.url))

    async def called() -> int:
        return receiver.calls

    await until(called)
    assert courier.pid
    os.kill(courier.pid, signal.SIGKILL)
    assert "died" in await waiting
    receiver.may_answer.set()
    await courier.send(receiver.url, "title", "body", trusted=True)


async def test_an_idle_child_ends(couriers: list[Courier], receiver: Receiver) -> None:
    """What it takes of memory is given back."""
    courier = hired(couriers, "127.0.0.1", idle_seconds=0.1)
    await courier.send(receiver.url, "title", "body", trusted=True)
    pid = courier.pid
    assert pid

    async def gone() -> bool:
        return not running(pid)

    await until(gone)
    assert courier.pid is None
    await courier.send(receiver.url, "title", "body", trusted=True)
