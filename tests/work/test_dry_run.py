"""A dry run shows what is really sent, word for word, and sends and changes nothing."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus
from uuid import UUID

import asyncpg
import pytest

from imprint.engine.queue import Job
from imprint.engine.wire import Wire
from imprint.images.fit import Limits
from imprint.platforms.deviantart import PENDING_ITEM
from imprint.platforms.deviantart_sign_in import DeviantArtLogin
from imprint.platforms.login import Login
from imprint.platforms.registry import PLATFORMS
from imprint.platforms.request import HIDDEN
from imprint.platforms.work import Work
from imprint.problem import Problem
from imprint.sandbox.server import Sandbox, sandbox
from imprint.store.db import Database
from imprint.work import account as accounts
from imprint.work.attach import attach
from imprint.work.desk import Desk
from imprint.work.dry_run import UNPLANNED, Rehearsal, dry_run
from imprint.work.journal import Journal
from imprint.work.post import create, ready
from imprint.work.publish import Publisher
from imprint.work.rendition import rendition
from imprint.work.schedule import Target, schedule
from imprint.work.snapshot import look
from imprint.work.vault import Vault
from tests.images.pictures import noise
from tests.work.posts import AT_ONCE, OWNER, Author
from tests.work.scene import PNG, Scene, cut

FIELDS = {
    "title": "A lighthouse & its keeper",
    "description": "Ink, „early“ light.",
    "tags": ["harbour", "Ink Drawing"],
    "isMature": True,
    "matureLevel": "moderate",
    "matureClassification": ["gore"],
    "overrides": {"deviantart": {"title": "Lighthouse", "feature": False}},
}


@dataclass
class Place:
    """A person with content and accounts at a sandbox."""

    scene: Scene
    sandbox: Sandbox
    vault: Vault
    author: Author

    @property
    def database(self) -> Database:
        """Give the database."""
        return self.scene.database

    async def connect(self, on: str, **changes: object) -> UUID:
        """Connect an account to the sandbox."""
        account = await self.author.account(on, on)
        login: Login = PLATFORMS[on].login_type.model_validate_json(self.sandbox.login(on, "artist"))
        async with self.database.transaction(OWNER, "test") as connection:
            await self.vault.put(connection, account, login.model_copy(update=changes))
        return account

    async def draft(self, *files: bytes, **fields: Any) -> UUID:
        """Write a post with real files."""
        post = await create(self.database, OWNER, {**FIELDS, **fields})
        for data in files or (PNG,):
            kind = "image/png" if data.startswith(b"\x89PNG") else "image/webp"
            await attach(self.database, OWNER, post, await self.scene.uploaded(data, kind))
        await ready(self.database, OWNER, post)
        return post

    async def planned(self, post: UUID, *on: UUID) -> None:
        """Plan a post for now."""
        targets = [Target(account) for account in on]
        await schedule(self.database, AT_ONCE, OWNER, post, datetime.now(UTC), targets=targets)

    async def run(self, post: UUID, *only: UUID) -> list[Rehearsal]:
        """Rehearse."""
        return await dry_run(self.database, self.scene.stores, self.vault, OWNER, post, only=only)

    async def really_sent(self, publication: UUID, account: UUID, made_at: datetime) -> list[dict[str, Any]]:
        """Upload and publish as a worker does, and give what the sandbox has seen."""
        async with self.database.connection() as connection:
            opened = await self.vault.get(connection, account)
            snapshot = await look(connection, publication, made_at, None)
        work: Work = snapshot.work(lambda _: lambda: cut(PNG))
        platform, http = PLATFORMS[opened.kept.platform], Wire().within(20)
        for file in work.files:
            work = work.with_upload(await platform.upload(http, opened.login, work, file, lambda _: None))
        await platform.publish(http, opened.login, work)
        return [dict(each.data) for each in self.sandbox.log.entries("request", platform.name)]


@pytest.fixture
async def place(at: Scene, tmp_path: Path) -> AsyncIterator[Place]:
    """Give a place."""
    async with sandbox() as running:
        yield Place(at, running, Vault(tmp_path / "keys"), Author(at.database))


async def rows(database: Database) -> str:
    """Give everything that is in the tables, to be compared."""
    async with database.connection() as connection:
        names = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename")
        told = [await connection.fetch(f'SELECT t::text FROM "{name[0]}" t ORDER BY 1') for name in names]
    return json.dumps([[row[0] for row in table] for table in told])


async def test_what_is_shown_is_what_is_sent(place: Place) -> None:
    """For DeviantArt: method, address, headers and every byte of both bodies, but for the id that the upload gives."""
    account = await place.connect("deviantart")
    post = await place.draft()
    await place.planned(post, account)
    before = await rows(place.database)
    (seen,) = await place.run(post)
    assert (seen.problems, seen.note) == ((), None)
    assert len(place.sandbox.log) == 0
    assert await rows(place.database) == before
    upload, publish = seen.requests
    assert seen.publication
    arrived = await place.really_sent(seen.publication.id, account, datetime.now(UTC))
    assert upload.sha256 == arrived[0]["digest"]
    assert publish.sha256 is None
    item = str(place.sandbox.log.entries("upload")[0].data["item"])
    fields = [(name, item if value == PENDING_ITEM else value) for name, value in publish.shown["body"]]
    body = "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in fields).encode()
    assert sha256(body).hexdigest() == arrived[1]["digest"]
    assert ("feature", "0") in fields
    published = place.sandbox.log.effects()[0].data
    assert [list(pair) for pair in fields] == [list(pair) for pair in published["fields"]]  # type: ignore[attr-defined]
    assert published["title"] == "Lighthouse"
    for shape, real in zip(seen.requests, arrived, strict=True):
        assert shape.shown["method"] == real["method"]
        assert shape.shown["url"].endswith(real["path"])
        shown = {name.lower(): value for name, value in shape.shown["headers"].items()}
        assert shown.pop("authorization") == HIDDEN
        if shape is publish:
            assert shown.pop("content-length") == "(known when it is sent)"
        assert shown.items() <= real["headers"].items()


@pytest.mark.parametrize("kind", ["original", "rendition"])
async def test_the_engine_sends_what_was_shown(place: Place, kind: str) -> None:
    """A worker that publishes the post uploads the very bytes of the dry run, a rendition too."""
    account = await place.connect("deviantart")
    post = await place.draft(PNG if kind == "original" else noise(60, 40).webpsave_buffer())
    await place.planned(post, account)
    if kind == "rendition":
        limits = PLATFORMS["deviantart"].limits
        content = await place.author.read("SELECT content_id FROM post_file WHERE post_id = $1", post)
        await rendition(place.scene.deriver, content, Limits(limits.types, limits.bytes, limits.edge, limits.pixels))
    (seen,) = await place.run(post)
    assert seen.publication
    settings, scene = place.scene.settings, place.scene
    desk = Desk(place.database, place.vault, Wire(), scene.deriver, Journal.of(settings.home), settings)
    await Publisher(desk).publish(Job("publish", str(seen.publication.id)))
    posted = [dict(each.data) for each in place.sandbox.log.entries("request") if each.data["method"] == "POST"]
    assert [str(each["path"]).rpartition("/")[2] for each in posted] == ["submit", "publish"]
    assert posted[0]["digest"] == seen.requests[0].sha256
    (published,) = place.sandbox.log.effects()
    shown = [
        [name, published.data["key"] if value == PENDING_ITEM else value]
        for name, value in seen.requests[1].shown["body"]
    ]
    assert shown == [list(pair) for pair in published.data["fields"]]  # type: ignore[attr-defined]
    (after,) = await place.run(post)
    assert (after.requests, after.note) == ((), "It is out already; nothing would be sent.")


async def test_a_webhook_too(place: Place) -> None:
    """The message is known to the last byte; only its time and its signature are made when it is sent."""
    account = await place.connect("webhook")
    post = await place.draft()
    await place.planned(post, account)
    (seen,) = await place.run(post)
    (only,) = seen.requests
    assert only.shown["headers"]["webhook-signature"] == "(made when it is sent)"
    assert only.shown["url"] == f"{place.sandbox.url}/{HIDDEN}"
    assert len(place.sandbox.log) == 0
    made_at = datetime.fromisoformat(json.loads(only.shown["body"])["timestamp"])
    assert seen.publication
    (arrived,) = await place.really_sent(seen.publication.id, account, made_at)
    assert only.sha256 == arrived["digest"]


async def test_no_secret_is_shown(place: Place) -> None:
    """Neither as text nor as data."""
    both = [await place.connect("deviantart"), await place.connect("webhook")]
    post = await place.draft()
    seen = await place.run(post, *both)
    secrets: list[str] = []
    async with place.database.connection() as connection:
        for account in both:
            login = (await place.vault.get(connection, account)).login
            secrets += [
                value.get_secret_value()
                for name in type(login).model_fields
                if hasattr(value := getattr(login, name), "get_secret_value")
            ]
    assert len(secrets) == 5
    told = repr(seen) + json.dumps([each.as_data() for each in seen], default=str)
    assert not any(secret in told for secret in secrets)


async def test_a_post_that_is_not_planned(place: Place) -> None:
    """Named accounts, or the default one; each file by itself where a post goes one file at a time."""
    hook = await place.connect("webhook")
    post = await place.draft(PNG, noise(9, 9).pngsave_buffer(), uploadMode="multiple")
    with pytest.raises(Problem) as told:
        await place.run(post)
    assert told.value.code == "account.no_default"
    seen = await place.run(post, hook)
    assert [json.loads(each.requests[0].shown["body"])["data"]["files"][0]["size"] for each in seen] == [
        len(PNG),
        len(noise(9, 9).pngsave_buffer()),
    ]
    assert {each.requests[0].shown["headers"]["webhook-id"] for each in seen} == {UNPLANNED}
    assert {each.note for each in seen} == {"It is not planned there yet."}
    await place.author.read("UPDATE account SET is_default = true WHERE id = $1 RETURNING true", hook)
    assert len(await place.run(post)) == 2
    art = await place.connect("deviantart")
    await place.planned(post, hook)
    seen = await place.run(post, hook, art)
    assert [(each.account.platform, each.publication is not None) for each in seen] == [
        ("webhook", True),
        ("webhook", True),
        ("deviantart", False),
        ("deviantart", False),
    ]
    assert len(await place.run(post)) == 2


async def test_renditions_are_told_and_not_made(place: Place) -> None:
    """What does not fit goes as a rendition: one that is there is shown as it is, another one is not made for this."""
    webp: bytes = noise(60, 40).webpsave_buffer()
    account = await place.connect("deviantart")
    post = await place.draft(webp)
    (seen,) = await place.run(post, account)
    assert seen.problems == ()
    (file,) = seen.files
    assert (file.made, [each.code for each in file.why]) == (False, ["fit.type"])
    assert [each.sha256 for each in seen.requests] == [None, None]
    assert seen.requests[0].shown["headers"]["Content-Length"] == "(known when the rendition is made)"
    part, told = seen.requests[0].shown["body"][-1]
    assert (part, set(told)) == ("file", {"file", "rendition"})
    assert await place.author.read("SELECT count(*) FROM derivation WHERE NOT wanted") == 0
    content = await place.author.read("SELECT content_id FROM post_file WHERE post_id = $1", post)
    limits = PLATFORMS["deviantart"].limits
    made = await rendition(place.scene.deriver, content, Limits(limits.types, limits.bytes, limits.edge, limits.pixels))
    (seen,) = await place.run(post, account)
    (file,) = seen.files
    assert (file.made, file.sent.sha256, file.sent.size) == (True, made.sha256, made.size)
    assert file.sent.name.endswith(made.content_type.partition("/")[2])
    assert seen.requests[0].shown["body"][-1][1]["sha256"] == made.sha256
    assert seen.requests[0].sha256


async def test_what_does_not_fit_is_named(place: Place) -> None:
    """Everything at once, not the first thing only; and a post that lacks something says so."""
    account = await place.connect("deviantart", most_bytes=50)
    post = await place.draft(title="x" * 60, tags=[f"t{i}" for i in range(40)], overrides={})
    (seen,) = await place.run(post, account)
    assert {each.code for each in seen.problems} == {"fit.long_title", "fit.many_tags"}
    assert [each.code for each in seen.files[0].why] == ["fit.large"]
    bare = await create(place.database, OWNER, {"title": "No file"})
    (seen,) = await place.run(bare, account)
    assert [each.code for each in seen.problems] == ["post.no_file"]
    options = await place.draft(overrides={"deviantart": {"nonsense": 1}})
    (seen,) = await place.run(options, account)
    assert [each.code for each in seen.problems] == ["fit.options", "deviantart.options"]
    assert seen.requests == ()


async def test_bytes_that_are_gone_and_sign_ins_that_cannot_be_opened(place: Place) -> None:
    """Each is a sentence, and the others are rehearsed all the same."""
    hook, art = await place.connect("webhook"), await place.connect("deviantart")
    post = await place.draft()
    for path in place.scene.files():
        path.write_bytes(b"something else")
    seen = await place.run(post, hook, art)
    assert [[each.code for each in one.problems] for one in seen] == [[], ["file.changed"]]
    place.vault.file.unlink()
    assert all(each.problems for each in await place.run(post, hook, art))
    bare = await place.author.account("bare", "webhook")
    (one,) = await place.run(post, bare)
    assert [each.code for each in one.problems] == ["account.not_signed_in"]


@pytest.mark.parametrize(
    ("state", "requests", "says"),
    [
        ("success", 0, "out already"),
        ("failed", 1, "another try"),
        ("unknown", 1, "Nobody knows"),
        ("uploading", 1, "way"),
    ],
)
async def test_what_a_publication_has_been_through_is_said(place: Place, state: str, requests: int, says: str) -> None:
    """What is out is not rehearsed; what failed is, as another try; what may be out with a warning."""
    account = await place.connect("webhook")
    post = await place.draft()
    await place.planned(post, account)
    lease = await place.author.claim(await place.author.publication(post))
    assert lease
    if state == "failed":
        assert await place.author.fail(lease)
    elif state != "uploading":
        assert await place.author.intend(lease)
        assert await {"success": place.author.succeed, "unknown": place.author.lose}[state](lease)
    (seen,) = await place.run(post)
    assert (len(seen.requests), says in str(seen.note)) == (requests, True)


async def test_nothing_can_be_written_even_by_mistake(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database itself refuses: what reads for a rehearsal reads in a transaction that cannot write."""
    account = await place.connect("webhook")
    post = await place.draft()

    async def scribble(connection: Any, *_: object) -> None:
        await connection.execute("UPDATE post SET title = 'changed'")

    monkeypatch.setattr(accounts, "show", scribble)
    with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
        await place.run(post, account)


def test_the_login_of_the_sandbox_has_what_is_hidden() -> None:
    """The tests above would prove nothing if there were no secrets."""
    assert {"access_token", "refresh_token", "client_secret"} <= set(DeviantArtLogin.model_fields)
