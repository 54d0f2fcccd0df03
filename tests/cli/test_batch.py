"""Batches on the command line: made, looked at, paused, put into another order, stopped and deleted."""

from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from imprint.problem import Exit
from tests.cli.test_post import Captured, account, draft, said, soon, told
from tests.work.scene import PNG


@pytest.fixture
def posts(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> list[str]:
    """Give a home with two accounts and three posts that are ready."""
    monkeypatch.setenv("IMPRINT_DATABASE_URL", database_url)
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("IMPRINT_ZONE", "Europe/Berlin")
    (tmp_path / "a.png").write_bytes(PNG)
    account(capsys, tmp_path, "one")
    account(capsys, tmp_path, "two")
    return [draft(capsys, tmp_path) for _ in range(3)]


def made(posts: list[str], *more: str) -> list[str]:
    """Write the command that plans these posts in a batch."""
    return ["batch", "create", *(post[:8] for post in posts), *more]


def test_from_posts_to_a_batch_and_back(posts: list[str], capsys: Captured) -> None:
    """Each post on each account in the given order, with times in the zone; then paused, resumed and stopped."""
    at = soon(3)
    shown = told(capsys, *made(posts, "--account", "one", "--account", "two", "--every", "1h30m", "--at", at))
    batch = shown["id"]
    assert (shown["state"], shown["everyMinutes"], shown["publications"]) == ("waits", 90, 6)
    assert [each["postId"] for each in shown["members"]] == [post for post in posts for _ in range(2)]
    assert [each["label"] for each in shown["members"]] == ["one", "two"] * 3
    goes = [datetime.fromisoformat(each["goesAt"]) for each in shown["members"]]
    assert [after - before for before, after in pairwise(goes)] == [timedelta(minutes=90)] * 5
    assert shown["startsAt"].startswith(at)
    assert told(capsys, "batch", "pause", batch[:8])["state"] == "paused"
    assert told(capsys, "batch", "list")[0]["paused"] is True
    assert told(capsys, "batch", "resume", batch)["state"] == "waits"
    arranged = told(capsys, "batch", "arrange", batch, "6", "1", "2", "3", "4", "5")
    assert arranged["members"][0]["id"] == shown["members"][5]["id"]
    assert len(told(capsys, "batch", "stop", batch)["cancelled"]) == 6
    assert told(capsys, "batch", "show", batch)["state"] == "over"
    assert {told(capsys, "post", "show", post)["status"] for post in posts} == {"draft"}
    assert told(capsys, "batch", "delete", batch) == {"cancelled": []}
    assert told(capsys, "batch", "list") == []


def test_for_people(posts: list[str], capsys: Captured) -> None:
    """What a person reads names posts, accounts, states and times."""
    assert "There are no batches." in said(capsys, "batch", "list")
    printed = said(capsys, *made(posts, "--account", "one", "--every", "30"))
    assert "Planned 3 publications in the batch" in printed
    assert "one every 30 min" in printed
    assert "behind" in printed
    assert "about 20" in printed
    (batch,) = told(capsys, "batch", "list")
    assert "A lighthouse" in said(capsys, "batch", "show", batch["id"])
    assert "waits" in said(capsys, "batch", "list")
    assert "Paused." in said(capsys, "batch", "pause", batch["id"])
    assert "It goes on." in said(capsys, "batch", "resume", batch["id"])
    assert "cancelled 3." in said(capsys, "batch", "delete", batch["id"])


def test_what_is_refused(posts: list[str], capsys: Captured) -> None:
    """One sentence, and nothing is planned."""
    for every, words in (("soon", "such as 30m"), ("25h", "0 to 1440 minutes"), ("", "such as 30m")):
        assert words in said(capsys, *made(posts, "--every", every), code=Exit.FAILED)
    command = made(posts, "--every", "1h", "--at", "2020-01-01T10:00")
    assert "at least 1 hour ahead" in said(capsys, *command, code=Exit.FAILED)
    assert "no such batch" in said(capsys, "batch", "show", "00000000", code=Exit.FAILED)
    assert "no such batch" in said(capsys, "batch", "stop", "nonsense", code=Exit.FAILED)
    assert {told(capsys, "post", "show", post)["status"] for post in posts} == {"draft"}
