"""The log: in order, never changed, and still there after its sandbox was killed."""

import asyncio
import json
import sys
from pathlib import Path

from imprint.sandbox.log import Log


def test_entries_are_numbered_and_kept(tmp_path: Path) -> None:
    """What was added comes back, also for a log that is opened anew on the same file."""
    path = tmp_path / "log.jsonl"
    log = Log(path)
    log.add("deviantart", "upload", item="1")
    log.add("webhook", "publish", key="k", title="Ü")
    log.close()
    again = Log(path)
    assert [each.number for each in again.entries()] == [1, 2]
    assert again.effects()[0].data == {"key": "k", "title": "Ü"}
    assert again.add("webhook", "publish", key="l").number == 3
    assert [each.data["key"] for each in again.effects("webhook")] == ["k", "l"]
    assert len(again.entries(after=1, site="webhook")) == 2
    assert len(again) == 3
    again.close()


def test_a_torn_line_never_counted(tmp_path: Path) -> None:
    """Half a line at the end is cut off, and the next one begins on a line of its own."""
    path = tmp_path / "log.jsonl"
    log = Log(path)
    log.add("webhook", "publish", key="k")
    log.close()
    with path.open("ab") as file:
        file.write(b'{"number": 2, "at": 1.0, "si')
    log = Log(path)
    assert len(log) == 1
    log.add("webhook", "publish", key="l")
    log.close()
    assert [json.loads(line)["number"] for line in path.read_text().splitlines()] == [1, 2]


async def test_it_survives_a_kill(tmp_path: Path) -> None:
    """A sandbox that is killed in the middle of its work has lost nothing of what it had said."""
    path = tmp_path / "log.jsonl"
    program = (
        "import sys, pathlib\nfrom imprint.sandbox.log import Log\nlog = Log(pathlib.Path(sys.argv[1]))\n"
        "while True:\n    print(log.add('webhook', 'publish', key='k').number, flush=True)\n"
    )
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, str(path), stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout
    heard = 0
    while heard < 50:
        heard = int(await child.stdout.readline())
    child.kill()
    heard += len((await child.stdout.read()).splitlines())
    await child.wait()
    log = Log(path)
    assert len(log) >= heard
    log.close()
