"""The lifecycle of a publication: one post on one account, the unit of execution."""

from enum import StrEnum

from imprint.lifecycles.lifecycle import Lifecycle, Move


class PublicationStatus(StrEnum):
    """Where a publication stands."""

    PENDING = "pending"
    RUNNING = "running"
    UNKNOWN = "unknown"
    SUCCESS = "success"
    FAILED = "failed"
    CANCELLED = "cancelled"


S = PublicationStatus

PUBLICATION = Lifecycle(
    table="publication",
    states=S,
    initial=S.PENDING,
    moves=(
        Move("claim", (S.PENDING,), S.RUNNING, "a worker takes it"),
        Move("release", (S.RUNNING,), S.PENDING, "nothing was published; it is tried again later"),
        Move("succeed", (S.RUNNING,), S.SUCCESS, "the platform said so"),
        Move("lose", (S.RUNNING,), S.UNKNOWN, "it left, and no trustworthy answer came back"),
        Move("find", (S.UNKNOWN,), S.SUCCESS, "a look at the platform found it"),
        Move("resend", (S.UNKNOWN,), S.PENDING, "it is proven, or decided by a person, not to be out"),
        Move("cancel", (S.PENDING, S.RUNNING), S.CANCELLED, "a person stopped it before it left"),
        Move("fail", (S.PENDING, S.RUNNING), S.FAILED, "it cannot be published as it is"),
        Move("give_up", (S.UNKNOWN,), S.FAILED, "a person decided that it is not out and not wanted"),
        Move("retry", (S.FAILED,), S.PENDING, "a person wants it tried again"),
    ),
    needs={
        # A running row always has an end to its lease, so that none can be forgotten.
        S.RUNNING: ("lease_until", "phase"),
        S.UNKNOWN: ("intent_at",),
        S.SUCCESS: ("remote_id",),
        S.FAILED: ("error_code",),
    },
    bars={
        S.PENDING: ("lease_until", "phase", "intent_at"),
        S.UNKNOWN: ("lease_until", "phase"),
        S.SUCCESS: ("lease_until", "phase"),
        # What an earlier attempt may have put out is not called failed or cancelled: that has to be found out first.
        S.FAILED: ("lease_until", "phase", "left_at"),
        # What may have left cannot be called back: after the intent there is no cancelling.
        S.CANCELLED: ("lease_until", "phase", "intent_at", "left_at"),
    },
)
