"""Explaining: why a post did, or did not, go out; the whole story of each publication, and what happens next."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from imprint.lifecycles.post import PostStatus
from imprint.log import hide_in_text
from imprint.store.query import Link, query
from imprint.work.outlook import WAITS, Outlook, Standing, outlook
from imprint.work.post import missing_post
from imprint.work.prefix import Candidate, bounds, picked
from imprint.work.story import Step, story

# The states of a post as a person would say them, and what they mean.
STATES = {
    PostStatus.REVIEW: "in review: it is not declared ready yet",
    PostStatus.DRAFT: "a draft: it is ready, but planned nowhere",
    PostStatus.SCHEDULED: "scheduled: what is planned of it waits",
    PostStatus.UPLOADING: "on its way: its files are being uploaded",
    PostStatus.PUBLISHING: "on its way: the request that publishes it is leaving",
    PostStatus.PUBLISHED: "published: everything that was wanted is out",
    PostStatus.FAILED: "failed: something of it failed, or nobody can tell whether it is out",
}


@dataclass(frozen=True)
class Found:
    """A post, or one publication of it, that was asked about."""

    post: UUID
    publication: UUID | None
    title: str
    status: str
    deleted: bool


@dataclass(frozen=True)
class Told:
    """One publication: where it stands, what happened, what happens next."""

    standing: Standing
    next: Outlook
    steps: list[Step]

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        of = self.standing
        circuit = {"until": of.circuit_until, "why": hide_in_text(of.circuit_why or "")} if of.circuit else None
        return {
            "id": of.id,
            "platform": of.platform,
            "account": of.account,
            "accountStatus": of.account_status,
            "file": of.file,
            "status": of.status,
            "statusAt": of.status_at,
            "scheduledAt": of.scheduled_at,
            "actualPublishAt": of.due_at,
            "attempts": of.attempts,
            "crashes": of.crashes,
            "looks": of.looks,
            "lookAt": of.look_at,
            "heldUntil": of.held_until,
            "batch": of.batch,
            "waitsFor": WAITS.get(of.held_why, of.held_why) if of.held_why else None,
            "circuit": circuit,
            "latePolicy": of.late_policy,
            "errorCode": of.error_code,
            "remoteId": of.remote_id,
            "url": of.url,
            "publishedAt": of.published_at,
            "next": self.next.as_data(),
            "story": [step.as_data() for step in self.steps],
        }


@dataclass(frozen=True)
class Explained:
    """A post and each of its publications, or the one that was asked about."""

    found: Found
    steps: list[Step]
    publications: list[Told]

    @property
    def headline(self) -> str:
        """Say what the post is, and how it stands."""
        stands = "deleted" if self.found.deleted else STATES[PostStatus(self.found.status)]
        return f"“{self.found.title}” is {stands}."

    @property
    def do(self) -> tuple[str, ...]:
        """Give the commands that help when nothing of it is planned."""
        if self.found.deleted:
            return ()
        if self.found.status == PostStatus.REVIEW:
            return (f"imprint post ready {self.found.post}",)
        return f"imprint post schedule {self.found.post} --at TIME", f"imprint post publish {self.found.post}"

    @property
    def next(self) -> str:
        """Say what happens next with the post itself when nothing of it is planned."""
        if self.found.deleted:
            return "Nothing: the post is deleted."
        if self.found.status == PostStatus.REVIEW:
            return "Nothing by itself: it is in review; declare it ready, then schedule it."
        return "Nothing by itself: it is planned nowhere; schedule it or publish it."

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        found = self.found
        post = {"id": found.post, "title": found.title, "status": found.status, "deleted": found.deleted}
        return {
            "post": {**post, "story": [step.as_data() for step in self.steps]},
            "publications": [each.as_data() for each in self.publications],
        }


FOUND = query("explain_found", Found)
STANDING = query("explain_standing", Standing)


async def explain(connection: Link, owner: str, text: str, *, late_hours: int = 24) -> Explained:
    """Explain a post or a publication, named by its id or the first letters of it."""
    found = await _found(connection, owner, text)
    standings = await STANDING.all(connection, found.post, found.publication)
    steps = await story(connection, [found.post, *(each.id for each in standings)])
    return Explained(
        found,
        [step for step in steps if step.of is None],
        [Told(each, outlook(each, late_hours), [s for s in steps if s.of == each.id]) for each in standings],
    )


async def _found(connection: Link, owner: str, text: str) -> Found:
    found = {each.publication or each.post: each for each in await FOUND.all(connection, *bounds(text), owner)}
    candidates = [Candidate(key, each.title, exact=False) for key, each in found.items()]
    return found[picked(text, candidates, missing_post())]
