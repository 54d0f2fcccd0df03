"""The town: every simulated platform and source at one address, with signs that say how to get to each."""

import shlex
import socket
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from imprint.problem import Problem
from imprint.sandbox import serial_faults
from imprint.sandbox.faults import Fault, Rule
from imprint.sandbox.serial_world import World
from imprint.sandbox.serials import serials
from imprint.sandbox.server import Sandbox, sandbox

ARTIST = "painter"
# Those that the guides call by a name of their own.
WHO = {"deviantart": ARTIST, "webhook": "receiver"}
SOURCES = ("mangadex", "mangapark", "feeds")
# Where the sources are told what to do, beside the sources themselves.
SOURCE_CONTROL = "sandbox"
SERIES, CHAPTERS, NEW_CHAPTER = "The Lighthouse Keeper", 12, timedelta(minutes=5)


@dataclass(frozen=True)
class Sign:
    """Something a person may want to know: its name, and a command or an address."""

    name: str
    text: str


@dataclass(frozen=True)
class Town:
    """A running town."""

    url: str
    signs: tuple[Sign, ...]
    sandbox: Sandbox
    world: World


@asynccontextmanager
async def town(
    opened: socket.socket, *, log: Path | None = None, seed: int = 0, faults: Sequence[str] = ()
) -> AsyncIterator[Town]:
    """Run platforms and sources on an open socket; a log on disk has one file for each of the two."""
    beside = None if log is None else log.with_name(f"{log.name}.sources")
    world = World(seed=seed, log=beside)
    rules = [_read(text) for text in faults]  # before anything listens: a rule that cannot be read is a mistake
    series = world.add(SERIES, CHAPTERS, every=NEW_CHAPTER)
    shop = serials(world)
    apps = dict.fromkeys((*SOURCES, SOURCE_CONTROL), shop)
    async with sandbox(opened=opened, log=log, seed=seed, beside=apps) as running:
        for rule in rules:
            if isinstance(rule, Rule):
                running.faults.add(rule)
            else:
                world.faults.add(rule)
        yield Town(running.url, tuple(_signs(running, series.id)), running, world)


def _signs(running: Sandbox, series: str) -> list[Sign]:
    url = running.url
    rule = '{"does": "reset_after", "path": "*/stash/publish", "times": 1}'
    return [
        Sign("gallery", f"{url}/"),
        *_doors(running),
        Sign("sources", f"export {_variables(url)}  # before `imprint up`: private addresses are refused otherwise"),
        Sign("feed", f"imprint series add {url}/feeds/1.rss"),
        Sign("mangadex", f"imprint series add mangadex:{series}"),
        Sign("mangapark", f"{url}/mangapark/apo/"),
        Sign("chapter", f"curl -d '{{}}' {url}/{SOURCE_CONTROL}/series/1  # the next chapter comes out now"),
        Sign("log", f"{url}/_sandbox/log"),
        Sign("fault", f"curl -d {shlex.quote(rule)} {url}/_sandbox/faults"),
    ]


def _doors(running: Sandbox) -> Iterator[Sign]:
    """Say how to add an account at each platform, as the platform itself tells it."""
    for name, site in sorted(running.sites.items()):
        who = WHO.get(name, ARTIST)
        if answers := site.answers(running.base_url(name), who):
            label = who if name in WHO else f"{who} on {name}"
            yield Sign(name, _add(name, label, answers, *(["--follow"] if site.sends_for else [])))


def _variables(url: str) -> str:
    host = url.partition("://")[2].partition(":")[0]
    bases = f"IMPRINT_MANGADEX_BASE={url}/mangadex IMPRINT_MANGAPARK_BASE={url}/mangapark"
    return f"IMPRINT_ALLOWED_HOSTS={host} {bases}"


def _add(platform: str, name: str, answers: dict[str, str], *options: str) -> str:
    given = [part for each in answers.items() for part in ("--set", "=".join(each))]
    return shlex.join(["imprint", "account", "add", platform, "--name", name, *options, *given])


def _read(text: str) -> Rule | serial_faults.Fault:
    """Read a rule such as `reset_after,path=*/stash/publish,times=2`; one for a source names it as its site."""
    does, *pairs = (part.strip() for part in text.split(","))
    given = dict(pair.partition("=")[::2] for pair in pairs)
    try:
        if given.get("site") in SOURCES:
            on = f"/{given.pop('site')}{given.pop('path', '')}"
            return serial_faults.Fault(serial_faults.Kind(does), on, **_values(given))
        return Rule(Fault(does), **_values(given))
    except (ValueError, TypeError):
        raise Problem(
            "sandbox.bad_fault",
            f"{text!r} is not a fault; write one of {', '.join(Fault)}, and after commas what else is to be said: "
            "site=…, path=…, times=2 or always, chance=0.1, skip=1, seconds=2, status=503, code=9, retry_after=30.",
        ) from None


def _values(given: Mapping[str, str]) -> dict[str, Any]:
    kinds = {"times": int, "chance": float, "skip": int, "seconds": float, "status": int, "code": int}
    return {
        name: None if (name, value) == ("times", "always") else kinds.get(name, str)(value)
        for name, value in given.items()
    }
