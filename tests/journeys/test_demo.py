"""The demo as a newcomer runs it: real processes, a real kill, each exactly once; the README tells it as it is."""

import json
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

from imprint.work.demo import Told
from tests.journeys.test_up import PROGRAM

README = Path(__file__).parent.parent.parent / "README.md"
TIME, NUMBER = re.compile(r"\d\d:\d\d:\d\d"), re.compile(r"\d+(\.\d+)? (s|seconds)\b")


def squeezed(line: str) -> str:
    """Let lines be compared without their widths, times and seconds."""
    return NUMBER.sub(r"N \2", TIME.sub("T", " ".join(line.split())))


def shown() -> list[str]:
    """Give the lines of the demo that the README shows; an ellipsis stands for some that are left out."""
    block = README.read_text(encoding="utf-8").split("$ make demo\n")[1].split("```")[0]
    return [squeezed(line) for line in block.splitlines() if line.strip() not in {"", "…"}]


def test_the_demo_publishes_each_exactly_once(home: Path) -> None:
    """A 429, lost answers, a killed worker: nothing twice, nothing lost, nothing left behind, in under a minute."""
    done = subprocess.run(
        [*PROGRAM, "demo", "--json"],
        env={**os.environ, "TMPDIR": str(home), "IMPRINT_ZONE": "Europe/Berlin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["posts"], told["publications"], told["published"]) == (7, 9, 9)
    assert (told["duplicates"], told["lost"], told["notices"]) == (0, 0, 1)
    assert set(told["counts"].values()) == {1}
    assert told["refused"] == "a post cannot go from draft to published"
    assert list(home.iterdir()) == []

    said = [squeezed(line) for text in told["said"] for line in text.splitlines()]
    assert [line for line in shown() if line not in said] == []
    assert any("The worker died after it may have sent" in line for line in said)
    assert any("It is sent again with the same key" in line for line in said)
    assert any("asks for fewer calls" in line for line in said)


def test_the_eye_for_the_readme_is_sharp() -> None:
    """A comparison of nothing would prove nothing."""
    assert len(shown()) > 20
    assert squeezed("  01:52:03  a   b in 1 s") == squeezed("11:00:00 a b in 27 s")


def test_what_went_wrong_is_not_called_well() -> None:
    """Twice, lost or not out in our own books: each is enough for exit code 1."""
    well = Told(7, 9, 9, 0, 0, "no", {}, 1)
    assert well.well
    assert not any(
        wrong.well for wrong in (replace(well, duplicates=1), replace(well, lost=1), replace(well, published=8))
    )
