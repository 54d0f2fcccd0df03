"""The sandbox that stands beside Imprint: started when it is wanted, the same after a restart, shared by processes."""

from pathlib import Path

import pytest

from imprint.engine.address import listen
from imprint.problem import Unavailable
from imprint.sandbox.standing import Standing


def _port(url: str) -> int:
    return int(url.rstrip("/").rpartition(":")[2])


async def test_it_comes_back_where_it_was(home: Path) -> None:
    """Accounts remember its address; who never wanted it has none."""
    first = Standing(home, 0)
    await first.resume()
    assert not list(home.iterdir())
    url = (await first.place("ada")).gallery
    assert (await first.place("bob")).gallery == url
    await first.close()
    again = Standing(home, 0)
    await again.resume()
    with pytest.raises(Unavailable):
        listen("127.0.0.1", _port(url))
    assert (await again.place("ada")).gallery == url
    other = Standing(home, 0)  # another process of the same home
    assert (await other.place("ada")).gallery == url
    await other.close()
    await again.close()


async def test_a_port_of_somebody_else_is_a_sentence(home: Path) -> None:
    """Only a sandbox is taken for one."""
    with listen("127.0.0.1", 0) as busy:
        sandbox = Standing(home, busy.getsockname()[1])
        with pytest.raises(Unavailable, match="IMPRINT_SANDBOX_PORT"):
            await sandbox.place("ada")
        await sandbox.close()
