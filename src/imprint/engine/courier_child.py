"""The courier's child: the process that holds Apprise and sends messages; it reads orders and writes answers, as lines.

Addresses that people give are those of strangers. So nothing here is trusted to look before it connects: a hook of the
interpreter sees every connection that any library is about to make, by its real address, and refuses those that the
guard denies. Nor can a program be started from here.
"""

import json
import logging
import os
import re
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import unquote

from imprint.engine.guard import Hosts, denied, own_addresses
from imprint.log import HIDDEN, hide_in_text

LONGEST_ERROR = 300
SHORTEST_SECRET = 6
# They would tell this machine, not a person.
LOCAL = frozenset({"blink1", "dbus", "glib", "gio", "gnome", "growl", "kde", "macosx", "qt", "syslog", "windows"})
_STARTS = frozenset({"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "subprocess.Popen"})
_CONNECTS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})

_here = threading.local()


class Guard:
    """Refuses connections to addresses that are not public, unless the operator has named their host.

    What the operator has named is for those who look after the machine; the messages of others do not go there.
    """

    def __init__(self, allowed: frozenset[str]) -> None:
        self._hosts = Hosts(allowed)

    def __call__(self, event: str, given: tuple[Any, ...]) -> None:
        """Look at what the interpreter is about to do."""
        if event in _CONNECTS:
            address = given[1]
            if address is not None and (why := self._why(address)):
                _here.refusal = why
                raise PermissionError(why)
        elif event in _STARTS:
            raise PermissionError("no program is started to send a message")

    def _why(self, address: object) -> str | None:
        if not isinstance(address, tuple) or len(address) < 2:  # noqa: PLR2004 - host and port
            return "sockets of this machine are not for messages"
        host, port = str(address[0]).partition("%")[0], int(address[1])
        why = denied(host) or ("it is this machine's own" if host in own_addresses() else None)
        if why is None:
            return None
        # A thread that a library started itself is nobody's, so not to be trusted.
        if not getattr(_here, "trusted", False):
            return "the address leads to a place that is not public"
        if self._hosts.allows(host, port) or self._named(host, port):
            return None
        return f"the address leads to {host}: {why}; IMPRINT_ALLOWED_HOSTS can allow it"

    def _named(self, host: str, port: int) -> bool:
        """Say whether a name that the operator allows leads to this address."""
        for entry in self._hosts.allowed:
            name, _, only = entry.rpartition(":") if re.search(r"[^:\]]:\d+$", entry) else (entry, "", "")
            if only and int(only) != port:
                continue
            try:
                found = socket.getaddrinfo(name.strip("[]"), port, type=socket.SOCK_STREAM)
            except (OSError, UnicodeError):
                continue
            if any(each[4][0] == host for each in found):
                return True
        return False


class Complaints(logging.Handler):
    """Keeps what Apprise complains about, each thread its own."""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one line."""
        _here.complaints = [*getattr(_here, "complaints", []), record.getMessage()]


class Child:
    """Carries orders out, several at once."""

    def __init__(self, threads: int) -> None:
        import apprise  # noqa: PLC0415 - a quarter of a second, paid once in a process that exists for it

        self._apprise = apprise
        self._asset = apprise.AppriseAsset(
            app_id="Imprint", app_desc="Imprint", app_url="", storage_mode=apprise.PersistentStoreMode.MEMORY
        )
        logger = logging.getLogger("apprise")
        logger.handlers[:] = [Complaints()]
        logger.setLevel(logging.WARNING)
        logger.propagate = False
        self._pool = ThreadPoolExecutor(threads)
        self._writing = threading.Lock()

    def serve(self) -> None:
        """Read orders until there are no more: then whoever gave them is gone."""
        for line in sys.stdin.buffer:
            self._pool.submit(self._obey, json.loads(line))

    def _obey(self, order: dict[str, Any]) -> None:
        try:
            answer = self._answer(order)
        except Exception as error:  # noqa: BLE001 - whatever a plugin does wrong is an answer
            answer = {"ok": False, "error": f"{type(error).__name__}: {error}"}
        if "error" in answer:
            answer["error"] = _clean(str(answer["error"]), order["url"])
        with self._writing:
            sys.stdout.buffer.write(json.dumps({"id": order["id"], **answer}).encode() + b"\n")
            sys.stdout.buffer.flush()

    def _answer(self, order: dict[str, Any]) -> dict[str, Any]:
        _here.complaints, _here.refusal, _here.trusted = [], None, bool(order.get("trusted"))
        url = str(order["url"])
        if url.partition(":")[0].strip().lower() in LOCAL:
            return {"ok": False, "error": "it would tell this machine and nobody else"}
        service = self._apprise.Apprise.instantiate(url, asset=self._asset, suppress_exceptions=True)
        if service is None:
            return {"ok": False, "error": _complaints() or "it is not an address that Apprise knows"}
        if not service.enabled:
            return {"ok": False, "error": "what this service needs is not installed here"}
        if order["do"] == "look":
            return {"ok": True, "service": str(service.service_name)}
        service.service_retry = 0  # attempts are counted where they are recorded
        sent = service.notify(body=order["body"], title=order["title"])
        return {"ok": True} if sent else {"ok": False, "error": _here.refusal or _complaints() or "it was refused"}


def _complaints() -> str:
    return " ".join(dict.fromkeys(_here.complaints))


def _clean(error: str, url: str) -> str:
    """Take out of an error what the address holds, since much of it is secret, and keep what a person would read."""
    for text in (url, unquote(url)):
        for part in sorted(re.split(r"[/@:?&=,\s]+", text.partition("://")[2] or text), key=len, reverse=True):
            if len(part) >= SHORTEST_SECRET and not re.fullmatch(r"[\d.]+", part):
                error = error.replace(part, HIDDEN)
    clean = " ".join(hide_in_text(error).split())
    return clean if len(clean) <= LONGEST_ERROR else clean[: LONGEST_ERROR - 1] + "…"


def main() -> None:
    """Begin: what is allowed and how many at once are the arguments."""
    child = Child(int(sys.argv[2]))
    sys.addaudithook(Guard(frozenset(json.loads(sys.argv[1]))))
    sys.stdout.buffer.write(b'{"id": 0}\n')
    sys.stdout.buffer.flush()
    child.serve()
    os._exit(0)  # without waiting for what hangs


if __name__ == "__main__":
    main()
