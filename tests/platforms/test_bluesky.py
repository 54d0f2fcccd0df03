"""Bluesky: the record key, the record, facets by bytes, threads, sessions, and every answer it is known to give."""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from imprint.engine.wire import Sender, Wire
from imprint.platforms.bluesky import Bluesky, key_of, record
from imprint.platforms.bluesky_sign_in import BlueskyLogin
from imprint.platforms.bluesky_text import facets, fits, marks, mentioned, parts
from imprint.platforms.contract import Quota, Receipt
from imprint.platforms.failure import Failure, NoAnswer, NotYet, RateLimited, Refused, SignInAgain
from imprint.platforms.request import Request, Text
from imprint.platforms.tid import TID
from imprint.platforms.work import RemoteFile, Work
from imprint.sandbox.bluesky import APP_PASSWORD, did, handle
from imprint.sandbox.faults import Fault
from imprint.sandbox.server import Sandbox, sandbox
from tests.platforms.recorded import Recorded, answer, recording
from tests.platforms.works import picture, work

BSKY = Bluesky()
LOGIN = BlueskyLogin(
    name="a.test",
    pds_url="https://pds.test",
    did="did:plc:kvwvcn5iqfooopmyzvb4qzba",
    app_password=SecretStr("p"),
    access_jwt=SecretStr("a"),
    refresh_jwt=SecretStr("r"),
)
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def running() -> AsyncIterator[Sandbox]:
    """Give a sandbox."""
    async with sandbox() as one:
        yield one


@pytest.fixture
def login(running: Sandbox) -> BlueskyLogin:
    """Give an account of the sandbox."""
    return BlueskyLogin.model_validate_json(running.login("bluesky", "artist"))


def http() -> Sender:
    """Give a sender."""
    return Wire().within(10)


async def ready(login: BlueskyLogin, **more: Any) -> Work:
    """Make a work with everything it needs."""
    made = work(**more)
    for file in made.files:
        made = made.with_upload(await BSKY.upload(http(), login, made, file, lambda _: None))
    return await BSKY.prepare(http(), login, made)


def records(running: Sandbox) -> list[dict[str, Any]]:
    """Give the records that are out, in order."""
    return [dict(each.data["record"]) for each in running.log.effects("bluesky")]  # type: ignore[call-overload] # JSON


@given(st.text(min_size=1), st.text(min_size=1), st.integers(0, 30))
def test_a_record_key_is_a_tid_and_follows_from_the_work(one: str, other: str, number: int) -> None:
    """The same for every attempt, whenever it is made; another for another work and for each part of a thread."""
    made = work(key=one)
    key = key_of(made, number)
    assert TID.fullmatch(key)
    assert key == key_of(replace(made, title="x", made_at=datetime.now(UTC)), number)
    assert key != key_of(made, number + 1)
    assert (key == key_of(work(key=other), number)) == (one == other)


def test_tids_are_told_from_others_as_the_standard_does() -> None:
    """The interoperability files agree with the pattern."""
    for name, right in (("valid", True), ("invalid", False)):
        lines = recording(f"atproto/interop__tid_syntax_{name}.txt").decode().splitlines()
        for line in (each for each in lines if each and not each.startswith("#")):
            assert bool(TID.fullmatch(line)) is right, line


async def test_every_part_of_a_record_arrives(running: Sandbox, login: BlueskyLogin) -> None:
    """Text, facets, pictures with alt and shape, languages, labels and the moment are where the lexicon has them."""
    running.login("bluesky", "friend")
    text = f"🖤 Für @{handle('friend')} und @nobody.test: https://example.org/ü #Tinte"
    made = await ready(
        login,
        files=(picture(), picture(seed=2, name="second.png")),
        is_mature=True,
        mature_classification=("gore",),
        options={"text": text, "langs": ["de", "en-GB"]},
    )
    assert BSKY.validate(login, made) == []
    receipt = await BSKY.publish(http(), login, made)
    (out,) = records(running)
    assert receipt == Receipt(f"at://{did('artist')}/app.bsky.feed.post/{key_of(made)}", receipt.url)
    assert receipt.url
    assert (await BSKY.find(http(), login, made, BEGINNING)) == receipt
    assert out["$type"] == "app.bsky.feed.post"
    assert out["text"] == text
    assert out["createdAt"] == "2026-11-15T12:00:00.000Z"
    assert out["langs"] == ["de", "en-GB"]
    assert out["labels"]["values"] == [{"val": "graphic-media"}]
    first, second = out["embed"]["images"]
    assert (first["alt"], first["aspectRatio"]) == ("a drawing", {"width": 800, "height": 600})
    assert first["image"] == json.loads(made.uploads[0].data)
    assert second["image"]["ref"]["$link"] == made.uploads[1].id
    raw = text.encode()
    seen = [
        (raw[each["index"]["byteStart"] : each["index"]["byteEnd"]].decode(), each["features"][0])
        for each in out["facets"]
    ]
    kind = "app.bsky.richtext.facet#"
    assert seen == [
        (f"@{handle('friend')}", {"$type": f"{kind}mention", "did": did("friend")}),
        ("https://example.org/ü", {"$type": f"{kind}link", "uri": "https://example.org/ü"}),
        ("#Tinte", {"$type": f"{kind}tag", "tag": "Tinte"}),
    ]


def test_the_record_is_what_the_lexicon_says() -> None:
    """Every name in a record is one that the lexicon knows, and what it requires is there."""
    lexicon = json.loads(recording("atproto/lexicons/app.bsky.feed.post.json"))["defs"]["main"]["record"]
    made = work(files=(), is_mature=True, options={"link": "https://example.org", "langs": ["en"]})
    out = record(made)
    assert set(out) - {"$type"} <= set(lexicon["properties"])
    assert set(lexicon["required"]) <= set(out)
    assert "app.bsky.embed.external" in str(out["embed"])
    real = json.loads(recording("atproto/marshalx__post_record.json"))["value"]
    assert set(real) <= set(out) | {"lol"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see https://example.org/a_(b).", ["https://example.org/a_(b)"]),
        ("(https://example.org/x)", ["https://example.org/x"]),
        ("https://example.org/?q=ü&r=1, then", ["https://example.org/?q=ü&r=1"]),
        ("https:// nothing http://", []),
        ("mail a@b.test not a mention, @c.test is", ["c.test"]),
        ("@nodomain @x.y.Z!", ["x.y.z"]),
        ("#one #2 #3d,#four #\u200b (#five) #six_7", ["one", "3d,#four", "six_7"]),
        ("#cafe\u0301 #हिन्दी! #🖤", ["cafe\u0301", "हिन्दी", "🖤"]),
        ("https://example.org/#tag and #https://x.test", ["https://example.org/#tag", "https://x.test"]),
        ("مرحبا #سلام https://example.org", ["سلام", "https://example.org"]),
    ],
    ids=range(10),
)
def test_marks(text: str, found: list[str]) -> None:
    """Links, mentions and tags are found as people mean them, and never overlap."""
    assert [each.value for each in marks(text)] == found


PIECES = st.sampled_from(
    ["🖤", "👨‍👩‍👧‍👦", "e\u0301", "שלום", " ", "\n\n", "#tag", "@a.test", "https://e.org/ü", ".", "(", "x" * 40]
)


@given(st.lists(PIECES, max_size=40).map("".join))
def test_facets_point_at_whole_characters(text: str) -> None:
    """Whatever stands before it, the bytes of a facet are exactly the text it means."""
    raw, last = text.encode(), 0
    for mark, facet in zip(marks(text), facets(text, dict.fromkeys(mentioned(text), "did:plc:x")), strict=True):
        index: Any = facet["index"]
        assert raw[index["byteStart"] : index["byteEnd"]].decode() == text[mark.start : mark.end]
        assert index["byteStart"] >= last
        last = index["byteEnd"]


@given(st.lists(PIECES, max_size=200).map("".join))
def test_a_thread_loses_nothing(text: str) -> None:
    """Each part fits, none is empty but the only one, and all of the text is there."""
    found = parts(text)
    assert all(fits(each) for each in found)
    assert len(found) == 1 or all(found)
    assert re.sub(r"\s", "", "".join(found)) == re.sub(r"\s", "", text)


def test_a_thread_breaks_where_people_would() -> None:
    """Between paragraphs, else sentences, else words; a link is never torn apart."""
    paragraphs = f"{'a' * 200}\n\n{'b' * 200}"
    assert parts(paragraphs) == ["a" * 200, "b" * 200]
    assert parts(f"{'One two. ' * 30}{'x' * 100}")[0].endswith("two.")
    link = f"https://example.org/{'p' * 200}"
    assert parts(f"{'word ' * 30}{link}") == [("word " * 30).strip(), link]
    assert [len(each) for each in parts("y" * 700)] == [300, 300, 100]


LONG = {"options": {"thread": True, "text": " ".join(f"Sentence number {n} of the thread." for n in range(25))}}


async def test_a_thread_is_a_chain_of_replies(running: Sandbox, login: BlueskyLogin) -> None:
    """Only the first part has the pictures; each reply names the root and the part before it; again changes nothing."""
    made = await ready(login, **LONG)
    receipt = await BSKY.publish(http(), login, made)
    assert await BSKY.publish(http(), login, made) == receipt
    out = records(running)
    assert len(out) == 3
    assert ["embed" in each for each in out] == [True, False, False]
    uris = [str(each.data["remote_id"]) for each in running.log.effects("bluesky")]
    assert receipt.remote_id == uris[0]
    assert [(each["reply"]["root"]["uri"], each["reply"]["parent"]["uri"]) for each in out[1:]] == [
        (uris[0], uris[0]),
        (uris[0], uris[1]),
    ]
    assert " ".join(each["text"] for each in out) == LONG["options"]["text"]
    assert len(await BSKY.preview(login, made)) == 3


@pytest.mark.parametrize("does", ["reset_after", "reset_before", "error_after", "rate_limit", "expired"])
@pytest.mark.parametrize("part", [0, 1, 2])
async def test_a_thread_that_breaks_off_is_finished_once(
    running: Sandbox, login: BlueskyLogin, does: str, part: int
) -> None:
    """After its first record it may be out; sent again it is whole, and no part of it is there twice."""
    made = await ready(login, **LONG)
    running.faults.next(Fault(does), path="*putRecord", skip=part)
    with pytest.raises(Failure) as seen:
        await BSKY.publish(http(), login, made)
    assert part == 0 or isinstance(seen.value, NoAnswer)
    whole = part == 2 and does.endswith("after")
    assert (await BSKY.find(http(), login, made, BEGINNING) is not None) == whole
    receipt = await BSKY.publish(http(), login, made)
    assert await BSKY.find(http(), login, made, BEGINNING) == receipt
    keys = [each.data["key"] for each in running.log.effects("bluesky")]
    assert len(keys) == len(set(keys)) == 3


async def test_a_key_that_is_taken(running: Sandbox, login: BlueskyLogin) -> None:
    """Another record under our key is ours from before: nothing changes; a thread goes on from it all the same."""
    made = await ready(login, **LONG)
    receipt = await BSKY.publish(http(), login, made)
    later = replace(made, made_at=datetime.now(UTC))  # as after a restored backup
    assert await BSKY.publish(http(), login, later) == receipt
    assert len(records(running)) == 3
    body = {"repo": login.did, "collection": "app.bsky.feed.post", "rkey": key_of(made), "record": record(made)}
    bearer = ("Authorization", f"Bearer {login.access_jwt.get_secret_value()}")
    url = f"{login.pds_url}/xrpc/com.atproto.repo.createRecord"  # which the adapter never calls
    asked = Request("create", "POST", url, (bearer,), Text(json.dumps(body).encode()))
    assert (await http().send(asked)).status == 500
    assert len(records(running)) == 3


async def test_a_session_begins_and_is_renewed(running: Sandbox) -> None:
    """An app password opens a session; its token is exchanged, twice if need be; at its end the password helps."""
    given_ = {
        "handle": f"@{handle('painter')}",
        "app_password": APP_PASSWORD,
        "base_url": running.base_url("bluesky") + "/",
    }
    begun = await BSKY.begin(http(), given_, "")
    assert isinstance(begun, BlueskyLogin)
    assert (begun.name, begun.did) == (handle("painter"), did("painter"))
    assert begun.expires_in
    assert timedelta(minutes=119) < begun.expires_in <= timedelta(hours=2)
    await BSKY.check(http(), begun, work())
    running.sites["bluesky"].spoil("painter", "access")
    with pytest.raises(SignInAgain) as old:
        await BSKY.check(http(), begun, work())
    assert old.value.renewable
    fresh = await BSKY.renew(http(), begun)
    assert await BSKY.renew(http(), begun) != fresh  # the answer to the first may have been lost
    await BSKY.check(http(), fresh, work())
    running.sites["bluesky"].spoil("painter", "refresh")
    again = await BSKY.renew(http(), fresh)
    assert (again.did, again.app_url) == (fresh.did, fresh.app_url)
    await BSKY.check(http(), again, work())
    running.sites["bluesky"].spoil("painter", "refresh")
    with pytest.raises(SignInAgain) as gone:
        await BSKY.renew(http(), again.model_copy(update={"app_password": SecretStr("deleted")}))
    assert not gone.value.renewable
    with pytest.raises(SignInAgain):
        await BSKY.begin(http(), {**given_, "app_password": "wrong"}, "")


async def test_the_servers_own_address_is_used() -> None:
    """The server that keeps the account is read from the session; what is no safe address is not."""
    doc = {"service": [{"id": "#other", "serviceEndpoint": "https://no.test"}, {"id": "did:plc:x#atproto_pds"}]}
    told = {"did": "did:plc:x", "handle": "a.test", "accessJwt": "a.b.c", "refreshJwt": "r", "didDoc": doc}
    given_ = {"handle": "a.test", "app_password": "p", "base_url": "https://entry.test"}
    for where, used in (("https://pds.test/", "https://pds.test"), ("http://pds.test", "https://entry.test")):
        doc["service"][1]["serviceEndpoint"] = where
        begun = await BSKY.begin(Recorded(answer(told)), given_, "")
        assert isinstance(begun, BlueskyLogin)
        assert begun.pds_url == used
    with pytest.raises(SignInAgain) as factor:
        await BSKY.begin(Recorded(answer({"error": "AuthFactorTokenRequired"}, 401)), given_, "")
    assert factor.value.code == "bluesky.not_an_app_password"


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (400, "ExpiredToken", SignInAgain),
        (401, "AuthMissing", SignInAgain),
        (400, "AccountTakedown", SignInAgain),
        (400, "InvalidRecord", Refused),
        (413, "PayloadTooLarge", Refused),
        (429, "RateLimitExceeded", RateLimited),
        (400, "BlobNotFound", NotYet),
        (400, "two words", NoAnswer),
        (500, "InternalServerError", NoAnswer),
        (502, "UpstreamFailure", NoAnswer),
        (200, "", NoAnswer),
    ],
)
async def test_each_answer_means_one_thing(status: int, error: str, kind: type[Failure]) -> None:
    """Errors are told apart by their names, and none of their text comes through."""
    made = work()
    made = made.with_upload(RemoteFile("c", made.files[0].sha256, "{}"))
    said = answer({"error": error, "message": "secret text"}, status)
    with pytest.raises(Failure) as seen:
        await BSKY.publish(Recorded(said), LOGIN, made)
    assert type(seen.value) is kind
    assert "secret text" not in str(seen.value)
    assert not isinstance(seen.value, NotYet) or seen.value.uploads_gone


async def test_an_answer_about_another_record_is_not_believed() -> None:
    """A success that names another place than the one we asked for is no success."""
    told = {"uri": "at://did:plc:other/app.bsky.feed.post/3k2yihcrp6f2c", "cid": "c"}
    with pytest.raises(NoAnswer):
        await BSKY.publish(Recorded(answer(told)), LOGIN, work(files=()))
    with pytest.raises(NotYet):
        await BSKY.publish(Recorded(), LOGIN, work())


def test_what_is_left_is_read_from_the_headers() -> None:
    """Points and the second at which they are counted anew, by the server's own clock."""
    date = {"date": "Mon, 16 Nov 2026 01:00:00 GMT"}
    rates = {
        "ratelimit-remaining": "91",
        "ratelimit-reset": str(int(datetime(2026, 11, 16, 1, 5, tzinfo=UTC).timestamp())),
    }
    assert BSKY.quota(answer({}, 200, **date, **rates)) == Quota(20, timedelta(minutes=5))  # a thread is kept
    assert BSKY.quota(answer({}, 200, **date, **{"ratelimit-remaining": "x", "ratelimit-reset": "1"})) is None


async def test_validate_knows_blueskys_own_rules() -> None:
    """Options, lengths and emptiness are looked at before anything is sent."""

    def codes(**more: Any) -> set[str]:
        return {each.code for each in BSKY.validate(LOGIN, work(**more))}

    assert codes(options={"bogus": 1, "langs": ["e"]}) == {"fit.options"}
    assert codes(options={"text": "x" * 301}) == {"fit.long_text"}
    assert codes(options={"text": "👨‍👩‍👧‍👦" * 120}) == set()
    assert codes(options={"text": "👨‍👩‍👧‍👦" * 121}) == {"fit.long_text"}  # 3,025 bytes
    assert codes(description="x" * 5000) == set()
    assert codes(options={"thread": True}, description="word " * 2000) == {"fit.long_thread"}
    assert codes(files=(), options={"text": " "}) == {"fit.no_text"}
    assert codes(files=(picture(3_000_000),)) == {"fit.large"}
    with pytest.raises(Refused):
        await BSKY.publish(Recorded(), LOGIN, work(options={"bogus": 1}))
    before = await BSKY.preview(LOGIN, work(options={"text": "hello @a.test"}))
    assert [each.known for each in before] == [True, False]


async def test_recorded_answers() -> None:
    """What real servers have said of a handle, a record and an account is read by the same code."""
    known = json.loads(recording("atproto/marshalx__resolve_handle.json"))
    made = work(files=(), options={"text": "For @artist.example.com"})
    assert (await BSKY.prepare(Recorded(answer(known)), LOGIN, made)).prepared == {"artist.example.com": known["did"]}
    for absent in ("InvalidRequest", "HandleNotFound"):
        told = await BSKY.prepare(Recorded(answer({"error": absent, "message": "no"}, 400)), LOGIN, made)
        assert told.prepared == {"artist.example.com": ""}
    real = json.loads(recording("atproto/marshalx__post_record.json"))
    found = await BSKY.find(Recorded(answer(real)), LOGIN, made, datetime.now(UTC))
    assert found is not None
    assert found.remote_id == f"at://{LOGIN.did}/app.bsky.feed.post/{key_of(made)}"
    account = json.loads(recording("atproto/marshalx__did_doc.json"))
    session = answer({**account, "accessJwt": "a.b.c", "refreshJwt": "r"})
    given_ = {"handle": account["handle"], "app_password": "x", "base_url": "https://bsky.social"}
    begun = await BSKY.begin(Recorded(session), given_, "")
    assert isinstance(begun, BlueskyLogin)
    (service,) = account["didDoc"]["service"]
    assert (begun.did, begun.pds_url) == (account["did"], service["serviceEndpoint"])
    assert begun.expires_in == timedelta(hours=2)  # where a token cannot be read, as long as they last
