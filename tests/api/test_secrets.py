"""Secrets: changed in any way they open nothing, and what was given to us in confidence is never seen again."""

import asyncio
import os
import random
import re
import string
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import httpx2
import pytest

from imprint.api.openapi import operations
from imprint.blobs.signing import BadUpload, LocalUploads
from imprint.platforms.registry import PLATFORMS
from imprint.store.backup import back_up
from imprint.store.binaries import binary
from imprint.store.wall import DOOR
from imprint.work import api_key, session
from imprint.work.stores import open_stores
from imprint.work.upload import TIME
from tests.api.estate import Estate, settle
from tests.api.test_walls import document
from tests.api.visitor import PASSWORD, Town, Visitor

# A hundred thousand in the long run; see CONTRIBUTING.md.
MUTATIONS = int(os.environ.get("WALLS_MUTATIONS", "3000"))
TABLES = "SELECT oid::regclass FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
LETTERS = string.ascii_letters + string.digits + "-_.=+/%~ "


def mutated(genuine: list[str], count: int, seed: int) -> Iterator[str]:
    """Change secrets in every way: letters, order, length, case, coding, halves of two."""
    chance = random.Random(seed)  # noqa: S311 - what is tried, not what is secret
    known = set(genuine)
    while count:
        one, other = chance.choice(genuine), chance.choice(genuine)
        place = chance.randrange(len(one))
        changed = chance.choice(
            (
                one[:place] + chance.choice(LETTERS) + one[place + 1 :],
                one[:place] + one[place + 1 :],
                one[:place] + chance.choice(LETTERS) + one[place:],
                one[:place] + one[place : place + 2][::-1] + one[place + 2 :],
                one[:place],
                one + one[place:],
                one[:place] + one[place:].swapcase(),
                one[:place] + f"%{ord(one[place]):02X}" + one[place + 1 :],
                one[:place] + chr(ord(one[place]) ^ (1 << chance.randrange(7))) + one[place + 1 :],
                one[:place] + chr(0xFEE0 + ord(one[place])) + one[place + 1 :],
                one[:place] + other[place:],
                one.strip("=") + "=" * chance.randrange(1, 4),
                " " + one,
                one + "\x00",
                "".join(chance.sample(one, len(one))),
            )
        )
        if changed not in known:
            count -= 1
            yield changed


async def test_no_changed_secret_is_accepted(at: Town) -> None:
    """Upload addresses, cookies and keys, each changed thousands of times: not one opens anything."""
    ada = await at.first()
    uploads = open_stores(at.settings).uploads
    assert isinstance(uploads, LocalUploads)
    given = {"filename": "a.png", "contentType": "image/png", "fileSize": 8}
    urls = [(await ada.post("/api/uploads/presigned-url", given, 201))["uploadUrl"] for _ in range(3)]
    tokens = [urlsplit(url).path.rpartition("/")[2] for url in urls]
    keys = [
        (await ada.post("/api/api-keys", {"label": "k", "scopes": ["posts:read"]}, 201))["secret"] for _ in range(3)
    ]
    cookies = [ada.http.cookies["imprint_session"]]
    for _ in range(2):
        more = await at.visitor()
        await more.post("/api/session", {"name": "ada", "password": PASSWORD}, 201)
        cookies.append(more.http.cookies["imprint_session"])
    accepted: list[str] = []
    async with at.database.behind(DOOR).connection() as door:
        now = (await TIME.one(door)).now
        assert all(uploads.grant("PUT", urlsplit(url).path, now) for url in urls)
        assert all([await session.caller(door, each) for each in cookies])
        assert all([await api_key.caller(door, each) for each in keys])
        for changed in mutated(tokens, MUTATIONS // 3, 1):
            try:
                uploads.grant("PUT", f"/api/uploads/bytes/{changed}", now)
            except BadUpload:
                continue
            accepted.append(changed)
        accepted += [each for each in mutated(cookies, MUTATIONS // 3, 2) if await session.caller(door, each)]
        accepted += [each for each in mutated(keys, MUTATIONS // 3, 3) if await api_key.caller(door, each)]
    assert accepted == []


async def test_changed_secrets_are_refused_over_http(at: Town) -> None:
    """The same over the wire, where a header or a path may be read otherwise than it was written."""
    ada = await at.first()
    key = (await ada.post("/api/api-keys", {"label": "k", "scopes": ["posts:read"]}, 201))["secret"]
    given = {"filename": "a.png", "contentType": "image/png", "fileSize": 8}
    upload = urlsplit((await ada.post("/api/uploads/presigned-url", given, 201))["uploadUrl"]).path
    async with httpx2.AsyncClient(base_url=at.url, trust_env=False) as http:
        for changed in mutated([ada.http.cookies["imprint_session"]], 60, 4):
            if changed.isascii() and changed.isprintable() and changed == changed.strip(" ") and changed:
                answer = await http.get("/api/session", headers={"Cookie": f"imprint_session={changed}"})
                assert answer.status_code == 401, changed
        for changed in mutated([key], 60, 5):
            if changed.isascii() and changed.isprintable() and changed == changed.strip(" "):
                answer = await http.get("/api/session", headers={"Authorization": f"Bearer {changed}"})
                assert answer.status_code == 401, changed
        for changed in mutated([upload.rpartition("/")[2]], 60, 6):
            if changed.isprintable():
                answer = await http.put(f"/api/uploads/bytes/{changed}", content=b"12345678")
                assert answer.status_code in {403, 404, 405}, changed


# Every field of a body that holds a secret, and what puts a canary there below. A new one fails the test.
SECRET = re.compile(r"password|secret|token|^code$|^old$|^new$|answers|returnedTo")
FIELDS = {
    "SignIn.password",
    "First.password",
    "First.code",
    "Accept.password",
    "Accept.code",
    "NewPassword.old",
    "NewPassword.new",
    "Renewed.password",
    "Connect.answers",
    "Reconnect.answers",
    "Returned.returnedTo",
    "NewTarget.url",
    "NewWebhook.url",
}


def secret_fields(made: dict[str, Any]) -> set[str]:
    """Find every field of a body that is marked as secret, or is called like one."""
    schemas, found = made["components"]["schemas"], set()
    for _, _, operation in operations(made):
        told = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        for name in re.findall(r"schemas/(\w+)", str(told)):
            for field, part in schemas[name].get("properties", {}).items():
                if SECRET.search(field) or "writeOnly" in str(part):
                    found.add(f"{name}.{field}")
    return found


def canary() -> str:
    """Make a secret that is known again wherever it turns up."""
    return f"C4n4ry{uuid4().hex}"


def unpacked(file: Path) -> str:
    """Read a backup as the statements that it is made of."""
    written = subprocess.run([binary("pg_restore"), "--file=-", file], check=True, capture_output=True)
    return written.stdout.decode()


async def test_what_was_given_in_confidence_is_never_seen_again(at: Town, capfd: pytest.CaptureFixture[str]) -> None:
    """Canaries in every secret field, through what works and what fails: in no answer, log, metric, row or backup."""
    made = await document(at)
    assert secret_fields(made) == FIELDS
    ada = await at.first()
    estate = await settle(at, ada)
    told, secrets = await _confide(ada)
    told += await _everything(made, estate, ada)
    told.append((await ada.http.get("/metrics")).text)
    async with at.database.connection() as connection:
        for table in await connection.fetch(TABLES):
            told += [row[0] for row in await connection.fetch(f"SELECT t::text FROM {table[0]} t")]
    file = at.settings.home / "all.backup"
    await back_up(at.database.url, file)
    told.append(await asyncio.to_thread(unpacked, file))
    captured = capfd.readouterr()
    told += [captured.out, captured.err]
    assert len(secrets) > 20
    # Bytes are written as hexadecimal digits in rows and backups.
    assert [each for each in secrets if any(each in one or each.encode().hex() in one for one in told)] == []


async def _confide(ada: Visitor) -> tuple[list[str], list[str]]:
    """Put canaries everywhere; give what was answered, and the secrets, also those that we were given once."""
    told: list[str] = []
    secrets = [PASSWORD, ada.http.cookies["imprint_session"]]

    def new(form: str = "{}") -> str:
        secrets.append(canary())
        return form.format(secrets[-1])

    async def send(path: str, data: object) -> httpx2.Response:
        answer = await ada.call("POST", path, data, **{"Idempotency-Key": uuid4().hex})  # answers are kept
        told.append(answer.text)
        return answer

    async def shown_once(path: str, data: object, name: str) -> None:
        made = await ada.post(path, data, 201, **{"Idempotency-Key": uuid4().hex})
        secrets.append(made[name])

    nobody = new()
    await send("/api/session", {"name": "ada", "password": new()})
    await send("/api/session", {"name": nobody[:20], "password": [new()]})
    secrets.remove(nobody)  # a name is no secret
    await send("/api/people/first", {"code": new(), "name": "x", "password": new()})
    await send("/api/invitations/accept", {"code": new(), "name": "x", "password": new()})
    await send("/api/session/password", {"old": new(), "new": new()})
    await send("/api/session/password", {"old": PASSWORD, "new": new(), "newer": new()})
    await send("/api/people/operator/password", {"password": {"x": new()}})
    await send("/api/accounts/finish", {"returnedTo": new("https://imprint.example/accounts/return?state=s&code={}")})
    for name, platform in PLATFORMS.items():
        answers = {ask.name: new() if ask.secret else ask.default or "http://127.0.0.1:9/x" for ask in platform.asks}
        await send("/api/accounts", {"platform": name, "label": name, "answers": answers})
        await send("/api/accounts", {"platform": name, "answers": {**answers, new(): new()}})
        await send("/api/accounts", {"platform": name, "answers": {each: [new()] for each in answers}})
    shared = b64encode(canary().encode()[:32]).decode()
    secrets.append(shared)
    hook_answers = {"url": new("http://127.0.0.1:9/{}"), "secret": f"whsec_{shared}"}
    assert (
        await send("/api/accounts", {"platform": "webhook", "label": "w", "answers": hook_answers})
    ).status_code == 201
    connected = (await ada.get("/api/accounts"))["items"]
    for account in connected:
        await send(f"/api/accounts/{account['id']}/reconnect", {"answers": {"secret": new(), "password": new()}})
    for url in (new("json://ada:{}@127.0.0.1:9/inbox"), new("{}"), new("ntfys://{}")):
        made = await send("/api/targets", {"url": url, "label": uuid4().hex})
        if made.status_code == 201:
            await send(f"/api/targets/{made.json()['id']}/test", None)
    hook = await ada.post("/api/webhooks", {"url": new("http://127.0.0.1:9/{}"), "events": ["failed"]}, 201)
    secrets.append(hook["secret"])
    await send(f"/api/webhooks/{hook['id']}/test", None)
    await send("/api/webhooks", {"url": new("ftp://{}"), "events": ["failed"]})
    await shown_once("/api/api-keys", {"label": "k", "scopes": ["posts:read"]}, "secret")
    await shown_once("/api/invitations", {"label": "i"}, "code")
    await shown_once("/api/webhooks", {"url": new("http://127.0.0.1:9/{}"), "label": "once"}, "secret")
    upload = {"filename": "a.png", "contentType": "image/png", "fileSize": 8}
    secrets.append((await ada.post("/api/uploads/presigned-url", upload, 201))["uploadUrl"].rpartition(".")[2])
    return told, [each for each in secrets if each]


async def _everything(made: dict[str, Any], estate: Estate, who: Visitor) -> list[str]:
    reads = [each for each in estate.calls(made) if each.method == "GET" and each.route != "/api/events"]
    return [(await who.call(each.method, each.path)).text for each in reads]
