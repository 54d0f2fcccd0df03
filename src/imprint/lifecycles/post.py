"""The lifecycle of a post; from `scheduled` on it is a projection of its publications."""

from enum import StrEnum

from imprint.lifecycles.lifecycle import Lifecycle, Move


class PostStatus(StrEnum):
    """Where a post stands."""

    REVIEW = "review"
    DRAFT = "draft"
    SCHEDULED = "scheduled"
    UPLOADING = "uploading"
    PUBLISHING = "publishing"
    PUBLISHED = "published"
    FAILED = "failed"


S = PostStatus

POST = Lifecycle(
    table="post",
    states=S,
    initial=S.REVIEW,
    moves=(
        Move("approve", (S.REVIEW,), S.DRAFT, "it has a title and something to show"),
        Move("reopen", (S.DRAFT,), S.REVIEW, "it needs more work"),
        Move("schedule", (S.DRAFT, S.FAILED), S.SCHEDULED, "a publication of it waits for its time"),
        Move("unschedule", (S.SCHEDULED,), S.DRAFT, "every publication of it was cancelled"),
        Move("upload", (S.SCHEDULED, S.PUBLISHING), S.UPLOADING, "its files are on the way to a platform"),
        Move("publish", (S.UPLOADING,), S.PUBLISHING, "a request that publishes it is about to leave"),
        Move("wait", (S.UPLOADING, S.PUBLISHING), S.SCHEDULED, "what is left of it is due later"),
        Move("withdraw", (S.UPLOADING,), S.DRAFT, "it was cancelled before anything was published"),
        Move("complete", (S.SCHEDULED, S.PUBLISHING, S.FAILED), S.PUBLISHED, "everything that was wanted is out"),
        Move("fail", (S.SCHEDULED, S.UPLOADING, S.PUBLISHING), S.FAILED, "a publication of it failed or is unknown"),
        Move("rework", (S.FAILED,), S.DRAFT, "a person takes it back to change it"),
    ),
)
