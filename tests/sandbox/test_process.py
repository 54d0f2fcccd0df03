"""The sandbox as a process of its own: what it has answered is on its disk, whoever is killed."""

import asyncio
import sys
from pathlib import Path

import httpx2
import pytest

from imprint.engine.wire import Wire
from imprint.platforms.failure import NoAnswer, NotYet
from imprint.platforms.webhook import Webhook, WebhookLogin
from imprint.sandbox.log import Log
from tests.platforms.works import work

PROGRAM = """
import asyncio, pathlib, sys
from imprint.sandbox.server import sandbox

async def main():
    async with sandbox(log=pathlib.Path(sys.argv[1])) as running:
        print(running.url, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_a_killed_sandbox_has_lost_nothing(tmp_path: Path) -> None:
    """Every publish that was answered is in the log on disk; one that was not answered may be there or not."""
    path = tmp_path / "log.jsonl"
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, str(path), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert child.stdout
        url = (await child.stdout.readline()).decode().strip()
        async with httpx2.AsyncClient(base_url=url, trust_env=False) as browser:
            told = (await browser.post("/_sandbox/accounts", json={"site": "webhook", "name": "artist"})).json()
        login = WebhookLogin.model_validate(told["login"])
        done: list[str] = []
        begun: list[str] = []

        async def forever() -> None:
            while True:
                made = work(files=())
                begun.append(made.key)
                await Webhook().publish(Wire().within(5), login, made)
                done.append(made.key)
                if len(done) == 20:
                    child.kill()

        with pytest.raises((NoAnswer, NotYet)):
            await forever()
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()
    log = Log(path)
    kept = [str(each.data["key"]) for each in log.effects()]
    log.close()
    assert set(done) <= set(kept) <= set(begun)
    assert len(kept) == len(set(kept))
