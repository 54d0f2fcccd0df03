"""Feeds: every dialect is read, every broken one has a clear end, and no hostile one costs more than its bound."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import feedparser
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imprint.sources import feed_salvage, feed_xml
from imprint.sources.contract import Gone, Place, State, Unreadable
from imprint.sources.feed import Feed, read
from imprint.sources.feed_document import LARGEST, LONGEST_READ, MOST_ITEMS, Document, decoded, plain
from tests.sources.canned import Canned, canned
from tests.sources.conftest import FIXTURES

RECORDED = sorted((FIXTURES / "feeds").glob("*")) if FIXTURES.is_dir() else []
NAMES = [file.name for file in RECORDED] or ["none"]

# What cannot be a feed, and says why.
UNREADABLE = {
    "feedparser_illformed__aaa_illformed.xml": "nothing in it could be saved",
    "feedparser_illformed__rss_empty_document.xml": "does not look like a feed",
    "miniflux__xml_iso88591_utf8_mismatch.xml": "<note>",
}


@pytest.fixture
async def server() -> AsyncIterator[Canned]:
    """Give a server that answers as it is told."""
    async with canned() as one:
        yield one


def rss(*items: str, head: str = "") -> str:
    """Write an RSS feed."""
    return (
        '<?xml version="1.0"?><rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/" '
        'xmlns:sy="http://purl.org/rss/1.0/modules/syndication/" xmlns:media="http://search.yahoo.com/mrss/">'
        f"<channel><title>Some Series</title>{head}{''.join(items)}</channel></rss>"
    )


def item(number: object, more: str = "") -> str:
    """Write an item of an RSS feed."""
    return (
        f"<item><title>Chapter {number}</title><link>https://x.test/{number}</link><guid>g{number}</guid>{more}</item>"
    )


# ------------------------------------------------------------------------------------------------------------ recorded


@pytest.mark.parametrize("name", NAMES)
async def test_every_recorded_feed_is_read_or_says_why_not(recorded: Path, name: str) -> None:
    """Broken, empty and wrongly encoded ones included, nothing else than a document or a reason comes out."""
    data = (recorded / "feeds" / name).read_bytes()
    if name in UNREADABLE:
        with pytest.raises(Unreadable, match=UNREADABLE[name]):
            await read(data, "")
    else:
        assert isinstance(await read(data, ""), Document)


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith(".xml") and name not in UNREADABLE])
async def test_we_read_what_feedparser_reads(recorded: Path, name: str) -> None:
    """The same items with the same titles, ids and links, in the same order."""
    data = (recorded / "feeds" / name).read_bytes()
    ours = (await read(data, "")).entries
    theirs: Any = feedparser.parse(io.BytesIO(data), response_headers={"content-type": "application/xml"}).entries
    assert len(ours) == len(theirs)
    for our, their in zip(ours, theirs, strict=True):
        assert plain(our.title) == plain(their.get("title"))
        assert our.id == their.get("id")
        if our.link is not None and "enclosure" not in name:
            assert our.link == their.get("link")


async def test_a_recorded_json_feed_is_read(recorded: Path) -> None:
    """Ids, links and titles; an item without a title has none."""
    document = await read((recorded / "feeds" / "feedparser_jsonfeed__example.json").read_bytes(), "")
    assert [entry.id for entry in document.entries] == ["2", "1"]
    assert [entry.title for entry in document.entries] == ["post 2", None]
    assert document.entries[1].author == "you"


# ------------------------------------------------------------------------------------------------------------ dialects

ATOM = """<?xml version="1.0"?><a:feed xmlns:a="http://www.w3.org/2005/Atom"><a:title>S</a:title>
<a:entry xml:lang="es"><a:title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">Capítulo <b>5</b></div></a:title>
<a:id>tag:x,5</a:id><a:link rel="self" href="/self"/><a:link href="../read/5"/>
<a:published>2024-01-01T00:00:00Z</a:published>
<a:updated>2024-01-02T00:00:00Z</a:updated><a:author><a:name>Group</a:name></a:author>
<a:summary>Chapter 99</a:summary></a:entry></a:feed>"""
RDF = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="https://x.test/"><title>S</title></channel>
<item rdf:about="https://x.test/5"><title>Chapter 5</title><link>https://x.test/5</link><dc:date>2024-01-01</dc:date>
<dc:creator>Group</dc:creator></item></rdf:RDF>"""
JSON = json.dumps(
    {
        "version": "https://jsonfeed.org/version/1.1",
        "title": "S",
        "items": [
            {"id": 5, "title": "Chapter 5", "url": "https://x.test/5", "date_published": "2024-01-01T00:00:00Z",
             "authors": [{"name": "Group"}]}
        ],
    }
)  # fmt: skip
MORE = "<dc:creator>Group</dc:creator><media:title>Chapter 7</media:title>"
RSS = rss(item(5, f"<pubDate>Mon, 01 Jan 2024 00:00:00 GMT</pubDate>{MORE}"))


@pytest.mark.parametrize("text", [RSS, ATOM, RDF, JSON], ids=["rss", "atom", "rdf", "json"])
async def test_each_dialect_gives_the_same_chapter(server: Canned, text: str) -> None:
    """Number, link, date and author are found wherever the dialect keeps them, and nowhere else."""
    server.say(text.encode())
    fetched = await Feed().fetch(server.http, Place(f"{server.base}/feeds/one"))
    (chapter,) = fetched.chapters
    assert chapter.number.number == Decimal(5)
    assert chapter.published_at == datetime(2024, 1, 1, tzinfo=UTC)
    assert chapter.group == "Group"
    assert chapter.url in {"https://x.test/5", f"{server.base}/read/5"}
    assert chapter.id in {"g5", "tag:x,5", "https://x.test/5", "5"}
    assert fetched.set_aside == ()


@pytest.mark.parametrize(
    ("title", "plainly"),
    [
        ("Chapter 5 &amp;amp; more", "Chapter 5 & more"),
        ("&lt;b&gt;Chapter&lt;/b&gt; 5", "Chapter 5"),
        ("<![CDATA[Chapter <i>5</i>]]>", "Chapter 5"),
        ("Chapter&nbsp;5&hellip;", "Chapter 5…"),
        ("Chapter\x0b 5\x00", "Chapter 5"),
        ("  Chapter\n\t5 ", "Chapter 5"),
        ("Chapter 5 <![CDATA[]]>", "Chapter 5"),
        ("5 &lt; 6", "5 < 6"),
    ],
)
async def test_titles_are_what_a_person_reads(server: Canned, title: str, plainly: str) -> None:
    """HTML in titles, letters XML does not know, and white space are no part of a name."""
    server.say(rss(f"<item><title>{title}</title></item>").encode())
    (chapter,) = (await Feed().fetch(server.http, Place(server.base))).chapters
    assert chapter.title == plainly


async def test_of_two_titles_the_first_counts(server: Canned) -> None:
    """An item that says things twice means the first, as readers take it."""
    server.say(rss(item(5, "<title>Chapter 9</title><link>https://x.test/9</link><guid>g9</guid>")).encode())
    (chapter,) = (await Feed().fetch(server.http, Place(server.base))).chapters
    assert (chapter.id, chapter.title, chapter.url) == ("g5", "Chapter 5", "https://x.test/5")


@pytest.mark.parametrize(
    ("link", "url"),
    [
        ("https://x.test/1", "https://x.test/1"),
        ("/1", "{base}/1"),
        ("javascript:alert(1)", None),
        ("file:///etc/passwd", None),
        ("data:text/html,x", None),
        ("http://[", None),
        ("https://x.test/" + "a" * 5000, None),
    ],
)
async def test_links_lead_to_the_web_or_nowhere(server: Canned, link: str, url: str | None) -> None:
    """A relative link is completed; one that a browser should not follow is dropped, the item stays."""
    server.say(
        rss(f"<item><title>Chapter 1</title><guid isPermaLink='false'>g</guid><link>{link}</link></item>").encode()
    )
    (chapter,) = (await Feed().fetch(server.http, Place(f"{server.base}/feed"))).chapters
    assert chapter.url == (url.format(base=server.base) if url else None)


# ---------------------------------------------------------------------------------------------- conditions and wishes


async def test_a_feed_that_has_not_changed_is_not_sent_again(server: Canned) -> None:
    """What the server gave for that purpose is sent back, and kept where a 304 does not repeat it."""
    server.say(rss(item(1)).encode(), etag='W/"1"', last_modified="Mon, 01 Jan 2024 00:00:00 GMT")
    first = await Feed().fetch(server.http, Place(server.base))
    assert first.state == State('W/"1"', "Mon, 01 Jan 2024 00:00:00 GMT")
    server.say(b"", 304, cache_control="max-age=60")
    again = await Feed().fetch(server.http, Place(server.base), first.state)
    assert again.not_modified
    assert again.state == first.state
    assert again.wish.after == timedelta(minutes=1)
    assert server.requests[-1].headers["if-none-match"] == 'W/"1"'
    assert server.requests[-1].headers["if-modified-since"] == "Mon, 01 Jan 2024 00:00:00 GMT"


@pytest.mark.parametrize("etag", ["x" * 501, "é", "a\x01b"])
async def test_a_tag_that_cannot_be_sent_back_is_not_kept(server: Canned, etag: str) -> None:
    """Nor is one that was kept somehow: a poll must not fail for ever because of a letter."""
    server.say(rss(item(1)).encode(), etag=etag)
    assert (await Feed().fetch(server.http, Place(server.base), State(etag, etag))).state == State()
    assert "if-none-match" not in server.requests[-1].headers


@pytest.mark.parametrize(
    ("head", "after"),
    [
        ("<ttl>60</ttl>", 3600),
        ("<ttl>0</ttl>", None),
        ("<ttl>-5</ttl>", None),
        ("<ttl>soon</ttl>", None),
        ("<ttl>99999999999</ttl>", None),
        ("<sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>4</sy:updateFrequency>", 6 * 3600),
        ("<sy:updatePeriod>hourly</sy:updatePeriod><sy:updateFrequency>0</sy:updateFrequency>", None),
        ("<sy:updatePeriod>weekly</sy:updatePeriod>", 7 * 24 * 3600),
    ],
)
async def test_a_feed_may_wish_to_be_left_alone(server: Canned, head: str, after: int | None) -> None:
    """Its ttl, or how often it says it changes; nonsense is no wish."""
    server.say(rss(item(1), head=head).encode())
    wish = (await Feed().fetch(server.http, Place(server.base))).wish
    assert wish.after == (None if after is None else timedelta(seconds=after))


async def test_a_feed_names_the_hours_and_days_it_sleeps(server: Canned) -> None:
    """Hour 24 is hour 0; a feed that sleeps always does not know what it says."""
    hours = "<skipHours><hour>3</hour><hour>24</hour><hour>99</hour><hour>x</hour></skipHours>"
    days = "<skipDays><day>Saturday</day><day>sunday</day><day>Caturday</day></skipDays>"
    server.say(rss(item(1), head=hours + days).encode())
    wish = (await Feed().fetch(server.http, Place(server.base))).wish
    assert (set(wish.skip_hours), set(wish.skip_days)) == ({0, 3}, {5, 6})
    always = "<skipHours>" + "".join(f"<hour>{hour}</hour>" for hour in range(24)) + "</skipHours>"
    server.say(rss(item(1), head=always).encode())
    assert (await Feed().fetch(server.http, Place(server.base))).wish.skip_hours == frozenset()


async def test_a_place_that_is_gone_says_so(server: Canned) -> None:
    """410 is the one status by which a feed is over."""
    server.say("", 410)
    with pytest.raises(Gone):
        await Feed().fetch(server.http, Place(server.base))


# ---------------------------------------------------------------------------------------------------------- encodings

CYRILLIC = "Глава 5: Начало"


@pytest.mark.parametrize(
    ("codec", "declared", "told"),
    [
        ("utf-8", "utf-8", ""),
        ("utf-8-sig", "", ""),
        ("utf-16", "", ""),
        ("utf-16-le", "utf-16", ""),
        ("utf-32", "", ""),
        ("koi8-r", "koi8-r", ""),
        ("cp1251", "windows-1251", ""),
        ("cp1251", "", "windows-1251"),
        ("cp1251", "utf-8", "windows-1251"),
        ("utf-8", "windows-1251", "utf-8"),
        ("utf-8", "ascii", "us-ascii"),
        ("utf-8", "idna", "punycode"),
        ("utf-8", "unicode_escape", "zlib"),
        ("utf-8", "no-such-thing", "x" * 40),
    ],
)
async def test_texts_are_decoded_by_the_best_evidence(codec: str, declared: str, told: str) -> None:
    """A mark, then the server, then the document, then a guess; codecs that are dangerous or unknown do not count."""
    encoding = f' encoding="{declared}"' if declared else ""
    text = f'<?xml version="1.0"{encoding}?><rss><channel><item><title>{CYRILLIC}</title></item></channel></rss>'
    document = await read(text.encode(codec), f"text/xml; charset={told}" if told else "")
    title = document.entries[0].title
    assert title == CYRILLIC or (declared == "ascii" and title == CYRILLIC.encode().decode("cp1252", "replace"))


def test_a_few_bad_bytes_do_not_spoil_the_others() -> None:
    """One wrong byte in UTF-8 costs one letter, not the whole feed's meaning."""
    data = (CYRILLIC * 50).encode() + b"\xff" + CYRILLIC.encode()
    assert decoded(data, "") == CYRILLIC * 50 + "\ufffd" + CYRILLIC


# ------------------------------------------------------------------------------------------------------------- hostile


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("   \n", "empty"),
        ("hello", "neither XML nor JSON"),
        ("<!DOCTYPE html><html><body>Hi</body></html>", "a web page"),
        ("<html><head><title>x</title></head></html>", "a web page"),
        ("<note/>", "<note>"),
        ('{"version": "1"}', "not a JSON Feed"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"version": "https://jsonfeed.org/version/1"}', "items is not a list"),
        ("<rss><channel>", "broken"),
        ('<!DOCTYPE r [<!ENTITY a "b">]><rss><channel><title>&a;</title></channel></rss>', "entity"),
        ('<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]><rss><channel>&a;</channel></rss>', "entity"),
        ('<!DOCTYPE r [<!ENTITY % a SYSTEM "http://x.test/a.dtd"> %a;]><rss/>', "entity"),
        ("<rss><channel>" + "<a>" * 500 + "</a>" * 500 + "</channel></rss>", "nested"),
    ],
)
async def test_what_is_no_feed_says_why(text: str, why: str) -> None:
    """Each reason is one that a person can act on."""
    with pytest.raises(Unreadable, match=why):
        await read(text.encode(), "")


def laughs() -> str:
    """Write the billion laughs."""
    levels = "".join(f'<!ENTITY l{at} "{f"&l{at - 1};" * 10}">' for at in range(1, 10))
    return f'<!DOCTYPE r [<!ENTITY l0 "lol">{levels}]><rss><channel><title>&l9;</title></channel></rss>'


HOSTILE = {
    "billion laughs": laughs(),
    "quadratic entity": f'<!DOCTYPE r [<!ENTITY a "{"a" * 100_000}">]><rss><channel>{"&a;" * 10_000}</channel></rss>',
    "endless author": f"<rss><channel><item><author>{'a.' * 500_000}</author></item></channel></rss>",
    "endless title": f"<rss><channel><item><title>{'Chapter 1 ' * 200_000}</title></item></channel></rss>",
    "many attributes": "<rss><channel><item " + " ".join(f'a{at}="1"' for at in range(30_000)) + "/></channel></rss>",
    "many names": "<rss " + " ".join(f'xmlns:a{at}="u{at}"' for at in range(20_000)) + "><channel/></rss>",
    "unclosed": "<rss><channel><item><title>" + "<a>" * 300_000,
    "brackets": "<" * 1_000_000,
    "comments": "<rss>" + "<!--" * 300_000,
    "sections": "<rss><channel>" + "<![CDATA[" * 100_000,
    "ampersands": "<rss><channel><item><title>" + "&" * 500_000,
    "named letters": "<rss><channel><item><title>" + "&nbsp;" * 200_000 + "</title></item></channel></rss>",
    "deep broken": "<rss><channel><item><title>Chapter 1</title></item>" + "<b>" * 200_000,
    "marks": "<?xml " * 200_000,
    "declarations": "<!DOCTYPE " + "[" * 500_000,
    "broken author": f"<rss><channel><item><author>{'a.' * 200_000}</author></item></channel>",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
async def test_no_hostile_feed_costs_more_than_its_bound(name: str) -> None:
    """Each ends within seconds, as a document with bounded texts or with a reason; the loop goes on meanwhile."""
    loop = asyncio.get_running_loop()
    began, beats = loop.time(), 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.05)
            beats += 1

    beating = asyncio.create_task(beat())
    try:
        document = await read(HOSTILE[name].encode(), "")
        assert all(len(entry.title or "") <= LONGEST_READ for entry in document.entries)
    except Unreadable:
        pass
    finally:
        beating.cancel()
    took = loop.time() - began
    assert took < feed_salvage.SECONDS + 10
    assert beats >= int(took) * 2


async def test_a_feed_too_large_or_too_long_is_bounded(server: Canned) -> None:
    """More bytes than the bound are not read; more items than the bound are left off, and that is said."""
    with pytest.raises(Unreadable, match="larger"):
        decoded(b" " * (LARGEST + 1), "")
    server.say(b"<rss>" + b" " * LARGEST)
    with pytest.raises(Unreadable, match="larger"):
        await Feed().fetch(server.http, Place(server.base))
    server.say(rss(*(item(at) for at in range(1, MOST_ITEMS + 11))).encode())
    fetched = await Feed().fetch(server.http, Place(server.base))
    assert len(fetched.chapters) == MOST_ITEMS
    assert [each.reason for each in fetched.set_aside] == [
        f"the feed has more than {MOST_ITEMS} items; the others were not read"
    ]


async def test_a_bad_item_is_set_aside_and_the_others_go_through(server: Canned) -> None:
    """An empty item in XML, and items of any shape in JSON, leave their neighbours alone."""
    server.say(rss(item(1), "<item><description>x</description></item>", item(2)).encode())
    fetched = await Feed().fetch(server.http, Place(server.base))
    assert [chapter.id for chapter in fetched.chapters] == ["g1", "g2"]
    assert len(fetched.set_aside) == 1
    bad: list[Any] = [None, 5, "x", [], {}, {"id": {}}, {"id": "x", "title": ["y"]}, {"title": "t" * 5000}]
    items = [{"id": "a", "title": "Chapter 1"}, *bad, {"id": "z", "title": "Chapter 2"}]
    server.say(json.dumps({"version": "https://jsonfeed.org/version/1", "items": items}))
    fetched = await Feed().fetch(server.http, Place(server.base))
    assert [chapter.id for chapter in fetched.chapters] == ["a", "z"]
    assert len(fetched.set_aside) == len(bad)
    assert all(each.reason for each in fetched.set_aside)


@pytest.mark.parametrize("kept", [0.5, 0.7, 0.9, 0.99])
async def test_half_a_feed_never_makes_up_a_chapter(server: Canned, kept: float) -> None:
    """Of a feed that is cut off, whole items are saved and the torn one is set aside: no «Chapter 1» out of 12."""
    whole = rss(*(item(at) for at in range(120, 100, -1)))
    fetched = None
    for cut in range(int(len(whole) * kept), int(len(whole) * kept) + 60, 7):
        server.say(whole[:cut].encode())
        fetched = await Feed().fetch(server.http, Place(server.base))
        assert {chapter.number.number for chapter in fetched.chapters} <= {Decimal(at) for at in range(101, 121)}
        assert all(chapter.id == f"g{chapter.number.number}" for chapter in fetched.chapters)
    assert fetched is not None
    assert len(fetched.chapters) >= 8


PARTS = (
    *("<rss>", "<channel>", "<item>", "<title>", "Chapter 1", "</title>", "</item>", "</channel>", "</rss>", "<entry>"),
    *("<feed xmlns='http://www.w3.org/2005/Atom'>", "</feed>", "<link href='x'/>", "<guid>", "</guid>", "<?xml?>"),
    *("&", "<", ">", "<![CDATA[", "]]>", "<!--", "-->", "&amp;", "&#0;", "\x00", '"', "é", "\ud7ff"),
)
PIECES = st.lists(st.sampled_from(PARTS), max_size=25).map("".join)


@settings(max_examples=300)
@given(PIECES)
def test_no_document_is_too_odd(text: str) -> None:
    """Any pieces in any order are a document, broken, or unreadable."""
    try:
        assert isinstance(feed_xml.parse(decoded(text.encode(), "")), Document)
    except (feed_xml.Broken, Unreadable):
        return


@given(st.binary(max_size=200), st.text(max_size=40))
def test_no_bytes_are_too_odd(data: bytes, content_type: str) -> None:
    """Any bytes under any label are some text without what XML forbids."""
    text = decoded(data, content_type)
    assert "\x00" not in text
    text.encode()


async def test_ids_too_long_to_keep_stay_apart(server: Canned) -> None:
    """A long id is kept by its digest: two of them are two, and the same is the same again."""
    long = "x" * 3000
    server.say(rss(*(f"<item><title>Chapter {at}</title><guid>{long}{at}</guid></item>" for at in (1, 2))).encode())
    one, two = (await Feed().fetch(server.http, Place(server.base))).chapters
    assert one.id != two.id
    assert len(one.id) < 100
    assert [chapter.id for chapter in (await Feed().fetch(server.http, Place(server.base))).chapters] == [
        one.id,
        two.id,
    ]
