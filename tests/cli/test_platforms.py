"""`imprint platforms` says of every platform what it takes and what it promises."""

import json

import pytest

from imprint.main import run
from imprint.platforms.registry import PLATFORMS
from imprint.problem import Exit


def test_every_platform_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """In plain words each has its promise and its limits; a command to go on with is at the end."""
    assert run(["platforms"]) == Exit.OK
    said = capsys.readouterr().out
    for name, platform in PLATFORMS.items():
        assert f"{name}\n  once: {platform.once.promise}" in said
        assert all(ask.name in said for ask in platform.asks)
    assert "a text of up to 300 graphemes and 3,000 bytes" in said
    assert "up to 4 files (GIF, JPEG, PNG, WEBP, each up to 2,000,000 bytes)" in said
    assert "1 file (GIF, JPEG, PNG, each up to 30,000,000 bytes)" in said
    assert "imprint account add" in said


def test_and_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """The same as data: limits as numbers, the promise with its time."""
    assert run(["platforms", "--json"]) == Exit.OK
    told = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert list(told) == list(PLATFORMS)
    assert told["mastodon"]["once"] == {
        "token": True,
        "lastsSeconds": 3600,
        "canLook": True,
        "promise": PLATFORMS["mastodon"].once.promise,
    }
    assert told["bluesky"]["limits"]["text"] == [
        {"most": 300, "unit": "graphemes"},
        {"most": 3000, "unit": "bytes"},
    ]
    assert [ask["secret"] for ask in told["wordpress"]["asks"]] == [False, False, True, False]
