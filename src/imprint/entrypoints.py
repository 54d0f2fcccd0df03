"""The entrypoints: everything a worker can do, in one table."""

import os
import socket
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial

from imprint.engine.queue import Entrypoint, Job
from imprint.engine.wire import Wire
from imprint.images.maker import Maker
from imprint.settings import Settings
from imprint.store.db import Database
from imprint.work import announce, notify
from imprint.work.audit import seal
from imprint.work.clean import clean
from imprint.work.derive import ATTEMPTS, Deriver, bounds, children
from imprint.work.desk import Desk
from imprint.work.holds import free_held
from imprint.work.journal import Journal
from imprint.work.news import tell_forgotten
from imprint.work.orphans import collect
from imprint.work.poll import ATTEMPTS as POLL_ATTEMPTS
from imprint.work.poll import Poller
from imprint.work.publish import Publisher
from imprint.work.reconcile import Reconciler
from imprint.work.record import replay
from imprint.work.refresh import refresh
from imprint.work.stores import open_stores
from imprint.work.target import courier
from imprint.work.tend import tend
from imprint.work.vault import Vault


def entrypoints(database: Database, settings: Settings) -> tuple[Entrypoint, ...]:
    """Everything a worker can do: the name, who does it, how many at once, how often and how long."""
    stores = open_stores(settings)
    deriver = Deriver(database, stores, Maker(bounds(settings), children(settings)), settings)
    chores: dict[str, Callable[[], Awaitable[object]]] = {
        "audit": partial(seal, database),
        "clean": partial(clean, database, settings),
        "content": partial(tend, database, stores, settings),
        "bytes": partial(collect, database, stores, settings),
        "holds": partial(free_held, database),
        "news": partial(tell_forgotten, database),
        "sign-ins": partial(refresh, database, Vault.of(settings), Wire()),
    }

    async def run_chore(job: Job) -> None:
        await chores[job.key]()

    notifier = notify.Notifier(database, Vault.of(settings), courier(settings), settings)
    actor = f"worker {socket.gethostname()}:{os.getpid()}"
    desk = Desk(database, Vault.of(settings), Wire(), deriver, Journal.of(settings.home), settings, actor)

    return (
        Entrypoint("chore", run_chore, concurrency=1, attempts=3, timeout=timedelta(minutes=10)),
        Entrypoint(
            "derive",
            deriver.derive,
            concurrency=settings.derivations_at_once,
            attempts=ATTEMPTS,
            timeout=timedelta(minutes=15),
        ),
        # Hours, since the files of one post may be large and a line slow; the lease and the sender's own deadline hold
        # each step in bounds.
        Entrypoint(
            "publish",
            Publisher(desk).publish,
            concurrency=0,
            attempts=3,
            timeout=timedelta(hours=3),
            begin=partial(replay, desk),
        ),
        Entrypoint(
            "poll",
            Poller.of(database, settings).poll,
            concurrency=settings.polls_at_once,
            attempts=POLL_ATTEMPTS,
            timeout=timedelta(minutes=15),
        ),
        Entrypoint("notify", notifier.notify, concurrency=2, attempts=notify.ATTEMPTS, timeout=timedelta(minutes=5)),
        # Its attempts are counted in its row; these are for a database that is away.
        Entrypoint("deliver", notifier.deliver, concurrency=16, attempts=3, timeout=timedelta(minutes=2)),
        Entrypoint(
            "announce",
            partial(announce.announce, database),
            concurrency=2,
            attempts=announce.ATTEMPTS,
            timeout=timedelta(minutes=5),
        ),
        Entrypoint("reconcile", Reconciler(desk).reconcile, concurrency=0, attempts=3, timeout=timedelta(minutes=5)),
    )
