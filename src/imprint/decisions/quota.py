"""How long to rest when a platform says how many calls it still allows: before it refuses one, not after."""

from datetime import timedelta

# While there is more than this, nobody is slowed down; from here on what is left is spread over the time that is left …
SCARCE = 20
# … but for these, which are kept for a look, a renewal, or a post with several pictures.
RESERVE = 5


def rest(remaining: int, resets_in: timedelta) -> timedelta:
    """Say how long to leave a platform alone after a call."""
    if remaining > SCARCE:
        return timedelta(0)
    usable = remaining - RESERVE
    return max(resets_in if usable <= 0 else resets_in / usable, timedelta(0))
