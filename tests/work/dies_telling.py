"""Processes that die while they tell people or announce: `python -m tests.work.dies_telling` obeys, as `dies` does.

The steps are: before a transaction, before its commit and after it; before a message is sent, and after.
"""

from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from pydantic import SecretStr

from imprint.engine.courier import Courier
from imprint.engine.queue import Job
from imprint.engine.wire import Wire
from imprint.store.db import open_database
from imprint.work import webhook
from imprint.work.announce import announce
from imprint.work.notify import Notifier
from imprint.work.target import courier
from imprint.work.vault import Vault
from tests.work import dies
from tests.work.dies import Steps, watched
from tests.work.readers import settings_of


def telling(steps: Steps) -> None:
    """Make what is sent count as well."""
    send = Courier.send

    async def sending(self: Courier, url: str, title: str, body: str, *, trusted: bool = True) -> None:
        steps.take()
        await send(self, url, title, body, trusted=trusted)
        steps.take()

    setattr(Courier, "send", sending)  # noqa: B010 - mypy does not let a method be assigned
    call = webhook.call

    async def calling(wire: Wire, address: SecretStr, key: UUID, body: str, now: datetime) -> None:
        steps.take()
        await call(wire, address, key, body, now)
        steps.take()

    setattr(webhook, "call", calling)  # noqa: B010 - as above


async def obey(order: dict[str, Any]) -> int:
    """Do what was ordered and give the number of steps it took."""
    steps = Steps(order["fatal"])
    settings = settings_of(Path(order["home"]), order["port"])
    async with open_database(order["url"]) as database:
        watched(steps)
        telling(steps)
        by = courier(settings)
        notifier = Notifier(database, Vault.of(settings), by, settings)
        job = Job(order["do"], order["about"])
        if order["do"] == "announce":
            await announce(database, job)
        else:
            await getattr(notifier, order["do"])(job)
        await by.close()
    return steps.taken


if __name__ == "__main__":
    setattr(dies, "obey", obey)  # noqa: B010 - mypy does not let a function be assigned
    dies.main()
