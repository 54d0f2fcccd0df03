"""The lifecycle of a derivation: a variant made from content."""

from enum import StrEnum

from imprint.lifecycles.lifecycle import Lifecycle, Move


class DerivationStatus(StrEnum):
    """Where a variant stands."""

    CREATED = "created"
    PROCESSING = "processing"
    PROCESSED = "processed"
    FAILED = "failed"


S = DerivationStatus

DERIVATION = Lifecycle(
    table="derivation",
    states=S,
    initial=S.CREATED,
    moves=(
        Move("process", (S.CREATED,), S.PROCESSING, "a worker begins to make it"),
        Move("finish", (S.PROCESSING,), S.PROCESSED, "its bytes are stored and verified"),
        Move("fail", (S.PROCESSING,), S.FAILED, "it could not be made"),
        Move("retry", (S.FAILED,), S.PROCESSING, "it is tried again"),
        Move("remake", (S.PROCESSED,), S.PROCESSING, "it is made again"),
    ),
    needs={S.PROCESSED: ("object_id",), S.FAILED: ("error_code",)},
    bars={
        S.CREATED: ("lease_until", "object_id"),
        # What is made again has no object until it is made: nobody is shown bytes that were found to be bad.
        S.PROCESSING: ("object_id",),
        S.PROCESSED: ("lease_until", "error_code"),
        S.FAILED: ("lease_until", "object_id"),
    },
)
