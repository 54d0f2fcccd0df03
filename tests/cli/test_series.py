"""Series and sources on the command line, against simulated sources on a real server."""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from imprint.main import run
from imprint.problem import Exit
from imprint.sandbox.serial_faults import Fault, Kind
from imprint.sandbox.serial_world import World
from imprint.sandbox.serials import serials, serving

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def world() -> Iterator[tuple[World, str]]:
    """Run simulated sources in a thread of their own, since a command has a loop of its own."""
    made, loop, ready, urls = World(), asyncio.new_event_loop(), threading.Event(), list[str]()
    end = asyncio.Event()

    async def serve() -> None:
        async with serving(serials(made)) as url:
            urls.append(url)
            ready.set()
            await end.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(10)
    yield made, urls[0]
    loop.call_soon_threadsafe(end.set)
    thread.join(10)
    loop.close()


@pytest.fixture(autouse=True)
def _settings(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, world: tuple[World, str]) -> None:
    """Give a home, a database, and leave to ask the sandbox."""
    for name, value in (
        ("DATABASE_URL", database_url),
        ("HOME", str(tmp_path / "home")),
        ("ALLOWED_HOSTS", "127.0.0.1"),
        ("FETCH_GAP_MS", "1"),
        ("MANGADEX_BASE", f"{world[1]}/mangadex"),
        ("MANGAPARK_BASE", f"{world[1]}/mangapark"),
    ):
        monkeypatch.setenv(f"IMPRINT_{name}", value)


def told(capsys: Captured, *arguments: str, code: int = Exit.OK) -> Any:
    """Run a command with --json and give what it printed."""
    assert run([*arguments, "--json"]) == code
    printed = capsys.readouterr()
    return json.loads(printed.out if code in {Exit.OK, Exit.ATTENTION} else printed.err)


def said(capsys: Captured, *arguments: str, code: int = Exit.OK) -> str:
    """Run a command and give what it printed for a person."""
    assert run(list(arguments)) == code
    printed = capsys.readouterr()
    return printed.out + printed.err


def test_the_life_of_a_series(world: tuple[World, str], capsys: Captured) -> None:
    """Add by its address, read it, a second source, news, what was read, and the end."""
    there, url = world
    grown = there.add("A tale of feeds", 3)
    made = told(capsys, "series", "add", f"{url}/feeds/{grown.serial}.rss")
    assert (made["followed"], made["sources"], made["latestChapter"]) == (True, 1, None)
    assert told(capsys, "series", "add", f"{url}/feeds/{grown.serial}.rss", code=Exit.FAILED)["code"] == (
        "series.already_there"
    )
    (source,) = told(capsys, "source", "list")
    assert (source["kind"], source["status"], source["error"]) == ("feed", "active", None)
    done = told(capsys, "source", "poll", source["id"])
    assert (done["chapters"], done["notices"], done["error"]) == (3, 0, None)
    assert "A tale of feeds" in said(capsys, "series", "list")  # as its feed calls it
    second = told(capsys, "source", "add", "A tale of feeds", f"mangadex:{grown.id}", "--name", "dex")
    assert second["name"] == "dex"
    assert told(capsys, "source", "poll", "dex")["releases"] == 3
    there.publish(grown, "4", title="The return")
    assert said(capsys, "source", "poll", "dex") == "1 new chapter, 1 new release, 1 notice.\n"  # and no log lines
    shown = told(capsys, "series", "show", made["id"][:8])
    assert (shown["latestChapter"], shown["unread"], len(shown["chapterList"])) == ("4", 4, 4)
    assert shown["chapterList"][0]["title"] == "The return"
    assert told(capsys, "series", "read", "A tale of feeds", "--up-to", "3")["unread"] == 1
    assert told(capsys, "series", "read", "A tale of feeds", "3", "--undo")["unread"] == 2
    assert "0 of A tale of feeds unread" in said(capsys, "series", "read", "A tale of feeds")
    assert "The return" in said(capsys, "series", "show", "A tale of feeds")
    assert told(capsys, "series", "follow", made["id"], "--quiet", "--prefer", "dex")["preferredSource"] == second["id"]
    assert "quietly" in said(capsys, "series", "list", "--followed")
    assert told(capsys, "series", "unfollow", made["id"])["followed"] is False
    assert told(capsys, "series", "rename", made["id"], "Another title")["title"] == "Another title"
    assert told(capsys, "series", "remove", "Another title")["removed"] is True
    assert told(capsys, "source", "list") == []
    assert "imprint series add" in said(capsys, "series", "list")


def test_a_source_never_fails_in_silence(world: tuple[World, str], capsys: Captured) -> None:
    """The command says what was wrong and when it is tried again; so do the list and the source itself."""
    there, url = world
    grown = there.add("A", 2)
    told(capsys, "series", "add", f"{url}/mangapark/title/{grown.serial}", "--title", "A", "--no-follow")
    there.faults.add(Fault(Kind.STATUS, status=503, times=2))
    assert "answered 503. It is tried again at" in said(
        capsys, "source", "poll", f"mangapark {grown.serial}", code=Exit.ATTENTION
    )
    assert told(capsys, "source", "poll", f"mangapark {grown.serial}", code=Exit.ATTENTION)["code"] == (
        "source.server_error"
    )
    assert "503" in said(capsys, "source", "list")
    (one,) = told(capsys, "source", "list")
    assert (one["failures"], one["errorCode"]) == (2, "source.server_error")
    assert "failures in a row" in said(capsys, "source", "show", one["id"])
    assert told(capsys, "source", "priority", one["id"], "COLD")["priorityFixed"] is True
    assert told(capsys, "source", "disable", one["id"])["status"] == "disabled"
    assert told(capsys, "source", "poll", one["id"], code=Exit.BUSY)["code"] == "source.busy"
    enabled = told(capsys, "source", "enable", one["id"])
    assert (enabled["status"], enabled["error"], enabled["priority"]) == ("active", None, "COLD")
    assert told(capsys, "source", "priority", one["id"], "auto")["priorityFixed"] is False
    assert told(capsys, "source", "remove", one["id"])["removed"] is True


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("series", "add", "ftp://example.org/"), "source.bad_place"),
        (("series", "add", "mangadex:5"), "source.bad_place"),
        (("series", "add", "https://user:pw@example.org/"), "source.bad_place"),
        (("series", "show", "nothing"), "series.missing"),
        (("series", "read", "nothing"), "series.missing"),
        (("source", "show", "nothing"), "source.missing"),
        (("source", "add", "nothing", "https://example.org/"), "series.missing"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(command: tuple[str, ...], code: str, capsys: Captured) -> None:
    """With a stable code."""
    run(["series", "add", "https://example.org/feed", "--json"])
    capsys.readouterr()
    assert told(capsys, *command, code=Exit.FAILED)["code"] == code
