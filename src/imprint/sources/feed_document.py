"""A feed's document: its entries as plain texts, whatever dialect they came in, and the bounds it must keep."""

import codecs
import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from imprint.sources.contract import Unreadable

LARGEST = 8 * 1024 * 1024  # bytes of a feed, unpacked
MOST_ITEMS = 5000
DEEPEST = 200
LONGEST_TEXT = 2000  # of a title; longer ones are cut
LONGEST_READ = 2 * LONGEST_TEXT  # of any field; what is longer than a title may be is known to be too long by then

# Decoding by some of Python's codecs takes quadratic time (idna, punycode), or runs what it reads (unicode_escape).
_CODECS = frozenset(
    (  # noqa: SIM905 - one in a line would fill two pages
        "utf-8 utf-16 utf-16-le utf-16-be utf-32 utf-32-le utf-32-be iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 "
        "iso8859-7 iso8859-8 iso8859-9 iso8859-10 iso8859-11 iso8859-13 iso8859-14 iso8859-15 iso8859-16 cp1250 cp1251 "
        "cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 cp437 cp850 cp866 cp874 cp932 cp949 cp950 koi8-r koi8-u "
        "mac-roman mac-cyrillic big5 big5hkscs gb2312 gbk gb18030 hz euc_jp euc_kr euc_jis_2004 shift_jis "
        "shift_jis_2004 iso2022_jp iso2022_kr johab tis-620"
    ).split()
)
_MARKS = (  # the longer first: UTF-32's mark begins with UTF-16's
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xfe\xff", "utf-16-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\x00<\x00?", "utf-16-be"),
    (b"<\x00?\x00", "utf-16-le"),
)
_DECLARED = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9._-]{1,40})[\"']")
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([A-Za-z0-9._-]{1,40})", re.IGNORECASE)
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")  # not in XML, but in feeds all the time
_TAG = re.compile(r"<[^<>]{0,1000}>")


@dataclass(frozen=True)
class Entry:
    """One item of a feed, as it says itself; every text is bounded by LONGEST_READ, none is empty."""

    id: str | None = None
    title: str | None = None
    link: str | None = None
    published: str | None = None
    updated: str | None = None
    author: str | None = None
    language: str | None = None


@dataclass(frozen=True)
class Document:
    """A feed."""

    entries: tuple[Entry, ...] = ()
    broken: Mapping[int, str] = field(default_factory=dict)  # which entries cannot be trusted, and why
    title: str | None = None
    language: str | None = None
    every: timedelta | None = None  # how often it says it changes
    skip_hours: frozenset[int] = frozenset()
    skip_days: frozenset[int] = frozenset()
    left_off: bool = False  # there were more entries than anybody reads


def decoded(data: bytes, content_type: str) -> str:
    """Read bytes as text: by its mark, by what the server says, by what it says itself, then by guessing."""
    if len(data) > LARGEST:
        raise Unreadable("feed.too_large", f"The feed is larger than {LARGEST:,} bytes.")
    marked = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    told, declared = _CHARSET.search(content_type), _DECLARED.search(data[:1000])
    for name in (marked, told[1] if told else None, declared[1].decode() if declared else None, "utf-8"):
        if name and (codec := _codec(name)):
            try:
                return _NO_XML.sub("", data.decode(codec).removeprefix("\ufeff"))
            except ValueError:
                continue
    # A few bad bytes do not make UTF-8 something else: most of what is not ASCII in it would be wrong then.
    lenient = data.decode("utf-8", "replace")
    strange = sum(not each.isascii() for each in lenient)
    text = lenient if lenient.count("\ufffd") * 10 < strange else data.decode("cp1252", "replace")
    return _NO_XML.sub("", text)


def _codec(name: str) -> str | None:
    try:
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        return None
    # What calls itself Latin-1 on the web is Windows-1252.
    return "cp1252" if found in {"iso8859-1", "ascii"} else found if found in _CODECS else None


def plain(text: str | None) -> str | None:
    """Make a title a person reads out of one that may hold HTML, once or twice escaped."""
    if not text:
        return None
    once = _TAG.sub(" ", html.unescape(text[:LONGEST_READ]))
    return " ".join(once.split())[:LONGEST_TEXT] or None
