"""Coming in: the first account, signing in and out, invitations, keys; and everybody who is kept out."""

import asyncio
from datetime import timedelta

import pytest

from imprint.store.db import Database
from imprint.work import sign_in_limit
from imprint.work.sign_in_limit import MOST_BY_NAME_AND_ADDRESS, MOST_FROM_ADDRESS
from tests.api.visitor import PASSWORD, Town
from tests.work.posts import Author

NAME = {"name": "ada", "password": PASSWORD}


async def test_the_first_account_needs_the_code_and_there_is_one(at: Town) -> None:
    """A wrong code, an old one, a weak password and a second try make nobody; of a crowd one comes in."""
    who = await at.visitor()
    old = await at.code()
    code = await at.code()
    for bad in (old, "", "x" * 100, code[:-1]):
        assert await who.refused("POST", "/api/people/first", {"code": bad, **NAME}) == (403, "first.bad_code")
    weak = {"code": code, "name": "ada", "password": "short"}
    assert await who.refused("POST", "/api/people/first", weak) == (422, "person.weak_password")
    typed = code.lower().replace("-", " ")
    crowd = await asyncio.gather(
        *(who.call("POST", "/api/people/first", {"code": typed, **NAME, "name": f"ada {n}"}) for n in range(8))
    )
    assert sorted(each.status_code for each in crowd) == [201, *[409] * 7]
    made = next(each for each in crowd if each.status_code == 201).json()
    assert (made["personId"], made["role"]) == ("operator", "administrator")
    assert await who.refused("POST", "/api/people/first", {"code": code, **NAME}) == (409, "first.done")


async def test_what_the_command_line_made_belongs_to_the_first_person(at: Town) -> None:
    """The operator's posts are the first administrator's."""
    post = await Author(at.database, "operator").review()
    ada = await at.first()
    assert (await ada.get(f"/api/posts/{post}"))["status"] == "review"


async def test_a_session_is_new_each_time_and_ends(at: Town) -> None:
    """Each sign-in gives another secret and ends the one brought along; signed out, it is good for nothing."""
    await at.first()
    who = await at.visitor()
    assert await who.refused("GET", "/api/session") == (401, "signed_out")
    answer = await who.call("POST", "/api/session", {"name": "ADA", "password": PASSWORD})
    who.signed = answer.json()
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("imprint_session=")
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Secure" not in cookie
    before = who.http.cookies["imprint_session"]
    who.signed = await who.post("/api/session", NAME, 201)
    assert who.http.cookies["imprint_session"] != before
    thief = await at.visitor(Cookie=f"imprint_session={before}")
    assert await thief.refused("GET", "/api/session") == (401, "signed_out")
    sessions = (await who.get("/api/sessions"))["items"]
    assert [each["current"] for each in sessions].count(True) == 1
    await who.delete("/api/sessions")
    assert len((await who.get("/api/sessions"))["items"]) == 1
    kept = who.http.cookies["imprint_session"]
    await who.delete("/api/session")
    assert await (await at.visitor(Cookie=f"imprint_session={kept}")).refused("GET", "/api/session") == (
        401,
        "signed_out",
    )


async def test_secrets_are_only_in_hands_and_never_in_the_database(at: Town) -> None:
    """Neither password, session, key nor code can be read out of any table."""
    ada = await at.first()
    key = (await ada.post("/api/api-keys", {"label": "k", "scopes": ["posts:read"]}, 201))["secret"]
    code = (await ada.post("/api/invitations", {}, 201, **{"Idempotency-Key": "i"}))["code"]
    again = await ada.refused("POST", "/api/invitations", {}, **{"Idempotency-Key": "i"})
    assert again == (409, "idempotency.shown_once")
    async with at.database.connection() as connection:
        tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        rows = [await connection.fetch(f'SELECT t::text FROM "{each[0]}" t') for each in tables]
    written = "\n".join(row[0] for each in rows for row in each)
    for secret in (PASSWORD, ada.http.cookies["imprint_session"], key, code, ada.signed["csrfToken"]):
        assert secret not in written
    assert "$argon2id$" in written


async def test_behind_tls_the_cookie_is_secure(at: Town) -> None:
    """A proxy on this machine that says https gets a cookie that plain HTTP can neither see nor set."""
    await at.first()
    proxy = await at.visitor(**{"X-Forwarded-Proto": "https", "Host": "imprint.example"})
    answer = await proxy.call("POST", "/api/session", NAME, Origin="https://imprint.example")
    assert answer.status_code == 201
    assert answer.headers["set-cookie"].startswith("__Host-imprint_session=")
    assert "Secure" in answer.headers["set-cookie"]
    assert "Strict-Transport-Security" in answer.headers


async def test_tries_are_limited_by_name_and_by_address(at: Town) -> None:
    """Wrong passwords in a crowd are counted one by one; then even the right one waits, and time heals it."""
    await at.first()
    who = await at.visitor()
    wrong = {"name": "ada", "password": "wrong wrong wrong"}
    crowd = await asyncio.gather(*(who.call("POST", "/api/session", wrong) for _ in range(30)))
    assert sorted(each.status_code for each in crowd) == [401] * MOST_BY_NAME_AND_ADDRESS + [429] * 20
    late = await who.call("POST", "/api/session", NAME)
    assert (late.status_code, late.json()["code"]) == (429, "sign_in.too_many")
    assert 0 < int(late.headers["Retry-After"]) <= 15 * 60
    elsewhere = await at.visitor(**{"X-Forwarded-For": "203.0.113.7"})
    assert (await elsewhere.call("POST", "/api/session", NAME)).status_code == 201
    for number in range(MOST_FROM_ADDRESS - 30):
        told = await who.call("POST", "/api/session", {"name": f"nobody {number}", "password": "x"})
    assert told.status_code == 429
    await Author(at.database).pass_time(timedelta(minutes=16))
    assert (await who.call("POST", "/api/session", NAME)).status_code == 201


@pytest.mark.parametrize(
    ("address", "bucket"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("nonsense", "nowhere"),
        ("", "nowhere"),
    ],
)
def test_one_person_has_one_network(address: str, bucket: str) -> None:
    """Whoever has a whole IPv6 network has one limit, not as many as addresses."""
    assert sign_in_limit.network(address) == bucket


async def test_known_and_unknown_names_hear_the_same(at: Town) -> None:
    """Wrong, unknown and disabled differ in nothing that is said."""
    ada = await at.first()
    grace = await at.invited(ada, "grace")
    await ada.post(f"/api/people/{grace.signed['personId']}/disable")
    who = await at.visitor()
    told = [
        (await who.call("POST", "/api/session", given)).content
        for given in (
            {"name": "ada", "password": "wrong wrong wrong"},
            {"name": "nobody", "password": "wrong wrong wrong"},
            {"name": "grace", "password": PASSWORD},
        )
    ]
    assert len(set(told)) == 1
    assert await grace.refused("GET", "/api/session") == (401, "signed_out")


async def test_a_password_is_changed_by_who_knows_it(at: Town) -> None:
    """The old one is needed, the other sessions end, and the new one works."""
    ada = await at.first()
    other = await at.visitor()
    other.signed = await other.post("/api/session", NAME, 201)
    path = "/api/session/password"
    new = "another good password"
    assert await ada.refused("POST", path, {"old": "x", "new": new}) == (403, "person.wrong_password")
    assert await ada.refused("POST", path, {"old": PASSWORD, "new": "x"}) == (422, "person.weak_password")
    await ada.post(path, {"old": PASSWORD, "new": new}, 204)
    assert await other.refused("GET", "/api/session") == (401, "signed_out")
    await ada.get("/api/session")
    await other.post("/api/session", {"name": "ada", "password": new}, 201)


async def test_a_key_does_what_it_was_given_for(at: Town) -> None:
    """Scopes hold, writing includes reading, a key makes no keys, and revoked it is good for nothing at once."""
    ada = await at.first()
    reads, writes = await at.program(ada, "posts:read"), await at.program(ada, "posts:write")
    assert await reads.get("/api/posts/counts") == {}
    assert await reads.refused("POST", "/api/posts", {"title": "x"}) == (403, "scope.lacking")
    await writes.post("/api/posts", {"title": "x"}, 201)
    assert await writes.get("/api/posts/counts") == {"review": 1}
    assert await writes.refused("GET", "/api/content") == (403, "scope.lacking")
    for path in ("/api/api-keys", "/api/invitations", "/api/sessions"):
        assert await writes.refused("GET", path) == (403, "session.needed")
    (first, second) = (await ada.get("/api/api-keys"))["items"]
    assert "secret" not in first
    assert first["lastUsedAt"] is not None
    for key in (first, second):
        await ada.delete(f"/api/api-keys/{key['id']}")
        assert await ada.refused("DELETE", f"/api/api-keys/{key['id']}") == (404, "api_key.missing")
    assert await writes.refused("GET", "/api/posts") == (401, "signed_out")
    for scopes in ([], ["nonsense"], ["posts:read", "x\x00"]):
        told = await ada.refused("POST", "/api/api-keys", {"label": "x", "scopes": scopes})
        assert told[0] == 422
    bob = await at.invited(ada, "bob")
    told = await bob.refused("POST", "/api/api-keys", {"label": "x", "scopes": ["people:read"]})
    assert told == (403, "scope.beyond")


async def test_a_key_ends_when_its_time_is_over(at: Town) -> None:
    """So does a session that nobody uses, and an invitation that nobody takes up."""
    ada = await at.first()
    secret = (await ada.post("/api/api-keys", {"label": "k", "scopes": ["posts:read"], "days": 2}, 201))["secret"]
    code = (await ada.post("/api/invitations", {"days": 2}, 201))["code"]
    program = await at.visitor(Authorization=f"Bearer {secret}")
    await program.get("/api/posts")
    await Author(at.database).pass_time(timedelta(days=3))
    assert await program.refused("GET", "/api/posts") == (401, "signed_out")
    given = {"code": code, "name": "grace", "password": PASSWORD}
    assert await program.refused("POST", "/api/invitations/accept", given) == (403, "invitation.bad_code")
    await ada.get("/api/session")
    await Author(at.database).pass_time(timedelta(days=11))
    assert await ada.refused("GET", "/api/session") == (401, "signed_out")


async def test_what_is_no_key_opens_nothing(at: Town) -> None:
    """Whoever brings a bad key is not let in by their cookie either."""
    ada = await at.first()
    for given in ("", "Bearer", "Bearer imp_wrong", "Basic YWRhOng=", "Bearer " + "x" * 10_000):
        assert await ada.refused("GET", "/api/session", Authorization=given) == (401, "signed_out")


async def test_people_are_looked_after_by_administrators(at: Town) -> None:
    """They see everybody, change names and roles, and give new passwords; the last of them stays one."""
    ada = await at.first()
    bob = await at.invited(ada, "bob")
    assert [each["name"] for each in (await ada.get("/api/people"))["items"]] == ["ada", "bob"]
    assert await bob.refused("GET", "/api/people") == (403, "scope.lacking")
    path = f"/api/people/{bob.signed['personId']}"
    assert await ada.refused("PATCH", path, {"name": "ADA"}) == (409, "person.name_taken")
    assert (await ada.patch(path, {"name": "robert"}))["name"] == "robert"
    for change in ({"role": "member"}, {"role": "reader"}):
        assert (await ada.refused("PATCH", "/api/people/operator", change))[0] in {409, 422}
    assert await ada.refused("POST", "/api/people/operator/disable") == (409, "person.last_administrator")
    assert (await ada.patch(path, {"role": "administrator"}))["role"] == "administrator"
    assert (await bob.get("/api/session"))["role"] == "administrator"
    assert (await bob.post("/api/people/operator/disable"))["moves"] == [{"name": "enable", "to": None, "why": None}]
    assert await ada.refused("GET", "/api/session") == (401, "signed_out")
    assert await bob.refused("POST", f"{path}/disable") == (409, "person.last_administrator")
    await bob.post("/api/people/operator/enable")
    await bob.post("/api/people/operator/password", {"password": "a password for ada"}, 204)
    await ada.post("/api/session", {"name": "ada", "password": "a password for ada"}, 201)
    assert await bob.refused("GET", "/api/people/nobody") == (404, "person.missing")


async def test_invitations_open_once_and_only_downwards(at: Town) -> None:
    """A code makes one person, a member lets in readers alone, a reader nobody."""
    ada = await at.first()
    bob = await at.invited(ada, "bob")
    assert await bob.refused("POST", "/api/invitations", {"role": "member"}) == (403, "invitation.beyond")
    code = (await bob.post("/api/invitations", {"role": "reader", "label": "Eve"}, 201))["code"]
    (open_,) = (await bob.get("/api/invitations"))["items"]
    who = await at.visitor()
    taken = {"code": code, "name": "Bob", "password": PASSWORD}
    assert await who.refused("POST", "/api/invitations/accept", taken) == (409, "person.name_taken")
    crowd = await asyncio.gather(
        *(who.call("POST", "/api/invitations/accept", {**taken, "name": f"eve {n}"}) for n in range(6))
    )
    assert sorted(each.status_code for each in crowd) == [201, *[403] * 5]
    assert await bob.refused("DELETE", f"/api/invitations/{open_['id']}") == (404, "invitation.missing")
    made = await ada.post("/api/invitations", {}, 201)
    assert await bob.refused("DELETE", f"/api/invitations/{made['id']}") == (404, "invitation.missing")
    await ada.delete(f"/api/invitations/{made['id']}")
    gone = {"code": made["code"], "name": "late", "password": PASSWORD}
    assert await who.refused("POST", "/api/invitations/accept", gone) == (403, "invitation.bad_code")


async def test_two_administrators_cannot_disable_each_other(at: Town, database: Database) -> None:
    """However close together, one of them is left."""
    ada = await at.first()
    bob = await at.invited(ada, "bob", "administrator")
    await asyncio.gather(
        ada.call("POST", f"/api/people/{bob.signed['personId']}/disable"),
        bob.call("POST", "/api/people/operator/disable"),
    )
    async with database.connection() as connection:
        left = await connection.fetchval(
            "SELECT count(*) FROM person WHERE role = 'administrator' AND disabled_at IS NULL"
        )
    assert left == 1
