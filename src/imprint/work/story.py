"""A story: what happened to a post and its publications, one step after the other, each in a plain sentence.

The audit knows the moves, the attempts know what the platform said, the log has the lines for people. What was written
in one transaction is one step.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from imprint.lifecycles.post import PostStatus
from imprint.log import hide_in_text
from imprint.store.query import Link, query
from imprint.work.naming import to_camel

# What one transaction writes has times that differ by its statements; two transactions of one publication lie apart.
TOGETHER = timedelta(seconds=1)
ORDER = {"ended": 0, "move": 1, "log": 2}
# Steps of their own, whatever comes right after them.
BEGINNINGS = {"create", "claim"}
WITH_ITS_AUTHOR = {PostStatus.REVIEW, PostStatus.DRAFT}
SENTENCES = {"create": "It was planned", "cancel": "It was cancelled", "retry": "It is tried again"}


@dataclass(frozen=True)
class Happened:
    """One line of the audit, of an attempt or of the log; `of` is the publication, None for the post itself."""

    of: UUID | None
    at: datetime
    kind: str
    name: str
    source: str | None
    target: str | None
    actor: str | None
    text: str | None
    code: str | None
    stage: str | None
    http_status: int | None
    until: datetime | None


@dataclass(frozen=True)
class Step:
    """What happened at once: a sentence, who did it, the move, and what is known of the attempt."""

    at: datetime
    of: UUID | None
    what: str
    sentence: str
    who: str | None = None
    source: str | None = None
    target: str | None = None
    attempt: int | None = None
    outcome: str | None = None
    code: str | None = None
    stage: str | None = None
    http_status: int | None = None
    until: datetime | None = None
    request_sha256: str | None = None

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data, without what is not known."""
        data = {to_camel(name): value for name, value in asdict(self).items() if name != "of" and value is not None}
        return {("from" if name == "source" else "to" if name == "target" else name): data[name] for name in data}

    @property
    def evidence(self) -> str:
        """Say what is behind the sentence, in a few words."""
        known = [self.code, self.stage and f"stage {self.stage}", self.http_status and f"HTTP {self.http_status}"]
        return ", ".join(str(each) for each in known if each)


STORY = query("explain_story", Happened)


async def story(connection: Link, rows: Sequence[UUID]) -> list[Step]:
    """Tell what happened to a post and some publications, given by their ids."""
    return told(await STORY.all(connection, list(rows)))


def told(lines: Iterable[Happened]) -> list[Step]:
    """Make one step of what was written together; what a post does only because its publications do is left out."""
    steps: list[Step] = []
    last: dict[UUID, tuple[int, Happened]] = {}  # of each publication: the step that may still grow, and its last line
    tries: Counter[UUID] = Counter()
    for line in lines:
        if line.of is None:
            if line.target in WITH_ITS_AUTHOR:
                steps.append(_of_post(line))
            continue
        if line.name == "claim" and line.kind == "move":
            tries[line.of] += 1
        if line.of in last and _together(last[line.of][1], line):
            number = last[line.of][0]
            steps[number] = _joined(steps[number], line)
        else:
            number = len(steps)
            steps.append(_begun(line, tries[line.of]))
        last[line.of] = number, line
    return steps


def _together(before: Happened, line: Happened) -> bool:
    """Say whether two lines that follow each other were written in one transaction: ended, then moved, then told."""
    return (
        line.at - before.at < TOGETHER
        and ORDER.get(before.kind, len(ORDER)) < ORDER.get(line.kind, -1)
        and not (line.kind == "move" and line.name in BEGINNINGS)
        and not (before.kind == "move" and before.name in BEGINNINGS)
        and line.name != "uploaded"
    )


def _begun(line: Happened, attempt: int) -> Step:
    step = Step(line.at, line.of, line.name, "", attempt=attempt or None)
    match line.kind:
        case "intent":
            sentence = "The request that publishes is about to leave."
            return replace(step, sentence=sentence, who=line.actor, until=line.until, request_sha256=line.text)
        case "ended":
            sentence = _sentence(line.text or {"published": "It is out."}.get(line.name, f"It ended: {line.name}."))
            known = {"code": line.code, "stage": line.stage, "http_status": line.http_status}
            return replace(step, sentence=sentence, who=line.actor, outcome=line.name, **known)  # type: ignore[arg-type]
        case "move":
            return replace(step, sentence=_moved(line, attempt), who=line.actor, source=line.source, target=line.target)
        case _:
            return replace(step, sentence=_sentence(line.text or ""), code=line.code)


def _joined(step: Step, line: Happened) -> Step:
    if line.kind == "move":
        return replace(step, what=line.name, who=step.who or line.actor, source=line.source, target=line.target)
    return replace(step, what=line.name, sentence=_sentence(line.text or step.sentence), code=step.code or line.code)


def _moved(line: Happened, attempt: int) -> str:
    if line.name == "claim":
        return f"A worker took it: attempt {attempt}."
    begins = SENTENCES.get(line.name)
    if begins is None:
        return _sentence(line.text or f"{line.name}: {line.source} → {line.target}")
    return _sentence(f"{begins}: {line.text}" if line.text else begins)


def _of_post(line: Happened) -> Step:
    stands = "in review" if line.target == PostStatus.REVIEW else "a draft"
    words = "The post was written" if line.name == "create" else f"The post is {stands} now"
    sentence = _sentence(f"{words}: {line.text}" if line.text else words)
    return Step(line.at, None, line.name, sentence, line.actor, line.source, line.target)


def _sentence(text: str) -> str:
    """Make a sentence of what may be a part of one; passwords that somebody else put there are hidden."""
    clean = hide_in_text(text).strip()
    return clean[:1].upper() + clean[1:] + ("" if clean.endswith((".", "!", "?", "…", "”")) else ".")
