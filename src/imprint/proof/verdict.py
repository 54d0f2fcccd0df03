"""The verdict: what Imprint believes of each publication beside what the sandbox has seen; the sandbox is right."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from imprint.decisions.publishing import Policy
from imprint.platforms.registry import PLATFORMS
from imprint.proof.ground import Effect
from imprint.proof.hops import Hops

# What a publication can honestly end as, besides out.
OVER = {"success", "failed", "cancelled"}
# How an attempt ended of which nobody can tell whether it is out.
UNTOLD = {"died", "no_answer", None}
# After so many a person is asked, also where the platform knows our key.
ATTEMPTS = Policy().attempts


@dataclass(frozen=True)
class End:
    """Where a publication stands, as Imprint believes."""

    id: UUID
    title: str
    platform: str
    status: str
    scheduled_at: datetime
    rests: bool
    held_why: str | None
    error_code: str | None


@dataclass(frozen=True)
class Intent:
    """An attempt whose request may have left."""

    publication_id: UUID
    worker: str | None
    outcome: str | None
    stage: str | None


@dataclass
class Verdict:
    """How many ended how, and a sentence for each that ended wrong."""

    published: int = 0
    duplicates: int = 0
    lost: int = 0
    stuck: int = 0
    early: int = 0
    unknown: int = 0
    wrong: list[str] = field(default_factory=list)


def judge(
    ends: Collection[End],
    effects: Sequence[Effect],
    intents: Mapping[UUID, Sequence[Intent]],
    victims: Collection[str],
    hops: Hops,
) -> Verdict:
    """Compare; `victims` are the workers that were killed or put to sleep."""
    seen: dict[str, list[Effect]] = defaultdict(list)
    for effect in effects:
        seen[effect.title].append(effect)
    told = Verdict()
    for end in ends:
        out = seen.pop(end.title, [])
        about = f"{end.title} on {end.platform}"
        told.published += bool(out)
        if len(out) > 1:
            told.duplicates += len(out) - 1
            told.wrong.append(f"{about} came out {len(out)} times")
        early = [each for each in out if hops.moment(each.at) < end.scheduled_at.timestamp()]
        if early:
            told.early += 1
            told.wrong.append(f"{about} came out before its time")
        if end.status == "unknown" and end.rests:
            told.unknown += 1
            if (why := _doubt(end.platform, bool(out), intents.get(end.id, ()), victims)) is not None:
                told.wrong.append(f"{about} is called unknown although {why}")
        elif end.status not in OVER:
            told.stuck += 1
            told.wrong.append(f"{about} is still {end.status} ({end.held_why or 'nobody says why'})")
        elif end.status != "success" or not out:
            told.lost += 1
            told.wrong.append(f"{about} is called {end.status} ({end.error_code}), and is out {len(out)} times")
    if seen:
        told.wrong.append(f"{len(seen)} came out that nobody had planned")
    return told


def _doubt(
    platform: str,
    out: bool,  # noqa: FBT001 - a fact
    intents: Sequence[Intent],
    victims: Collection[str],
) -> str | None:
    """Say why a publication should not be unknown; None when nobody could have told."""
    on = PLATFORMS[platform]
    if out and on.can_look:
        return "it is out, and a look shows it"
    untold = [each for each in intents if each.outcome in UNTOLD]
    if not untold:
        return "every attempt has told how it ended"
    if on.once.token and on.once.lasts is None and len(untold) < ATTEMPTS:
        return f"it could be sent again: only {len(untold)} attempts were made"
    if any(each.outcome == "no_answer" for each in untold):
        return None  # the platform broke the connection off
    if not any(each.worker in victims for each in untold):
        return "its worker was never harmed"
    return None
