"""Tend: what content needs every few minutes: uploads that never ended, jobs that were lost, bytes that are to go."""

import asyncio
import shutil
from dataclasses import dataclass
from pathlib import Path
from time import time

from imprint.settings import Settings
from imprint.store.db import Database
from imprint.work.derive import requeue_lost
from imprint.work.lighten import lighten
from imprint.work.purge import purge
from imprint.work.stores import Stores
from imprint.work.upload import reap


@dataclass(frozen=True)
class Tended:
    """How many of each there were."""

    uploads_ended: int
    jobs_put_back: int
    originals_removed: int
    objects_purged: int


async def tend(database: Database, stores: Stores, settings: Settings) -> Tended:
    """End unfinished uploads, put lost jobs back, remove what is past its grace, and sweep this machine's spool."""
    await asyncio.to_thread(_sweep, stores.spool, settings.upload_leftover_hours * 3600)
    return Tended(
        await reap(database, stores),
        await requeue_lost(database),
        await lighten(database, settings),
        await purge(database, stores),
    )


def _sweep(spool: Path, seconds: float) -> None:
    """Remove what killed workers have left on their way."""
    for path in spool.iterdir():
        try:
            if path.stat().st_mtime > time() - seconds:
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        except FileNotFoundError:
            continue
