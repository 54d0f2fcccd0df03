"""JSON Feed, versions 1 and 1.1."""

import json
from typing import Any

from imprint.sources.contract import Unreadable
from imprint.sources.feed_document import MOST_ITEMS, Document, Entry
from imprint.sources.shape import Misshapen, listing, mapping, optional


def parse(text: str) -> Document:
    """Read a document; raise Unreadable when it is no JSON Feed."""
    try:
        body = mapping(json.loads(text), "the document")
        version = optional(body.get("version"), "version") or ""
        if "jsonfeed.org/version/" not in version:
            raise Unreadable("feed.not_a_feed", "This is JSON, but not a JSON Feed.")
        items = listing(body.get("items"), "items")
        title, language = optional(body.get("title"), "title"), optional(body.get("language"), "language")
    except Misshapen as error:
        raise Unreadable("feed.misshapen", f"This is not a JSON Feed: {error}.") from error
    except (ValueError, RecursionError) as error:
        raise Unreadable("feed.not_json", f"This is not JSON: {str(error)[:100]}.") from error
    entries: list[Entry] = []
    broken: dict[int, str] = {}
    for item in items[:MOST_ITEMS]:
        try:
            entries.append(_entry(mapping(item, "the item")))
        except Misshapen as error:
            broken[len(entries)] = str(error)
            entries.append(Entry())
    return Document(tuple(entries), broken, title, language, left_off=len(items) > MOST_ITEMS)


def _entry(item: dict[str, Any]) -> Entry:
    authors = item.get("authors") or [item.get("author")]
    first = authors[0] if isinstance(authors, list) else None
    return Entry(
        id=optional(item.get("id"), "id"),
        title=optional(item.get("title"), "title"),
        link=optional(item.get("url"), "url") or optional(item.get("external_url"), "external_url"),
        published=optional(item.get("date_published"), "date_published"),
        updated=optional(item.get("date_modified"), "date_modified"),
        author=optional(first.get("name"), "author") if isinstance(first, dict) else None,
        language=optional(item.get("language"), "language"),
    )
