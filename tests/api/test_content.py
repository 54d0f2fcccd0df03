"""Bytes over HTTP: promised, sent to a signed address, confirmed, and downloaded whole or in part."""

import asyncio
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import httpx2

from imprint.engine.queue import Job
from imprint.images.maker import open_maker
from imprint.store.db import Database
from imprint.work.derive import Deriver, bounds
from imprint.work.stores import open_stores
from tests.api.visitor import Town, Visitor, town
from tests.work.scene import JPEG, PNG


async def asked(who: Visitor, data: bytes = PNG, **more: Any) -> dict[str, Any]:
    """Promise bytes."""
    given = {"filename": "../a light\n.png", "contentType": "image/png", "fileSize": len(data), **more}
    found: dict[str, Any] = await who.post("/api/uploads/presigned-url", given, 201)
    return found


async def sent(url: str, data: bytes, **headers: str) -> httpx2.Response:
    """Send bytes to an address, as somebody who has nothing but the address."""
    async with httpx2.AsyncClient(trust_env=False) as http:
        return await http.put(url, content=data, headers=headers)


async def uploaded(who: Visitor, data: bytes = PNG, **more: Any) -> str:
    """Upload bytes and have them confirmed."""
    promise = await asked(who, data, **more)
    assert (await sent(promise["uploadUrl"], data)).status_code == 201
    await who.post("/api/uploads/confirm", {"fileId": promise["fileId"]})
    file: str = promise["fileId"]
    return file


async def test_bytes_are_promised_sent_and_confirmed(at: Town) -> None:
    """The address leads to where the client has reached us, and works once and only as promised."""
    ada = await at.first()
    post = (await ada.post("/api/posts", {"title": "A lighthouse"}, 201))["id"]
    promise = await asked(ada, sha256=sha256(PNG).hexdigest(), postId=post, alt="A tower.")
    url, confirm = promise["uploadUrl"], {"fileId": promise["fileId"]}
    assert url.startswith(f"{at.url}/api/uploads/bytes/")
    assert "light" not in promise["storageKey"]
    assert await ada.refused("POST", "/api/uploads/confirm", confirm) == (409, "upload.missing")
    assert (await sent(url, PNG + b"x")).json()["code"] == "upload.refused"
    assert (await sent(url, PNG, **{"Content-Type": "text/html"})).json()["code"] == "upload.refused"
    assert (await sent(url + "?x=1", PNG)).json()["code"] == "upload.refused"
    crowd = await asyncio.gather(*(sent(url, PNG) for _ in range(5)))
    assert sorted(each.status_code for each in crowd) == [201, *[409] * 4]
    assert (await ada.get(f"/api/posts/{post}"))["files"][0]["confirmed"] is False
    done = await ada.post("/api/uploads/confirm", confirm)
    assert (done["status"], done["size"], done["contentType"]) == ("uploaded", len(PNG), "image/png")
    assert await ada.post("/api/uploads/confirm", confirm) == done
    (file,) = (await ada.get(f"/api/posts/{post}"))["files"]
    assert (file["confirmed"], file["name"], file["alt"]) == (True, "a light.png", "A tower.")
    assert (await ada.post(f"/api/posts/{post}/ready"))["status"] == "draft"


async def test_what_is_not_as_promised_is_refused_and_may_be_sent_again(at: Town) -> None:
    """A type that is not taken, a size that is too large, other bytes; a failed upload is done again."""
    ada = await at.first()
    path = "/api/uploads/presigned-url"
    good = {"filename": "a.png", "contentType": "image/png", "fileSize": len(PNG)}
    for bad, code in (
        ({"contentType": "text/html"}, "upload.type_not_allowed"),
        ({"fileSize": 0}, "upload.empty"),
        ({"fileSize": 10**12}, "upload.too_large"),
        ({"sha256": "x"}, "request.invalid"),
    ):
        assert await ada.refused("POST", path, {**good, **bad}) == (422, code)
    for bad in ({"postId": str(uuid4())}, {"postId": str(uuid4()), "fileId": str(uuid4())}):
        assert await ada.refused("POST", path, {**good, **bad}) == (404, "post.missing")
    assert await ada.get("/api/content/counts") == {}
    promise = await asked(ada, sha256=sha256(PNG).hexdigest())
    other = b"\x00" * len(PNG)
    assert (await sent(promise["uploadUrl"], other)).json()["code"] == "blob.wrong_hash"
    file = promise["fileId"]
    assert (await ada.get(f"/api/content/{file}"))["errorCode"] == "blob.wrong_hash"
    assert await uploaded(ada, fileId=file) == file
    assert await ada.refused("POST", path, {**good, "fileId": file}) == (409, "upload.not_open")


async def test_downloads_are_whole_or_a_part_and_never_a_page(at: Town) -> None:
    """Range and ETag hold, and a browser is told to run nothing of it."""
    ada = await at.first()
    path = f"/api/content/{await uploaded(ada)}/download"
    whole = await ada.http.get(path)
    etag = whole.headers["etag"]
    assert (whole.status_code, whole.content, whole.headers["content-type"]) == (200, PNG, "image/png")
    assert whole.headers["content-security-policy"].startswith("sandbox")
    assert whole.headers["x-content-type-options"] == "nosniff"
    assert whole.headers["content-disposition"].startswith('attachment; filename="a light.png"')
    for given, part in (("0-9", PNG[:10]), ("10-", PNG[10:]), ("-5", PNG[-5:]), ("0-99999999", PNG)):
        answer = await ada.http.get(path, headers={"Range": f"bytes={given}"})
        assert (answer.status_code, answer.content) == (206, part)
        assert answer.headers["content-range"].endswith(f"/{len(PNG)}")
    for given in ("bytes=0-1,3-4", "lines=1-2", "bytes=-", "x"):
        assert (await ada.http.get(path, headers={"Range": given})).content == PNG
    assert await ada.refused("GET", path, Range="bytes=99999999-") == (416, "content.bad_range")
    beyond = await ada.call("GET", path, Range="bytes=99999999-")
    assert beyond.headers["content-range"].startswith("bytes */")
    assert (await ada.http.get(path, headers={"Range": "bytes=0-1", "If-Range": '"other"'})).content == PNG
    for given in (etag, f'"x", W/{etag}', "*"):
        assert (await ada.http.get(path, headers={"If-None-Match": given})).status_code == 304
    assert (await ada.http.get(path, headers={"If-None-Match": '"x"'})).status_code == 200
    assert await ada.refused("GET", f"{path}?variant=thumbnail") == (404, "content.no_variant")


async def test_what_a_download_would_be_can_be_asked(at: Town) -> None:
    """HEAD says what GET would, without the bytes, as programs that download in parts want; a part is for GET alone."""
    ada = await at.first()
    path = f"/api/content/{await uploaded(ada)}/download"
    whole = await ada.http.get(path)
    for given in ({}, {"Range": "bytes=0-3"}):
        head = await ada.http.head(path, headers=given)
        assert (head.status_code, head.content) == (200, b"")
        for name in ("content-length", "etag", "accept-ranges", "content-type", "content-disposition"):
            assert head.headers[name] == whole.headers[name], name
    assert (await ada.http.head(path, headers={"If-None-Match": whole.headers["etag"]})).status_code == 304
    assert (await ada.http.head(f"/api/content/{uuid4()}/download")).status_code == 404
    assert (await (await at.visitor()).http.head(path)).status_code == 401
    assert (await ada.http.head("/api/posts/export")).headers["content-type"].startswith("text/csv")


async def test_content_is_looked_after(at: Town) -> None:
    """By state, with its history and its variants; retried, archived, deleted and taken back, one or many."""
    ada = await at.first()
    file, other = await uploaded(ada, JPEG, contentType="image/jpeg"), await uploaded(ada)
    assert await ada.get("/api/content/counts") == {"uploaded": 2}
    page = await ada.get("/api/content?status=uploaded&limit=1")
    assert [each["id"] for each in page["items"]] == [other]
    assert [each["id"] for each in (await ada.get(f"/api/content?cursor={page['next']}"))["items"]] == [file]
    async with open_maker(bounds(at.settings), 1) as maker:
        deriver = Deriver(at.database, open_stores(at.settings), maker, at.settings)
        await deriver.derive(Job("derive", file))
    shown = await ada.get(f"/api/content/{file}")
    assert (shown["status"], len(shown["moves"])) == ("processed", 3)
    assert {each["name"] for each in shown["moves"]} == {"derive", "archive", "delete"}
    assert "key" not in shown["objects"][0]
    variants = (await ada.get(f"/api/content/{file}/variants"))["items"]
    assert {each["status"] for each in variants if each["wanted"]} == {"processed"}
    small = await ada.http.get(f"/api/content/{file}/download?variant=thumbnail")
    assert (small.status_code, small.headers["content-type"]) == (200, "image/webp")
    history = (await ada.get(f"/api/content/{file}/history"))["items"]
    assert (history[0]["move"], history[0]["actor"]) == ("create", "operator")
    assert await ada.refused("POST", f"/api/content/{file}/retry") == (409, "content.no_such_move")
    assert (await ada.post(f"/api/content/{file}/derive"))["status"] == "processing"
    assert await ada.refused("DELETE", f"/api/content/{file}") == (409, "content.processing")
    assert (await ada.delete(f"/api/content/{file}?force=true", 200))["deletedAt"] is not None
    assert await ada.refused("GET", f"/api/content/{file}/download") == (404, "content.missing")
    assert (await ada.post(f"/api/content/{file}/restore"))["deletedAt"] is None
    lost = str(uuid4())
    many = {"ids": [other, lost], "status": "archived"}
    told = (await ada.post("/api/content/bulk/status", many))["outcomes"]
    assert [(each["id"], each["ok"], each["code"]) for each in told] == [
        (other, True, None),
        (lost, False, "content.missing"),
    ]
    assert (await ada.post("/api/content/retry-failed"))["outcomes"] == []


async def test_what_failed_is_retried_for_its_person_alone(at: Town) -> None:
    """One person's retry leaves what failed of another as it is."""
    ada = await at.first()
    bob = await at.invited(ada, "bob")
    files = {await uploaded(ada): ada, await uploaded(bob): bob}
    async with at.database.transaction("worker", "broken") as connection:
        for file in files:
            await connection.execute("UPDATE content SET status = 'processing' WHERE id = $1", UUID(file))
            await connection.execute(
                "UPDATE content SET status = 'failed', error_code = 'image.broken' WHERE id = $1", UUID(file)
            )
    (outcome,) = (await bob.post("/api/content/retry-failed"))["outcomes"]
    assert outcome["ok"]
    assert files[outcome["id"]] is bob
    assert await ada.get("/api/content/counts") == {"failed": 1}


async def test_behind_a_proxy_addresses_lead_to_the_public_one(
    database: Database, database_url: str, home: Path
) -> None:
    """With a public address that is where bytes are sent to, whatever Host a client names."""
    async with town(database, database_url, home, IMPRINT_PUBLIC_URL="https://imprint.example/") as at:
        ada = await at.first()
        url = urlsplit((await asked(ada))["uploadUrl"])
        assert (url.scheme, url.netloc) == ("https", "imprint.example")
        assert (await sent(at.url + url.path, PNG)).status_code == 201
        ours = {"Origin": "https://imprint.example"}
        assert (await ada.call("POST", "/api/posts", {"title": "Ours"}, **ours)).status_code == 201
