"""The lifecycle of content: a stored work."""

from enum import StrEnum

from imprint.lifecycles.lifecycle import Lifecycle, Move


class ContentStatus(StrEnum):
    """Where a stored work stands."""

    CREATED = "created"
    UPLOADING = "uploading"
    UPLOADED = "uploaded"
    PROCESSING = "processing"
    PROCESSED = "processed"
    FAILED = "failed"
    ARCHIVED = "archived"


S = ContentStatus

CONTENT = Lifecycle(
    table="content",
    states=S,
    initial=S.CREATED,
    moves=(
        Move("upload", (S.CREATED, S.FAILED), S.UPLOADING, "its bytes begin to arrive"),
        Move("store", (S.CREATED, S.UPLOADING), S.UPLOADED, "its bytes are here and verified"),
        Move("process", (S.UPLOADED, S.PROCESSED, S.FAILED), S.PROCESSING, "its variants are being made"),
        Move("finish", (S.PROCESSING,), S.PROCESSED, "every variant it should have is there"),
        Move("fail", (S.UPLOADING, S.PROCESSING), S.FAILED, "the upload or a variant failed"),
        Move("archive", (S.UPLOADED, S.PROCESSED), S.ARCHIVED, "it is kept, and no longer worked with"),
    ),
    needs={S.FAILED: ("error_code",)},
    bars={S.UPLOADED: ("error_code",), S.PROCESSED: ("error_code",)},
)
