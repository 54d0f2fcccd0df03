"""Facts: what is known of an image without looking at its pixels."""

from dataclasses import dataclass, fields
from typing import Any, Self


@dataclass(frozen=True)
class Facts:
    """What an image is; width and height are those a person sees, after the EXIF orientation."""

    type: str
    width: int
    height: int
    frames: int
    has_alpha: bool
    orientation: int
    size: int

    @property
    def edge(self) -> int:
        """Give the longest edge."""
        return max(self.width, self.height)

    @property
    def pixels(self) -> int:
        """Give the pixels of one frame."""
        return self.width * self.height

    @classmethod
    def heard(cls, said: Any) -> Self:
        """Take facts from a child's answer; raise ValueError or TypeError when they cannot be ones."""
        facts = cls(**said)
        for each in fields(cls):
            if not isinstance(getattr(facts, each.name), each.type):
                raise TypeError(f"{each.name} is not of its type")
        if min(facts.width, facts.height, facts.frames) < 1:
            raise ValueError("an image has pixels")
        return facts
