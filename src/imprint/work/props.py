"""Props: what the demo is played with: the sandbox, told over HTTP what to do, and accounts, posts and workers."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, TypeVar
from uuid import UUID

from imprint.decisions.schedule import Bounds
from imprint.engine.wire import Wire
from imprint.platforms.request import Request, Text
from imprint.problem import Problem
from imprint.settings import Settings
from imprint.store.db import Database
from imprint.store.query import query
from imprint.work import account as accounts
from imprint.work.account import Waiting
from imprint.work.add import add
from imprint.work.attach import attach
from imprint.work.explain import explain
from imprint.work.painting import painting
from imprint.work.person import OPERATOR
from imprint.work.post import create, ready
from imprint.work.schedule import Target, schedule
from imprint.work.stores import Stores
from imprint.work.story import Step, story
from imprint.work.vault import Vault

YOU = OPERATOR  # who looks after the machine may reach its own network
DEVIANTART, WEBHOOK, FOLDER = "deviantart", "webhook", "folder"
# A post is otherwise planned an hour ahead at least, and goes out some minutes after its time.
AT_ONCE = Bounds(lead=timedelta(0), jitter=timedelta(0))
SOON = timedelta(seconds=1)
LOOK_EVERY = 0.05
PATIENCE = 60.0
CALL_SECONDS = 10.0

Value = TypeVar("Value")


class Workers(Protocol):
    """The worker processes of the demo; one at a time."""

    async def start(self, ahead: timedelta = timedelta(0)) -> None:
        """Start one whose clock is so much ahead, and come back when it is at work."""
        ...

    async def kill(self) -> None:
        """End the one that runs at once, without a goodbye."""
        ...

    def open(self, ahead: timedelta) -> AbstractAsyncContextManager[Database]:
        """Open the database with a clock that is so much ahead."""
        ...


@dataclass(frozen=True)
class Out:
    """A publication: of which post, on which account, and where it stands."""

    id: UUID
    post_id: UUID
    title: str
    account: str
    platform: str
    status: str


ALL = query("demo_publications", Out)


@dataclass
class Sandbox:
    """The sandbox as seen from outside; its own log is what counts in the end."""

    url: str
    wire: Wire = field(default_factory=Wire)

    async def get(self, path: str) -> Any:
        """Ask it something."""
        return await self._send("GET", path, None)

    async def tell(self, path: str, /, **said: Any) -> Any:
        """Tell it something."""
        return await self._send("POST", path, Text(json.dumps(said).encode()))

    async def fault(self, does: str, /, **rule: Any) -> None:
        """Let the next call that fits go wrong."""
        await self.tell("/_sandbox/faults", does=does, **rule)

    async def effects(self) -> list[dict[str, Any]]:
        """Give everything that others could see there."""
        return [{"site": each["site"], **each["data"]} for each in await self.get("/_sandbox/log?what=publish")]

    async def asked(self, path: str) -> int:
        """Count the requests to a path."""
        return sum(each["data"]["path"].endswith(path) for each in await self.get("/_sandbox/log?what=request"))

    async def _send(self, method: str, path: str, body: Text | None) -> Any:
        request = Request("tell the sandbox", method, self.url + path, body=body)
        answer = await self.wire.within(CALL_SECONDS).send(request)
        if not answer.ok:
            raise Problem("demo.sandbox", f"The sandbox did not understand {path}: {answer.status}.")
        return json.loads(answer.body)


@dataclass
class Stage:
    """Where the demo is played: a database, a home, the sandbox, and somebody who listens."""

    database: Database
    settings: Settings
    stores: Stores
    box: Sandbox
    workers: Workers
    say: Callable[[str], None]
    accounts: dict[str, UUID] = field(default_factory=dict)
    _said: dict[UUID, int] = field(default_factory=dict)

    @property
    def vault(self) -> Vault:
        """Give what seals sign-ins."""
        return Vault.of(self.settings)

    async def connect(self, on: str, label: str) -> None:
        """Connect an account as a person does, the way over a browser included."""
        given = await self._answers(on, label)
        back = "http://127.0.0.1/accounts/return"
        wire = self.box.wire
        made = await accounts.begin(self.database, self.vault, wire, YOU, on, given, back, label=label)
        if isinstance(made, Waiting):
            made = await accounts.finish(self.database, self.vault, wire, YOU, await accounts.follow(wire, made.url))
        self.accounts[label] = made.id

    async def _answers(self, on: str, label: str) -> Mapping[str, str]:
        if on == FOLDER:
            folder = self.settings.home / label
            folder.mkdir()
            return {"folder": str(folder)}
        login = (await self.box.tell("/_sandbox/accounts", site=on, name=label))["login"]
        if on == WEBHOOK:
            return {"url": login["url"], "secret": login["secret"]}
        return {
            "base_url": f"{self.box.url}/{on}/~{label}",
            "client_id": login["client_id"],
            "client_secret": login["client_secret"],
            "app_name": login["app_name"],
        }

    async def post(self, title: str) -> UUID:
        """Paint a picture and write a post about it that is ready."""
        path = self.settings.home / f"{title.lower().replace(' ', '-')}.png"
        path.write_bytes(painting(title))
        content = (await add(self.database, self.stores, self.settings, path, YOU)).file_id
        post = await create(self.database, YOU, {"title": title, "tags": ["demo"]})
        await attach(self.database, YOU, post, content)
        await ready(self.database, YOU, post)
        return post

    async def plan(self, post: UUID, *labels: str) -> None:
        """Schedule a post, a moment from now."""
        targets = [Target(self.accounts[label]) for label in labels]
        await schedule(self.database, AT_ONCE, YOU, post, datetime.now(UTC) + SOON, targets=targets)

    async def all(self) -> list[Out]:
        """Give every publication there is."""
        async with self.database.connection() as connection:
            return await ALL.all(connection)

    async def until(self, post: UUID, *states: str) -> None:
        """Tell what happens until every publication of a post is in one of these states."""

        async def there() -> bool:
            return all(each.status in states for each in await self.all() if each.post_id == post)

        await self.see(there)

    async def see(self, look: Callable[[], Awaitable[Value | None]]) -> Value:
        """Tell what happens until something is true, and give it; the demo does not wait for ever."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not (value := await look()):
                    await self.tell_news()
                    await asyncio.sleep(LOOK_EVERY)
                await self.tell_news()
                return value
        except TimeoutError:
            raise Problem("demo.stuck", await self._why_stuck()) from None

    async def _why_stuck(self) -> str:
        async with self.database.connection() as connection:
            posts = dict.fromkeys(each.post_id for each in await self.all())
            told = [each for post in posts for each in (await explain(connection, YOU, str(post))).publications]
        waits = [f"{each.standing.account}: {each.next.sentence}" for each in told if not each.next.over]
        return f"Nothing went on for {PATIENCE:.0f} seconds. {' '.join(waits) or 'Is this machine busy?'}"

    async def tell_news(self) -> None:
        """Tell the steps of every publication that were not told yet."""
        named = {each.id: each for each in await self.all()}
        async with self.database.connection() as connection:
            steps = await story(connection, list(named))
        counts: dict[UUID, int] = {}
        for step in steps:
            if step.of is None:
                continue
            counts[step.of] = counts.get(step.of, 0) + 1
            if counts[step.of] > self._said.get(step.of, 0):
                self._said[step.of] = counts[step.of]
                if words := _words(step):
                    of = named[step.of]
                    self.say(f"  {step.at:%H:%M:%S}  {of.title} → {of.account}: {words}")


def _words(step: Step) -> str | None:
    """Say a step in few words; what is in every story is left out."""
    match step.what:
        case "create" | "uploaded" | "intend":
            return None
        case "claim":
            return "a worker takes it" + (f", attempt {step.attempt}" if step.attempt and step.attempt > 1 else "")
        case "published":
            return "it is out ✓"
        case "found":
            return "a look found it: it is out ✓"
        case _:
            return step.sentence


def folders(home: Path, labels: Sequence[str]) -> list[dict[str, Any]]:
    """Give what is out in folders, as their manifests say."""
    manifests = [json.loads(path.read_bytes()) for label in labels for path in (home / label).glob("[!.]*/*.json")]
    return [{"site": FOLDER, "title": told["work"]["title"]} for told in manifests]
