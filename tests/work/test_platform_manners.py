"""What an instance takes is asked anew; threads that take long; what says something about a platform, and what not."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from unittest.mock import patch
from uuid import UUID

import asyncpg
import pytest

from imprint.engine import circuit
from imprint.platforms.bluesky_text import parts
from imprint.platforms.folder import FolderLogin
from imprint.platforms.mastodon_sign_in import BELIEVED
from imprint.sandbox.faults import Fault
from imprint.store.db import GONE, Database, Unreachable
from imprint.work import publish
from imprint.work.desk import account_circuit
from imprint.work.dry_run import dry_run
from tests.work.posts import OWNER
from tests.work.stage import BLUESKY, FOLDER, MASTODON, Stage


async def instance(play: Stage, **changes: Any) -> UUID:
    """Give an account whose instance was asked a moment ago what it takes."""
    account = await play.account(MASTODON)
    async with play.database.transaction(OWNER, "test") as connection:
        opened = await play.desk.vault.get(connection, account)
        await play.desk.vault.put(
            connection, account, opened.login.model_copy(update={"expires_in": BELIEVED, **changes})
        )
    return account


def asked(play: Stage) -> int:
    """Count how often the instance was asked what it takes."""
    calls = play.box.log.entries("request", MASTODON)
    return sum(str(each.data["path"]).endswith("/instance") for each in calls)


def files(play: Stage) -> list[int]:
    """Give how many files each status has."""
    told = [each.data["fields"] for each in play.box.log.effects(MASTODON)]
    return [sum(name == "media_ids[]" for name, _ in fields) for fields in told if isinstance(fields, list)]


async def test_what_an_instance_takes_is_asked_once_a_day(play: Stage) -> None:
    """It takes more by now: the first post of the next day asks, the others do not; before that nobody does."""
    account = await instance(play)
    play.box.sites[MASTODON].switch("generous", on=True)
    long = {MASTODON: {"text": "x" * 2000}}
    await play.out(await play.due(account, files=6))
    assert (files(play), asked(play)) == ([4], 0)
    await play.pass_time(timedelta(hours=25))
    for _ in range(3):
        publication = await play.due(account, files=6, overrides=long)
        await play.out(publication)
        assert await play.state(publication) == "success"
    assert (files(play), asked(play)) == ([4, 6, 6, 6], 1)


async def test_an_instance_that_takes_less_gets_less(play: Stage) -> None:
    """As many files as it takes, the first ones; the dry run counts as the worker does."""
    account = await instance(play, most_files=2)
    post = await play.post(files=3)
    (shown,) = await dry_run(play.database, play.at.stores, play.desk.vault, OWNER, post, only=[account])
    assert (len(shown.files), shown.problems) == (2, ())
    assert shown.note is not None
    assert "1 of its files do not go" in shown.note
    await play.out(await play.due(account, files=3))
    assert files(play) == [2]


async def test_an_instance_that_does_not_say_what_it_takes(play: Stage) -> None:
    """What it said before is believed for an hour longer, and nothing waits for that."""
    account = await instance(play, most_files=3)
    play.box.sites[MASTODON].switch("silent", on=True)
    await play.pass_time(timedelta(hours=25))
    publication = await play.due(account, files=4)
    await play.publish(publication)
    assert await play.state(publication) == "success"
    assert files(play) == [3]
    assert await play.read("SELECT expires_at < imprint_now() + interval '61 min' FROM credential")


@pytest.mark.usefixtures("_unhurried")
async def test_a_thread_that_takes_longer_than_an_attempt_comes_to_its_end(play: Stage) -> None:
    """Each attempt goes on where the one before it was, and no post of it is there twice."""
    text = "\n\n".join(f"{number}. " + "word " * 45 for number in range(24))
    publication = await play.due(on=BLUESKY, overrides={BLUESKY: {"thread": True, "text": text}})
    play.fault(Fault.LATENCY, path="*putRecord", times=None, seconds=0.1)
    with patch.object(publish, "SEND", timedelta(seconds=1.2)):
        await play.out(publication)
    assert await play.state(publication) == "success"
    assert await play.column("attempts", publication) >= 1
    keys = [each.data["key"] for each in play.box.log.effects(BLUESKY)]
    assert len(keys) == len(set(keys)) == len(parts(text)) > 20


async def test_a_refusal_of_our_own_says_nothing_about_the_platform(play: Stage) -> None:
    """A post that cannot go leaves the circuit as it was; one that the platform has answered closes it."""
    account = await play.account(MASTODON)
    async with play.database.connection() as connection:
        for _ in range(4):
            await circuit.failed(connection, account_circuit(account), circuit.PUBLISHING, "error", "away")
    bad = await play.due(account, overrides={MASTODON: {"text": "x" * 501}})
    await play.publish(bad)
    assert await play.column("error_code", bad) == "fit.long_text"
    assert await play.read("SELECT errors FROM circuit WHERE key = $1", account_circuit(account)) == 4
    refused = await play.due(account)
    play.fault(Fault.REFUSE, path="*/statuses")
    await play.out(refused)
    assert await play.state(refused) == "failed"
    assert not await play.read("SELECT errors FROM circuit WHERE key = $1", account_circuit(account))


async def test_a_disk_that_is_away_is_waited_for(play: Stage) -> None:
    """Twenty minutes without it are no reason to give up, and its circuit knows."""
    account = await play.account(FOLDER)
    async with play.database.connection() as connection:
        login = (await play.desk.vault.get(connection, account)).login
    assert isinstance(login, FolderLogin)
    login.folder.rmdir()
    publication = await play.due(account)
    began = play.offset
    while play.offset - began < timedelta(minutes=20):
        await play.wait_for("SELECT greatest(due_at, held_until) FROM publication WHERE id = $1", publication)
        await play.publish(publication)
        assert await play.state(publication) == "pending"
    assert await play.read("SELECT errors FROM circuit WHERE key = $1", account_circuit(account)) > 1
    login.folder.mkdir()
    await play.out(publication)
    assert await play.seen(publication) == [1]


async def test_how_long_a_sign_in_lasts_is_reckoned_by_the_database(play: Stage) -> None:
    """Its clock may differ from this machine's by hours: an hour is an hour from when it was kept."""
    await play.pass_time(timedelta(hours=-7))
    account = await play.account(BLUESKY)
    async with play.database.transaction(OWNER, "test") as connection:
        login = (await play.desk.vault.get(connection, account)).login
        hour, month = timedelta(hours=1), timedelta(days=30)
        kept = login.model_copy(update={"expires_in": hour, "renewable_for": month})
        await play.desk.vault.put(connection, account, kept)
        lasts = (await play.desk.vault.get(connection, account)).kept.lasts
    assert lasts is not None
    assert hour - timedelta(minutes=1) < lasts <= hour
    assert await play.read("SELECT renewable_until - imprint_now() FROM credential") <= month


async def test_only_a_database_that_is_away_is_away() -> None:
    """A socket that is not there is; a full disk or a missing file of ours is a mistake, and counts as one."""
    assert not issubclass(OSError, GONE)
    assert not issubclass(FileNotFoundError, GONE)

    class Nowhere:
        async def acquire(self) -> AsyncIterator[None]:
            raise FileNotFoundError("no such socket")

    gone: Any = Nowhere()
    with pytest.raises(Unreachable):
        async with Database(gone, "").connection():
            pass
    assert issubclass(Unreachable, GONE)
    assert issubclass(asyncpg.ConnectionDoesNotExistError, GONE)
