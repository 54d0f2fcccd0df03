"""The lifecycle of an object: the bytes of content in one store."""

from enum import StrEnum

from imprint.lifecycles.lifecycle import Lifecycle, Move


class ObjectStatus(StrEnum):
    """Where the bytes of a stored work stand."""

    CREATED = "created"
    UPLOADING = "uploading"
    UPLOADED = "uploaded"
    PROCESSING = "processing"
    PROCESSED = "processed"
    FAILED = "failed"


S = ObjectStatus

# Where the bytes are and what they are; known from the moment they were read through and found to be what they should.
VERIFIED = ("store", "key", "size", "sha256", "content_type")

OBJECT = Lifecycle(
    table="object",
    states=S,
    initial=S.CREATED,
    moves=(
        Move("upload", (S.CREATED, S.FAILED), S.UPLOADING, "bytes begin to arrive"),
        Move("store", (S.CREATED, S.UPLOADING), S.UPLOADED, "all bytes are in the store and verified"),
        Move("process", (S.UPLOADED, S.FAILED), S.PROCESSING, "variants are being made from it"),
        Move("finish", (S.PROCESSING,), S.PROCESSED, "the variants are there"),
        Move("fail", (S.CREATED, S.UPLOADING, S.PROCESSING), S.FAILED, "the upload or the processing failed"),
    ),
    needs={
        S.UPLOADING: ("store", "key", "expected_size", "expected_type", "nonce", "expires_at"),
        S.UPLOADED: VERIFIED,
        S.PROCESSING: VERIFIED,
        S.PROCESSED: VERIFIED,
        S.FAILED: ("error_code",),
    },
)
