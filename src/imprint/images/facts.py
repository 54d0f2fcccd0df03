"""Facts: what is known of an image without looking at its pixels."""

from dataclasses import dataclass
from typing import Any, Self, get_type_hints


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
        for name, kind in get_type_hints(cls).items():
            if not isinstance(getattr(facts, name), kind):
                raise TypeError(f"{name} is not of its type")
        if min(facts.width, facts.height, facts.frames) < 1:
            raise ValueError("an image has pixels")
        return facts
