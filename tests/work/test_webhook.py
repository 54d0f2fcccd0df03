"""Webhooks: told of what happens as the standard says, in the transaction in which it happens, until they answer."""

import asyncio
import hmac
import json
import sys
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pydantic import SecretStr

from imprint.engine.queue import Job
from imprint.engine.wire import Wire, outside
from imprint.problem import Problem
from imprint.store.db import Database
from imprint.work import dead_letter, webhook
from imprint.work import target as targets
from imprint.work.webhook import Made
from tests.work.readers import ADA, Readers, readers


@pytest.fixture
async def at(database: Database, home: Path) -> AsyncIterator[Readers]:
    """Set the scene up: a receiver, a series, and whoever tells."""
    async with readers(database, home) as made:
        yield made


async def hooked(at: Readers, *events: str, role: str = "administrator") -> Made:
    """Let a person have a webhook."""
    async with at.database.connection() as connection:
        await connection.execute(
            "INSERT INTO person (id, name, password_hash, role) VALUES ('op', 'op', '$argon2id$', 'administrator'), "
            "($1, $1, '$argon2id$', $2) ON CONFLICT DO NOTHING",
            *(ADA, role),
        )
    address = SecretStr(f"http://127.0.0.1:{at.receiver.port}/hook?token=very-secret")
    return await webhook.add(at.database, at.vault, Wire(), ADA, address, events=events or webhook.EVENTS)


async def publication(at: Readers, end: str, owner: str = ADA) -> UUID:
    """Let a publication come to an end."""
    ends = {
        "success": "status = 'success', remote_id = '1', url = 'https://out.example/1'",
        "failed": "status = 'failed', error_code = 'post.refused'",
        "unknown": "status = 'unknown', intent_at = imprint_now()",
    }
    async with at.database.connection() as connection, connection.transaction():
        post = await connection.fetchval("INSERT INTO post (title, owner) VALUES ('Dusk', $1) RETURNING id", owner)
        await connection.execute("UPDATE post SET status = 'draft' WHERE id = $1", post)
        account = await connection.fetchval(
            "INSERT INTO account (platform, name, owner) VALUES ('folder', $2, $1) RETURNING id", owner, str(post)
        )
        made: UUID = await connection.fetchval(
            "INSERT INTO publication (post_id, account_id, due_at) VALUES ($1, $2, imprint_now()) RETURNING id",
            *(post, account),
        )
        await connection.execute(
            "UPDATE publication SET status = 'running', phase = 'uploading', fence = 1, "
            "lease_until = imprint_now() + '1 min' WHERE id = $1",
            made,
        )
        await connection.execute(
            "INSERT INTO publication_log (publication_id, kind, line) VALUES ($1, 'end', 'The platform said so.')", made
        )
        await connection.execute(
            f"UPDATE publication SET phase = NULL, lease_until = NULL, {ends[end]} WHERE id = $1", made
        )
    return made


async def test_what_happens_is_told_as_the_standard_says(at: Readers) -> None:
    """Type, time and data in the body; id, time and signature in the headers; nothing of anybody else's."""
    made = await hooked(at)
    assert made.secret.startswith("whsec_")
    assert "very-secret" not in str(made)
    assert made.secret not in str(made)
    ends = {end: await publication(at, end) for end in ("success", "failed", "unknown")}
    await publication(at, "failed", "bob")
    async with at.database.connection() as connection:
        await connection.execute("UPDATE account SET status = 'reconnect', trouble = 'It ended.' WHERE owner = 'bob'")
        await connection.execute(
            "UPDATE account SET status = 'reconnect', trouble = 'It ended.' WHERE id = "
            "(SELECT account_id FROM publication WHERE id = $1)",
            ends["success"],
        )
    await at.deliver()
    told = {each["type"]: each["data"] for each in at.receiver.heard}
    assert list(told) == [
        "publication.published",
        "publication.failed",
        "publication.unknown",
        "account.reconnect",
    ]
    assert told["publication.published"]["publicationId"] == str(ends["success"])
    assert told["publication.published"]["url"] == "https://out.example/1"
    assert (told["publication.failed"]["code"], told["publication.failed"]["why"]) == (
        "post.refused",
        "The platform said so.",
    )
    assert told["account.reconnect"]["why"] == "It ended."
    for headers, body in zip(at.receiver.headers, at.receiver.raw, strict=True):
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        key = b64decode(made.secret.removeprefix("whsec_"))
        assert headers["webhook-signature"] == "v1," + b64encode(hmac.digest(key, signed, sha256)).decode()
    assert len({headers["webhook-id"] for headers in at.receiver.headers}) == 4
    assert await at.due() == []


def signers(at: Readers, *secrets: str) -> list[bool]:
    """Say which secrets a receiver could have to believe the last message."""
    headers, body = at.receiver.headers[-1], at.receiver.raw[-1]
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    keys = [b64decode(each.removeprefix("whsec_")) for each in secrets]
    found = ["v1," + b64encode(hmac.digest(key, signed, sha256)).decode() for key in keys]
    return [each in headers["webhook-signature"].split(" ") for each in found]


async def test_after_a_rotation_old_and_new_sign_for_a_day(at: Readers) -> None:
    """Whoever has not been told of the new secret loses nothing; by the database's clock the old ones end."""
    made = await hooked(at, "failed")
    hook = made.webhook.id
    second, third = [await webhook.rotate(at.database, at.vault, ADA, hook) for _ in range(2)]
    for each in (second, third):
        assert each.secret not in repr(each)
    secrets = (third.secret, second.secret, made.secret)
    for hours, good in ((23, [True, True, True]), (25, [True, False, False])):
        await at.pass_time(timedelta(hours=hours))
        await publication(at, "failed")
        await at.deliver()
        assert signers(at, *secrets) == good
    for _ in range(webhook.MOST_OLD + 3):
        last = await webhook.rotate(at.database, at.vault, ADA, hook)
    await webhook.try_out(at.database, at.vault, Wire(), ADA, hook)
    assert len(at.receiver.headers[-1]["webhook-signature"].split(" ")) == webhook.MOST_OLD + 1
    assert signers(at, last.secret) == [True]
    with pytest.raises(Problem, match="no such webhook"):
        await webhook.rotate(at.database, at.vault, "bob", hook)


async def test_only_chosen_events_are_told(at: Readers) -> None:
    """And those of a disabled webhook are not made up for."""
    made = await hooked(at, "failed")
    await publication(at, "success")
    await webhook.disable(at.database, ADA, made.webhook.id, disabled=True)
    await publication(at, "failed")
    changed = await webhook.disable(at.database, ADA, made.webhook.id, disabled=False)
    assert (changed.disabled, changed.waiting) == (False, 0)
    await webhook.change(at.database, ADA, made.webhook.id, ["published"])
    await publication(at, "failed")
    await publication(at, "success")
    await at.deliver()
    assert [each["type"] for each in at.receiver.heard] == ["publication.published"]


async def test_new_chapters_are_told_together(at: Readers) -> None:
    """Those of a window are one event."""
    await hooked(at, "chapter")
    async with at.database.connection() as connection:
        await connection.execute("INSERT INTO follow (person, series_id) VALUES ($1, $2)", ADA, at.series)
    await at.news("Chapter 1", "Chapter 2")
    await at.deliver()
    ((told),) = at.receiver.heard
    assert told["type"] == "chapter.new"
    assert [each["number"] for each in told["data"]["chapters"]] == ["1", "2"]


async def test_it_is_sent_again_with_the_same_id_and_body_until_it_is_dead(at: Readers) -> None:
    """Its row holds the next time; the last failure makes it a dead letter, from which it is sent as it was."""
    made = await hooked(at, "failed")
    failed = await publication(at, "failed")
    at.receiver.status = 500
    ahead = timedelta(0)
    for attempt in range(1, webhook.ATTEMPTS + 1):
        await at.deliver()
        assert at.receiver.calls == attempt
        assert await at.due() == []
        ahead += timedelta(days=1)
        await at.pass_time(ahead)
    assert len({headers["webhook-id"] for headers in at.receiver.headers}) == 1
    async with at.database.connection() as connection:
        (shown,) = await webhook.listed(connection, ADA)
        assert (shown.failed, shown.waiting, shown.last_error) == (1, 0, "The receiver answered 500.")
        await connection.execute("UPDATE post SET title = 'Another'")
    at.receiver.status = 200
    number = await at.value("SELECT id FROM delivery")
    await dead_letter.requeue(at.database, "op", f"d{number}")
    await at.deliver()
    assert at.receiver.heard[0]["data"]["title"] == "Dusk"
    assert at.receiver.heard[0]["data"]["publicationId"] == str(failed)
    assert len({headers["webhook-id"] for headers in at.receiver.headers}) == 1
    assert made.webhook.last_sent_at is None


async def test_one_that_is_gone_is_not_called_again(at: Readers) -> None:
    """410 disables it at once."""
    made = await hooked(at)
    at.receiver.status = 410
    await publication(at, "failed")
    await at.deliver()
    await publication(at, "failed")
    async with at.database.connection() as connection:
        shown = await webhook.show(connection, ADA, made.webhook.id)
    assert (shown.disabled, shown.failed, shown.waiting) == (True, 1, 0)


async def test_a_member_does_not_reach_into_the_machine(at: Readers) -> None:
    """Neither when it is added nor, should its name lead elsewhere later, when it is called."""
    inside = SecretStr(f"http://127.0.0.1:{at.receiver.port}/hook")
    with pytest.raises(Problem):
        await webhook.add(at.database, at.vault, Wire(allowed=outside), ADA, inside)
    await hooked(at, "failed", role="member")
    await publication(at, "failed")
    await at.deliver()
    assert at.receiver.calls == 0
    assert await at.value("SELECT error FROM delivery") is not None


async def test_trying_it_out_says_what_went_wrong(at: Readers) -> None:
    """The address never comes out, not even there."""
    made = await hooked(at)
    await webhook.try_out(at.database, at.vault, Wire(), ADA, made.webhook.id)
    assert at.receiver.heard[0]["type"] == "test"
    at.receiver.status = 302
    with pytest.raises(Problem, match="answered 302") as refused:
        await webhook.try_out(at.database, at.vault, Wire(), ADA, made.webhook.id)
    assert "very-secret" not in str(refused.value)
    await webhook.remove(at.database, ADA, made.webhook.id)
    with pytest.raises(Problem, match="no such webhook"):
        await webhook.try_out(at.database, at.vault, Wire(), ADA, made.webhook.id)


@pytest.mark.parametrize(
    "url", ["ftp://a.example", "https://", "garbage", "http://a b", "http://[::1", "https://x/\ty"]
)
async def test_what_is_no_address_is_refused(at: Readers, url: str) -> None:
    """With one sentence."""
    with pytest.raises(Problem) as refused:
        await webhook.add(at.database, at.vault, Wire(), ADA, SecretStr(url))
    assert refused.value.code == "webhook.bad_address"


async def test_a_person_is_told_of_a_failed_post(at: Readers) -> None:
    """Whoever has a target hears of failed and unknown posts and of accounts that ended, not of every success."""
    await at.reader()
    for end in ("success", "failed", "unknown"):
        await publication(at, end)
    await at.deliver()
    assert [each["title"].partition(":")[0].partition("?")[0] for each in at.receiver.heard] == [
        "Not published",
        "Is this out",
    ]
    assert "The platform said so." in at.receiver.bodies[0]


async def test_killed_at_each_step_it_is_sent_with_the_same_id(at: Readers) -> None:
    """With kill -9 before and after each commit and each send it is never lost, and its receiver can tell."""
    await hooked(at, "failed")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.work.dies_telling", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin
    assert process.stdout
    fatal, killed = 1, True
    while killed:
        before = len(at.receiver.headers)
        await publication(at, "failed")
        (due,) = await at.due()
        order: dict[str, Any] = {"do": "deliver", "about": str(due), "fatal": fatal, "url": at.database.url}
        order |= {"home": str(at.settings.home), "port": at.receiver.port}
        process.stdin.write(json.dumps(order).encode() + b"\n")
        killed = json.loads(await asyncio.wait_for(process.stdout.readline(), 60))["killed"]
        await at.value(  # whoever died has had time enough
            "UPDATE delivery SET lease_until = imprint_now() WHERE id = $1 AND lease_until IS NOT NULL", due
        )
        await at.notifier.deliver(Job("deliver", str(due)))
        heard = [headers["webhook-id"] for headers in at.receiver.headers[before:]]
        assert 1 <= len(heard) <= 2
        assert len(set(heard)) == 1
        assert await at.value("SELECT outcome FROM delivery WHERE id = $1", due) == "sent"
        fatal += 1
    assert fatal > 7
    process.kill()
    await process.wait()


async def test_no_other_target_is_taken_for_a_webhook(at: Readers) -> None:
    """Nor the other way round."""
    target = await at.reader()
    made = await hooked(at)
    async with at.database.connection() as connection:
        assert [each.id for each in await webhook.listed(connection, ADA)] == [made.webhook.id]
        assert [each.id for each in await targets.listed(connection, ADA)] == [target]
