"""Works and files to publish, each with a key and a title of its own."""

import random
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any
from uuid import uuid4

from imprint.platforms.work import File, Work

PNG = b"\x89PNG\r\n\x1a\n"


def picture(size: int = 200_000, seed: int = 1, name: str = "drawing.png", piece: int = 64_000) -> File:
    """Make a file of so many bytes."""
    data = PNG + random.Random(seed).randbytes(size - len(PNG))  # noqa: S311 - bytes, not secrets

    async def read() -> AsyncIterator[bytes]:
        for at in range(0, size, piece):
            yield data[at : at + piece]

    return File(name, "image/png", size, sha256(data).hexdigest(), read, alt="a drawing", width=800, height=600)


def work(**more: Any) -> Work:
    """Make a work that every platform takes."""
    unique = uuid4().hex
    made = Work(
        key=f"msg_{unique}",
        made_at=datetime(2026, 11, 15, 12, tzinfo=UTC),
        title=f"Harbour {unique[:8]}",
        description="Ink & <b>water</b>, „early“ light.\nSecond line.",
        tags=("harbour", "Ink Drawing", "été"),
        files=(picture(),),
    )
    return replace(made, **more)
