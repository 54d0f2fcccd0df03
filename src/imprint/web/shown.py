"""How things are shown: states with a colour and a word, times that a script tells in the reader's own way."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup


@dataclass(frozen=True)
class Badge:
    """A state as people read it: a tone for its colour, a sign, a word."""

    tone: str
    sign: str
    word: str


# Posts, publications, contents, accounts and sources; a word of its own where the state's name would say too little.
BADGES: Mapping[str, Badge] = {
    "review": Badge("plain", "✎", "in review"),
    "draft": Badge("plain", "✓", "ready"),
    "scheduled": Badge("waiting", "◷", "scheduled"),
    "pending": Badge("waiting", "◷", "waiting"),
    "uploading": Badge("moving", "↑", "uploading"),
    "publishing": Badge("moving", "➤", "publishing"),
    "running": Badge("moving", "➤", "on its way"),
    "processing": Badge("moving", "↻", "processing"),
    "published": Badge("good", "✔", "published"),
    "success": Badge("good", "✔", "published"),
    "processed": Badge("good", "✔", "ready"),
    "uploaded": Badge("good", "✔", "uploaded"),
    "connected": Badge("good", "●", "connected"),
    "active": Badge("good", "●", "active"),
    "failed": Badge("bad", "✖", "failed"),
    "unknown": Badge("asking", "?", "unknown"),
    "late": Badge("asking", "!", "late"),
    "reconnect": Badge("asking", "!", "sign in again"),
    "resting": Badge("asking", "‖", "resting"),
    "cancelled": Badge("faint", "○", "cancelled"),
    "disabled": Badge("faint", "○", "disabled"),
    "archived": Badge("faint", "▤", "archived"),
    "created": Badge("plain", "○", "new"),
    "waits": Badge("waiting", "◷", "waits to begin"),
    "runs": Badge("moving", "➤", "running"),
    "paused": Badge("asking", "‖", "paused"),
    "over": Badge("plain", "✓", "over"),
}


# How people write the names of platforms.
NAMES = {
    "bluesky": "Bluesky",
    "deviantart": "DeviantArt",
    "folder": "Folder",
    "mastodon": "Mastodon",
    "webhook": "Webhook",
    "wordpress": "WordPress",
}


def badge(state: str) -> Badge:
    """Give the badge of a state."""
    return BADGES.get(state) or Badge("plain", "○", state)


def when(moment: datetime | None, style: str = "moment") -> Markup:
    """Write a time; the text is for who reads without scripts, `when.js` tells it in the reader's language and zone.

    Styles: `moment` day and time, `day`, `clock`, `ago` such as “in 3 hours”.
    """
    if moment is None:
        return Markup('<span class="faint">none</span>')
    utc = moment.astimezone(UTC)
    text = utc.strftime("%-d %b %Y" if style == "day" else "%-d %b %Y, %H:%M UTC")
    return Markup('<time datetime="{}" data-when="{}">{}</time>').format(
        utc.isoformat(timespec="seconds").replace("+00:00", "Z"), style, text
    )


def platform_name(platform: str) -> str:
    """Give the name of a platform as people write it."""
    return NAMES.get(platform, platform)


def count(number: int, one: str, many: str | None = None) -> str:
    """Count things in words: 1 file, 2 files."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def size(number: int | None) -> str:
    """Write a number of bytes for people."""
    if number is None:
        return "unknown"
    amount = float(number)
    for unit in ("bytes", "kB", "MB"):
        if amount < 1000:  # noqa: PLR2004 - a thousand of one is one of the next
            return f"{amount:.0f} {unit}" if unit == "bytes" or amount >= 10 else f"{amount:.1f} {unit}"  # noqa: PLR2004
        amount /= 1000
    return f"{amount:.1f} GB"


FILTERS: Mapping[str, Callable[..., Any]] = {
    "badge": badge,
    "when": when,
    "count": count,
    "size": size,
    "platform": platform_name,
}
