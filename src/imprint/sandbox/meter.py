"""A meter: how many calls somebody has left in a window of time, as the rate headers of real servers tell it."""

from dataclasses import dataclass, field


@dataclass
class Meter:
    """So many calls, or points, in so many seconds for each key; a window begins at a full multiple of its length."""

    limit: int
    seconds: int
    _used: dict[str, tuple[float, int]] = field(default_factory=dict)

    def take(self, key: str, now: float, points: int = 1) -> bool:
        """Count a call; False when it is one too many, which counts nothing."""
        window, used = self._window(key, now)
        if used + points > self.limit:
            return False
        self._used[key] = (window, used + points)
        return True

    def left(self, key: str, now: float) -> int:
        """Say how much is left."""
        return self.limit - self._window(key, now)[1]

    def resets_at(self, now: float) -> float:
        """Say when it is counted anew."""
        return now - now % self.seconds + self.seconds

    def _window(self, key: str, now: float) -> tuple[float, int]:
        begun = now - now % self.seconds
        window, used = self._used.get(key, (begun, 0))
        return (begun, used) if window == begun else (begun, 0)
