"""Recorded answers: what real servers once said, played back in order; and where the recordings lie."""

import json
from pathlib import Path
from typing import Any

import pytest

from imprint.platforms.answer import Answer
from imprint.platforms.request import Progress, Request

FIXTURES = Path(__file__).parents[3] / "shared" / "fixtures"


def recording(name: str) -> bytes:
    """Read a recording; skip the test where the recordings are not at hand."""
    path = FIXTURES / name
    if not path.exists():
        pytest.skip("the recorded answers are not here")
    return path.read_bytes()


def answer(body: bytes | object, status: int = 200, **headers: str) -> Answer:
    """Make an answer of recorded bytes, or of data."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Answer(status, {"content-type": "application/json", **headers}, raw)


class Recorded:
    """Plays answers back, and remembers what was asked."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.asked: list[Request] = []

    async def send(self, request: Request, progress: Progress = lambda _: None) -> Answer:
        """Give the next answer."""
        del progress
        self.asked.append(request)
        return self._answers.pop(0)


def observed() -> list[dict[str, Any]]:
    """Give the answers that people have quoted in public; none where the recordings are not at hand."""
    path = FIXTURES / "deviantart" / "observed_in_public_issues.json"
    return list(json.loads(path.read_text())) if path.exists() else []
