"""Broken feeds: feedparser saves what can be saved, in a process of its own that is killed when it takes too long.

The reason is measured: quadratic regular expressions keep feedparser 6 busy for minutes with a few hundred kilobytes.
"""

import asyncio
import io
import json
import re
import resource
import sys
from contextlib import suppress
from typing import Any, cast

from imprint.sources.contract import Unreadable
from imprint.sources.feed_document import LONGEST_READ, MOST_ITEMS, Document, Entry
from imprint.sources.feed_xml import every

SECONDS = 5  # of the clock, and of the processor
MEMORY = 1024 * 1024 * 1024
_FIELDS = ("id", "title", "link", "published", "updated", "author", "language")
_OPENED, _CLOSED = (
    re.compile(r"<(?:item|entry)[\s>]", re.IGNORECASE),
    re.compile(r"</(?:item|entry)\s*>", re.IGNORECASE),
)


async def salvage(text: str, why: str) -> Document:
    """Save what can be saved of a document that is broken (why: given); raise Unreadable when that is nothing."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(SECONDS + 5):
            out, _ = await process.communicate(text.encode())
    except TimeoutError as error:
        raise Unreadable("feed.too_costly", f"The feed is broken ({why}), and reading it took too long.") from error
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode:
        raise Unreadable("feed.too_costly", f"The feed is broken ({why}), and reading it cost too much.")
    found = json.loads(out)
    entries = tuple(Entry(**each) for each in found["entries"])
    if not entries:
        what = "nothing in it could be saved" if found["version"] else "it does not look like a feed"
        raise Unreadable("feed.broken", f"The feed is broken ({why}), and {what}.")
    broken = {}
    if _cut_off(text):
        # Half a title is worse than none: «Chapter 12» cut short would be a new chapter 1.
        broken[len(entries) - 1] = f"the feed is broken in the middle of this item ({why})"
    return Document(entries, broken, found["title"], found["language"], every(found), left_off=found["left_off"])


def _cut_off(text: str) -> bool:
    opened = [found.start() for found in _OPENED.finditer(text)]
    closed = [found.start() for found in _CLOSED.finditer(text)]
    return bool(opened) and (not closed or opened[-1] > closed[-1])


def _feedparser(data: bytes) -> dict[str, Any]:
    """Call feedparser; bytes in a stream, because it opens or fetches what it takes for a name or a URL."""
    import feedparser  # noqa: PLC0415 - only the child pays for it

    headers = {"content-type": "application/xml; charset=utf-8"}
    return cast(
        "dict[str, Any]",
        feedparser.parse(io.BytesIO(data), response_headers=headers, sanitize_html=False, resolve_relative_uris=False),
    )


def _text(value: object) -> str | None:
    return value[:LONGEST_READ] if isinstance(value, str) and value else None


def main() -> None:
    """Read a document from the standard input, write its entries as JSON."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    with suppress(ValueError, OSError):  # some systems know no such limit
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    parsed = _feedparser(sys.stdin.buffer.read())
    about = parsed["feed"]
    entries = [{name: _text(entry.get(name)) for name in _FIELDS} for entry in parsed["entries"][:MOST_ITEMS]]
    found = {
        "version": parsed.get("version") or "",
        "entries": entries,
        "left_off": len(parsed["entries"]) > MOST_ITEMS,
        "title": _text(about.get("title")),
        "language": _text(about.get("language")),
        "ttl": _text(about.get("ttl")) or "",
        "updateperiod": _text(about.get("sy_updateperiod")) or "",
        "updatefrequency": _text(about.get("sy_updatefrequency")) or "1",
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
