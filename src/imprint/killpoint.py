"""Kill points: the named places in the protocol at which a crash matters.

The proof watches them and dies there on purpose. Nobody else can: no setting and no variable of the environment leads
here, only code that calls `watch` in its own process; for everybody else passing one is a look at a None.
"""

from collections.abc import Callable, Mapping
from typing import ClassVar

Passed = Callable[[str], None]

POINTS: Mapping[str, str] = {
    "clock_before_commit": "rows are marked and jobs are put in, nothing of it is committed",
    "clock_after_commit": "what is due has been handed to the queue",
    "claim_before_commit": "the lease is taken, but not committed",
    "claim_after_commit": "the lease is taken, nothing is done yet",
    "upload_under_way": "some bytes of a file have gone",
    "upload_before_id": "the platform has a file, its id is in memory only",
    "upload_after_id": "the id of the file is committed",
    "intent_before": "everything is uploaded, the intent is not made",
    "intent_after": "the intent is committed, nothing has left",
    "request_left": "the bytes of a request have left, no answer is read",
    "folder_before_appears": "a folder is whole, but hidden",
    "folder_after_appears": "a folder can be seen, nobody knows yet",
    "answer_read": "the platform has answered, nothing is recorded",
    "record_before_commit": "the result is written, but not committed",
    "record_after_commit": "the result is recorded, the job is not done",
    "look_taken": "an unknown publication is ours to look for",
    "look_answered": "somebody has looked, nothing is recorded",
    "look_before_commit": "what the look told is written, but not committed",
    "look_after_commit": "what the look told is recorded",
}


class _Watch:
    passed: ClassVar[Passed | None] = None


def here(name: str) -> None:
    """Pass a kill point."""
    if _Watch.passed is not None:
        _Watch.passed(name)


def watch(passed: Passed) -> None:
    """Be told of every kill point that this process passes."""
    _Watch.passed = passed
