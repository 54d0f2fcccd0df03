"""The simulated DeviantArt: as strict as the real one is said to be."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from imprint.platforms.deviantart_sign_in import DeviantArtLogin
from imprint.sandbox.deviantart_tokens import CLIENT_ID, CLIENT_SECRET
from imprint.sandbox.server import Sandbox, sandbox

API = "/api/v1/oauth2"
FILE = {"file": ("a.png", b"\x89PNG", "image/png")}


@pytest.fixture
async def running() -> AsyncIterator[Sandbox]:
    """Give a sandbox."""
    async with sandbox() as one:
        yield one


@pytest.fixture
async def client(running: Sandbox) -> AsyncIterator[httpx2.AsyncClient]:
    """Give a client that does everything right."""
    login = DeviantArtLogin.model_validate_json(running.login("deviantart", "artist"))
    headers = {
        "Authorization": f"Bearer {login.access_token.get_secret_value()}",
        "dA-minor-version": "20240701",
        "Accept-Encoding": "gzip",
    }
    async with httpx2.AsyncClient(base_url=login.base_url, headers=headers, trust_env=False) as one:
        yield one


async def test_who_does_not_say_who_it_is_is_turned_away(client: httpx2.AsyncClient) -> None:
    """A User-Agent, compression and the version are all wanted; answers are compressed."""
    answer = await client.get(f"{API}/placebo")
    assert (answer.json(), answer.headers["content-encoding"]) == ({"status": "success"}, "gzip")
    for header, value in (("User-Agent", ""), ("Accept-Encoding", "identity")):
        assert (await client.get(f"{API}/placebo", headers={header: value})).status_code == 403
    wrong = await client.get(f"{API}/placebo", headers={"dA-minor-version": "20150101"})
    assert (wrong.status_code, wrong.json()["error"]) == (404, "version_error")


async def test_tokens_are_looked_at(client: httpx2.AsyncClient) -> None:
    """No token and a wrong one are told apart, as they were recorded."""
    none = await client.get(f"{API}/placebo", headers={"Authorization": ""})
    assert (none.status_code, none.json()["error"]) == (401, "invalid_request")
    wrong = await client.get(f"{API}/placebo", headers={"Authorization": "Bearer x"})
    assert (wrong.status_code, wrong.json()["error"]) == (401, "invalid_token")


async def test_removed_endpoints_are_gone(client: httpx2.AsyncClient) -> None:
    """Everything else of the stash is not found, and neither is a GET of what wants a POST."""
    for method, path in (("GET", "stash/space"), ("GET", "stash/submit"), ("POST", "stash/delete"), ("GET", "x")):
        answer = await client.request(method, f"{API}/{path}")
        assert (answer.status_code, answer.json()["error_description"]) == (404, "Api endpoint not found.")


async def test_a_part_without_a_filename_breaks_it(client: httpx2.AsyncClient) -> None:
    """The real one answers 500 then; so does this one, and nothing is stored."""
    body = b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\nPNG\r\n--x--\r\n'
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = await client.post(f"{API}/stash/submit", content=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (500, "server_error")
    assert (await client.post(f"{API}/stash/submit", data={"title": "x"})).status_code == 500


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({}, {"itemid", "is_mature"}),
        ({"itemid": "1"}, {"is_mature"}),
        ({"itemid": "1", "is_mature": "maybe"}, {"is_mature"}),
        ({"itemid": "1", "is_mature": "1"}, {"mature_level"}),
        ({"itemid": "1", "is_mature": "0", "sharing": "x"}, {"sharing"}),
        ({"itemid": "1", "is_mature": "0", "galleryids[]": "x"}, {"galleryids"}),
        ({"itemid": "1", "is_mature": "0", "mature_classification[]": "x"}, {"mature_classification"}),
    ],
)
async def test_fields_are_looked_at(client: httpx2.AsyncClient, fields: dict[str, str], wrong: set[str]) -> None:
    """Each field that is missing or wrong is named."""
    answer = await client.post(f"{API}/stash/publish", data=fields)
    assert answer.status_code == 400
    assert set(answer.json()["error_details"]) == wrong


async def test_one_item_is_one_deviation(client: httpx2.AsyncClient, running: Sandbox) -> None:
    """Unknown items, bad resolutions and second publishes have their codes; an item of somebody else is unknown."""
    item = (await client.post(f"{API}/stash/submit", data={"title": "x"}, files=FILE)).json()["itemid"]
    assert item > 2**53

    async def code(**more: str) -> int | None:
        fields = {"itemid": str(item), "is_mature": "false", **more}
        answer: dict[str, Any] = (await client.post(f"{API}/stash/publish", data=fields)).json()
        return answer.get("error_code")

    assert await code(itemid="5") == 7
    assert await code(display_resolution="9") == 5
    assert await code(**{"license_options[modify]": "perhaps"}) == 4
    other = DeviantArtLogin.model_validate_json(running.login("deviantart", "other"))
    mine = client.headers["Authorization"]
    client.headers["Authorization"] = f"Bearer {other.access_token.get_secret_value()}"
    assert await code() == 7
    client.headers["Authorization"] = mine
    assert await code() is None
    assert await code() == 9
    assert len(running.log.effects()) == 1


async def test_looks(client: httpx2.AsyncClient) -> None:
    """The gallery is newest first in pages of 24 at most; a deviation and its metadata can be asked for."""
    for number in range(30):
        told = (await client.post(f"{API}/stash/submit", data={"title": f"n{number}"}, files=FILE)).json()
        fields = {"itemid": str(told["itemid"]), "is_mature": "0", "tags[]": ["a", "B"]}
        known = (await client.post(f"{API}/stash/publish", data=fields)).json()["deviationid"]
    page = (await client.get(f"{API}/gallery/all", params={"limit": 24})).json()
    assert [each["title"] for each in page["results"]] == [f"n{number}" for number in range(29, 5, -1)]
    assert (page["has_more"], page["next_offset"]) == (True, 24)
    assert isinstance(page["results"][0]["published_time"], str)
    last = (await client.get(f"{API}/gallery/all", params={"limit": 24, "offset": 24})).json()
    assert (len(last["results"]), last["has_more"]) == (6, False)
    assert (await client.get(f"{API}/gallery/all", params={"limit": 25})).status_code == 400
    assert (await client.get(f"{API}/deviation/{known}")).json()["title"] == "n29"
    assert (await client.get(f"{API}/deviation/{'0' * 36}")).status_code == 404
    asked = {"deviationids[]": known, "ext_submission": "1"}
    (told,) = (await client.get(f"{API}/deviation/metadata", params=asked)).json()["metadata"]
    assert [each["tag_name"] for each in told["tags"]] == ["a", "b"]
    assert told["submission"]["submitted_with"]["app"] == "Imprint"
    assert (await client.get(f"{API}/deviation/metadata")).status_code == 400


async def test_grants(client: httpx2.AsyncClient) -> None:
    """Basic and form credentials both work; wrong ones, unknown kinds and bad requests are turned away."""
    basic = httpx2.BasicAuth(CLIENT_ID, CLIENT_SECRET)
    answer = await client.post("/oauth2/token", data={"grant_type": "client_credentials"}, auth=basic)
    assert answer.json()["status"] == "success"
    app = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}
    for fields, error in (
        ({"grant_type": "client_credentials", "client_id": CLIENT_ID, "client_secret": "no"}, "invalid_client"),
        ({"grant_type": "password", **app}, "unsupported_grant_type"),
        ({"grant_type": "refresh_token", "refresh_token": "no", **app}, "invalid_request"),
        ({"grant_type": "authorization_code", "code": "no", **app}, "invalid_request"),
    ):
        assert (await client.post("/oauth2/token", data=fields)).json()["error"] == error
    good = {
        "response_type": "code",
        "client_id": CLIENT_ID,
        "redirect_uri": "http://x/y",
        "state": "s",
        "code_challenge": "c" * 43,
        "code_challenge_method": "S256",
        "as": "artist",
    }
    assert (await client.get("/oauth2/authorize", params=good)).status_code == 302
    for missing in ("response_type", "client_id", "redirect_uri", "state", "code_challenge", "code_challenge_method"):
        query = {name: value for name, value in good.items() if name != missing}
        assert (await client.get("/oauth2/authorize", params=query)).status_code == 400
