"""A stage: one platform with everything it needs to be tried, and an eye for what really arrived there."""

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from imprint.engine.wire import Sender, Wire
from imprint.platforms.contract import Platform
from imprint.platforms.folder import MANIFEST, FolderLogin
from imprint.platforms.login import Login
from imprint.platforms.memory import Memory, MemoryLogin
from imprint.platforms.registry import PLATFORMS
from imprint.platforms.work import Work
from imprint.sandbox.log import Log
from imprint.sandbox.server import Sandbox, sandbox, sites

NAMES = ("memory", *PLATFORMS)


class Stage(ABC):
    """A platform, a login for it, and the truth about what it has accepted."""

    def __init__(self, platform: Platform[Any], login: Login) -> None:
        self.platform = platform
        self.login = login

    @property
    def http(self) -> Sender:
        """Give a sender with a generous deadline."""
        return Wire().within(10)

    @property
    def sandbox(self) -> Sandbox | None:
        """Give the sandbox, None where the platform is not called over HTTP."""
        return None

    @abstractmethod
    def effects(self, work: Work) -> int:
        """Count how often others can see a work."""

    @abstractmethod
    def received(self) -> list[str]:
        """Give the hash of everything that arrived, in order."""

    async def uploaded(self, work: Work) -> Work:
        """Upload every file, and prepare what else is needed."""
        for file in work.files:
            remote = await self.platform.upload(self.http, self.login, work, file, lambda _: None)
            work = work.with_upload(remote)
        return await self.platform.prepare(self.http, self.login, work)

    def secrets(self) -> list[str]:
        """Give every secret of the login."""
        values = (getattr(self.login, name) for name in type(self.login).model_fields)
        return [value.get_secret_value() for value in values if isinstance(value, SecretStr)]


class _Memory(Stage):
    def __init__(self) -> None:
        self._memory = Memory()
        super().__init__(self._memory, MemoryLogin(word=SecretStr("canary-of-the-twin")))

    def effects(self, work: Work) -> int:
        return sum(json.loads(body)["title"] == work.title for body in self._memory.published.values())

    def received(self) -> list[str]:
        return self._memory.sent


class _Folder(Stage):
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        super().__init__(PLATFORMS["folder"], FolderLogin(folder=folder))

    def effects(self, work: Work) -> int:
        found = (json.loads(path.read_bytes()) for path in self._folder.glob(f"[!.]*/{MANIFEST}"))
        return sum(told["work"]["title"] == work.title for told in found)

    def received(self) -> list[str]:
        written = (path for path in sorted(self._folder.rglob("[!.]*")) if path.is_file())
        return [sha256(path.read_bytes()).hexdigest() for path in written]


class _Served(Stage):
    def __init__(self, platform: Platform[Any], running: Sandbox) -> None:
        self._running = running
        login = platform.login_type.model_validate_json(running.login(platform.name, "artist"))
        super().__init__(platform, login)

    @property
    def sandbox(self) -> Sandbox:
        return self._running

    def effects(self, work: Work) -> int:
        return sum(each.data["title"] == work.title for each in self._running.log.effects(self.platform.name))

    def received(self) -> list[str]:
        return [str(each.data["digest"]) for each in self._running.log.entries("request", self.platform.name)]


@asynccontextmanager
async def staged(name: str, folder: Path) -> AsyncIterator[Stage]:
    """Set the stage for a platform; one that has a site in the sandbox is called there over real HTTP."""
    if name == "memory":
        yield _Memory()
    elif name == "folder":
        yield _Folder(folder)
    else:
        async with sandbox() as running:
            yield _Served(PLATFORMS[name], running)


def served() -> list[str]:
    """Name the platforms that are called over HTTP."""
    return [name for name in PLATFORMS if name in sites(Log())]
