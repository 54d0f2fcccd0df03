"""Tidings: what somebody elsewhere is told, a person in a message or a program at a webhook."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from imprint.decisions.chapter_number import ChapterNumber, Kind
from imprint.decisions.message import Message, News

ABOVE = {
    "published": "Published: {}",
    "failed": "Not published: {}",
    "unknown": "Is this out? {}",
    "reconnect": "Sign in again: {}",
}


@dataclass(frozen=True)
class Chapter:
    """A chapter that a message tells of."""

    series: str
    kind: str
    slug: str
    number: Decimal | None
    number_end: Decimal | None
    volume: Decimal | None
    season: int | None
    version: int | None
    title: str | None
    url: str | None

    def news(self) -> News:
        """Give it as a person is told of it."""
        named = ChapterNumber(
            Kind(self.kind), self.slug, self.number, self.number_end, self.volume, self.season, self.version
        )
        return News(self.series, named.label, self.title or "", self.url or "")

    def data(self) -> dict[str, Any]:
        """Give it as a program is told of it."""
        news = self.news()
        number = None if self.number is None else f"{self.number:f}"
        return {"series": self.series, "number": number, "label": news.label, "title": self.title, "url": self.url}


@dataclass(frozen=True)
class Tidings:
    """What became of a publication, or of an account."""

    news: str
    happened_at: datetime
    publication_id: UUID | None
    post_id: UUID | None
    title: str | None
    account_id: UUID
    platform: str
    account: str
    url: str | None
    code: str | None
    why: str | None

    def message(self) -> Message:
        """Give it as a person is told of it."""
        what = f"{self.title} on {self.account}" if self.title else self.account
        lines = (self.url if self.news == "published" else self.why, f"{self.platform}, {self.account}")
        return Message(ABOVE[self.news].format(what), "\n".join(filter(None, lines)))

    def data(self) -> dict[str, Any]:
        """Give it as a program is told of it."""
        return {
            "publicationId": self.publication_id and str(self.publication_id),
            "postId": self.post_id and str(self.post_id),
            "title": self.title,
            "accountId": str(self.account_id),
            "platform": self.platform,
            "account": self.account,
            "url": self.url,
            "code": self.code,
            "why": self.why,
        }
