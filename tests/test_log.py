"""Log lines: JSON that parses, human lines on a terminal only, and in neither of them ever a secret."""

import asyncio
import json
import logging
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Literal
from uuid import UUID

import asyncpg
import httpx2
import pytest
import structlog
from pydantic import BaseModel, SecretBytes, SecretStr

from imprint.log import HIDDEN, configure, hide_in_text
from imprint.problem import Problem
from imprint.settings import load
from imprint.store.db import Database, connect

CANARY = "canary-7f3a"
URL = f"postgresql://ada:{CANARY}@127.0.0.1:1/imprint"

Form = Literal["human", "json"]
FORMS: tuple[Form, ...] = ("human", "json")


@dataclass(frozen=True)
class Login:
    """A dataclass that holds a secret, and a URL that should have been one."""

    token: SecretStr
    url: str


class Account(BaseModel):
    """A pydantic model that holds secrets."""

    token: SecretBytes
    login: SecretStr


Written = Callable[[], str]


@pytest.fixture
def written(capsys: pytest.CaptureFixture[str]) -> Iterator[Written]:
    """Give what has gone to standard error, and put logging back as it was."""
    root = logging.getLogger()
    before = (list(root.handlers), root.level)
    yield lambda: capsys.readouterr().err
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    structlog.reset_defaults()


def secret_values() -> Mapping[str, object]:
    """Every way in which a secret was ever found inside something else."""
    token = SecretStr(CANARY)
    return {
        "plain": token,
        "binary": SecretBytes(CANARY.encode()),
        "dict": {"a": {"b": [token]}},
        "read only": MappingProxyType({"a": token}),
        "list": [1, (token, {token}, frozenset({token}))],
        "key": {URL: 1},
        "dataclass": Login(token, URL),
        "model": Account(token=SecretBytes(CANARY.encode()), login=token),
        "settings": load({"IMPRINT_DATABASE_URL": URL}),
        "database": Database(None, URL),  # type: ignore[arg-type] # only shown, never used
        "exception": ConnectionError(f"cannot reach {URL}"),
        "deep exception": {"errors": [ValueError(URL)]},
        "bytes": URL.encode(),
        "url": URL,
        "url in a text": f"tried {URL}, then gave up",
        "libpq": f"host=db password={CANARY} user=ada",
        "quoted": f"host=db password='{CANARY} and more' user=ada",
        "query": f"postgresql://db/imprint?password={CANARY}&user=ada",
        "data": {"password": CANARY, "user": {"access_token": CANARY, "Authorization": CANARY}},
    }


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", secret_values())
def test_a_secret_inside_anything_is_not_written(written: Written, form: Form, name: str) -> None:
    """Our own lines, with the value as data, as context, as an argument, and through the standard library's logging."""
    configure(form, "debug")
    value = secret_values()[name]
    structlog.get_logger("imprint").info("seen", value=value)
    structlog.get_logger().bind(value=value).warning("bound")
    with structlog.contextvars.bound_contextvars(value=value):
        structlog.get_logger().info("in context")
    logging.getLogger("library").warning("a library says %s", {"password": HIDDEN} if name == "data" else value)
    logging.getLogger("library").warning("with data", extra={"value": value})
    shown = written()
    assert shown.count("\n") >= 5
    assert CANARY not in shown
    assert HIDDEN in shown or name == "database"  # which does not show its URL at all
    if form == "json":
        assert [type(json.loads(line)) for line in shown.splitlines()] == [dict] * 5


def _reach() -> None:
    secret = SecretStr(CANARY).get_secret_value()  # a local variable that no traceback may show
    refused = ConnectionRefusedError(f"nobody at {URL}")
    refused.add_note(f"noted: {URL}")
    cause = RuntimeError(f"cause {URL}, a password of {len(secret)} letters")
    raise ExceptionGroup(f"several at {URL}", [ValueError(URL), refused]) from cause


def _ours() -> None:
    try:
        _reach()
    except ExceptionGroup:
        structlog.get_logger().exception("it failed", stack_info=True)


def _library() -> None:
    try:
        _reach()
    except ExceptionGroup:
        logging.getLogger("library").exception("it failed at %s", URL, stack_info=True)


def _forgotten() -> None:
    async def main() -> None:
        try:
            _reach()
        except ExceptionGroup as error:
            # What asyncio does about a task whose exception nobody asked for.
            asyncio.get_running_loop().call_exception_handler({"message": URL, "exception": error})

    asyncio.run(main())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("log", [_ours, _library, _forgotten], ids=["ours", "library", "asyncio"])
def test_a_traceback_shows_no_secret(written: Written, form: Form, log: Callable[[], None]) -> None:
    """Causes, groups and notes are shown with passwords hidden, local variables not at all."""
    configure(form, "info")
    log()
    shown = written()
    assert "Traceback" in shown
    assert "several at" in shown
    assert "cause" in shown
    assert "noted" in shown
    assert CANARY not in shown
    if form == "json":
        assert json.loads(shown)["level"] == "error"


@pytest.mark.parametrize("form", FORMS)
async def test_a_failed_connection_shows_no_password(written: Written, form: Form) -> None:
    """Neither asyncpg's own error nor the problem made from it, with all its causes, tells the password."""
    configure(form, "debug")
    with pytest.raises(OSError, match="Connect call failed"):
        await asyncpg.connect(URL)
    for url in (URL, f"postgresql://ada:{CANARY}/x@h/d", f"postgresql://ada:x@h:{CANARY}/d", f"{CANARY}://x"):
        with pytest.raises(Problem) as caught:
            await connect(url)
        assert CANARY not in repr(caught.value)
        structlog.get_logger().error("no database", problem=caught.value, exc_info=caught.value)
    shown = written()
    assert shown.count("no database") == 4
    assert CANARY not in shown


@pytest.mark.parametrize("form", FORMS)
def test_an_address_that_is_asked_is_not_written(written: Written, form: Form) -> None:
    """Feeds of one's own carry their secret in the address, and an HTTP client writes each one that it asks."""
    configure(form, "debug")
    asked = httpx2.MockTransport(lambda _: httpx2.Response(200))
    with httpx2.Client(transport=asked) as http:
        http.get(f"https://feeds.example/rss?auth={CANARY}")
    assert CANARY not in written()


@pytest.mark.parametrize("form", FORMS)
def test_a_line_that_cannot_be_written_does_not_show_its_arguments(written: Written, form: Form) -> None:
    """The standard library would print them with a traceback; a broken line is named by its place only."""

    class Broken:
        def __str__(self) -> str:
            raise ValueError(URL)

    configure(form, "debug")
    logging.getLogger("library").warning("%d", URL)
    structlog.get_logger().info("broken", value=Broken())
    shown = written()
    assert shown.count("could not be written") == 2
    assert f"{Path(__file__).name}:" in shown
    assert CANARY not in shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://ada:x@h/d", f"postgresql://ada:{HIDDEN}@h/d"),
        ("postgresql://:x@h/d and redis://a:b@c", f"postgresql://:{HIDDEN}@h/d and redis://a:{HIDDEN}@c"),
        ("postgresql://ada:p@ss/w:rd@h/d", f"postgresql://ada:{HIDDEN}@h/d"),
        ("postgresql://ada:a b@c d@h/d", f"postgresql://ada:{HIDDEN}@h/d"),
        ("http://127.0.0.1:7600/posts", "http://127.0.0.1:7600/posts"),
        ("ada@example.org wrote at 12:30", "ada@example.org wrote at 12:30"),
        ("PASSWORD = 'x y'", f"PASSWORD = {HIDDEN}"),
        ('password authentication failed for user "ada"', 'password authentication failed for user "ada"'),
    ],
)
def test_of_a_text_only_the_password_is_hidden(text: str, shown: str) -> None:
    """People read these lines: hosts, users and ports stay."""
    assert hide_in_text(text) == shown


def test_a_json_line_is_plain_data(written: Written) -> None:
    """Whatever is given is written as strict JSON: ids, times, numbers that JSON does not know, odd keys."""
    configure("json", "info")
    structlog.get_logger().info(
        "seen", id=UUID(int=1), at=datetime(2026, 1, 2, tzinfo=UTC), nan=float("nan"), odd={(1, 2): {3}}, none=None, n=3
    )
    structlog.get_logger().debug("too fine")
    line = json.loads(written(), parse_constant=pytest.fail)
    assert datetime.fromisoformat(line.pop("timestamp")).tzinfo is not None
    assert line == {
        "event": "seen",
        "level": "info",
        "id": "00000000-0000-0000-0000-000000000001",
        "at": "2026-01-02 00:00:00+00:00",
        "nan": "nan",
        "odd": {"(1, 2)": [3]},
        "none": None,
        "n": 3,
    }


SAY = (
    "import structlog, imprint.log; imprint.log.configure({form!r}, 'info'); structlog.get_logger().info('hello', n=1)"
)


@pytest.mark.parametrize(("form", "human"), [("auto", True), ("human", True), ("json", False)])
def test_lines_on_a_terminal_are_for_people(form: str, human: bool) -> None:  # noqa: FBT001 - a column of the table
    """A real terminal gets a coloured line unless JSON was asked for."""
    ours, theirs = pty.openpty()
    try:
        subprocess.run([sys.executable, "-c", SAY.format(form=form)], stderr=theirs, check=True)
        line = os.read(ours, 10_000).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert ("\x1b[" in line) == human
    assert line.lstrip().startswith("{") != human
    assert "hello" in line


@pytest.mark.parametrize(("form", "human"), [("auto", False), ("human", True), ("json", False)])
def test_lines_elsewhere_are_json_unless_asked_for(form: str, human: bool) -> None:  # noqa: FBT001 - see above
    """A pipe or a file gets one JSON object per line, and no colours ever."""
    line = subprocess.run(
        [sys.executable, "-c", SAY.format(form=form)], capture_output=True, text=True, check=True
    ).stderr
    assert "\x1b[" not in line
    if human:
        assert "hello" in line
    else:
        assert json.loads(line)["event"] == "hello"
