"""Places: addresses and KIND:ID, and the hosts that are asked there."""

from pathlib import Path

import pytest

from imprint.problem import Problem
from imprint.settings import load
from imprint.work import place as places
from imprint.work.place import Place

UUID = "a1c7c817-4e59-43b7-9365-09675a149a6f"


@pytest.mark.parametrize(
    ("text", "kind", "ref", "host"),
    [
        (f"https://mangadex.org/title/{UUID}/one-piece", "mangadex", UUID, "api.mangadex.org"),
        (f"https://api.mangadex.org/manga/{UUID}/feed", "mangadex", UUID, "api.mangadex.org"),
        (f"mangadex:{UUID.upper()}", "mangadex", UUID, "api.mangadex.org"),
        ("https://mangapark.net/title/10953-en-one-piece", "mangapark", "10953", "mangapark.net"),
        ("mangapark:10953", "mangapark", "10953", "mangapark.net"),
        ("https://example.org/feed.xml#top", "feed", "https://example.org/feed.xml", "example.org"),
        ("feed:https://EXAMPLE.org:8080/a?b=c", "feed", "https://EXAMPLE.org:8080/a?b=c", "example.org"),
        (f"https://evil.example/title/{UUID}", "feed", f"https://evil.example/title/{UUID}", "evil.example"),
        (f"https://notmangadex.org/title/{UUID}", "feed", f"https://notmangadex.org/title/{UUID}", "notmangadex.org"),
        (" https://mangadex.org/about ", "feed", "https://mangadex.org/about", "mangadex.org"),
    ],
)
def test_what_a_person_gives_is_read(text: str, kind: str, ref: str, host: str, home: Path) -> None:
    """The site's own pages and its API name a series; everything else is a feed."""
    settings = load({"IMPRINT_HOME": str(home)})
    found = places.read(text, settings)
    assert (found, places.host(found, settings)) == (Place(kind, ref), host)
    assert 1 <= len(found.name) <= 100


@pytest.mark.parametrize(
    "text",
    ["", "one piece", "ftp://example.org/", "https://", "https://u:p@example.org/", "https://[::1/", "mangadex:12",
     "mangapark:abc", "feed:nothing", "https://example.org/\tx", "https://example.org:99999/",
     "https://e.org/" + "x" * 2000],
)  # fmt: skip
def test_what_is_no_place_is_refused(text: str, home: Path) -> None:
    """In a sentence, whatever it is."""
    with pytest.raises(Problem) as refused:
        places.read(text, load({"IMPRINT_HOME": str(home)}))
    assert refused.value.code == "source.bad_place"
