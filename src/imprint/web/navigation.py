"""The navigation: every page there is, in the order in which people need them."""

from collections.abc import Collection
from dataclasses import dataclass

from imprint.api.gate import SELF, SIGNED_IN
from imprint.work.caller import Caller
from imprint.work.scope import Scope


@dataclass(frozen=True)
class Entry:
    """A page one can go to, who may, and its sign in `icons.html`."""

    path: str
    name: str
    icon: str
    scope: str
    phone: bool = False  # one of the few that stand at the bottom of a phone

    def holds(self, path: str) -> bool:
        """Say whether a page is one of those behind this entry."""
        own = any(entry.path == path for entry in ENTRIES)
        return self.path in WITH_PARTS and path.startswith(f"{self.path}/") and not own


ENTRIES = (
    Entry("/", "Calendar", "calendar", Scope.POSTS_READ, phone=True),
    Entry("/posts", "Posts", "posts", Scope.POSTS_READ, phone=True),
    Entry("/posts/new", "New post", "new", Scope.POSTS_WRITE, phone=True),
    Entry("/batches", "Batches", "batches", Scope.POSTS_READ),
    Entry("/accounts", "Accounts", "accounts", Scope.ACCOUNTS_READ),
    Entry("/series", "Series", "series", Scope.SERIES_READ),
    Entry("/notices", "Notices", "notices", Scope.NOTICES_READ, phone=True),
    Entry("/dead-letters", "Dead letters", "letters", Scope.NOTICES_READ),
    Entry("/health", "Health", "health", Scope.SYSTEM_READ),
    Entry("/settings", "Settings", "settings", SELF),
)
# Entries with pages behind them that have no entry of their own.
WITH_PARTS = {"/posts", "/batches", "/accounts", "/series", "/notices", "/dead-letters", "/settings"}


def open_to(caller: Caller, paths: Collection[str]) -> list[Entry]:
    """Give the entries that lead somewhere and are open to who looks."""
    may = {*caller.scopes, SELF, SIGNED_IN}
    return [each for each in ENTRIES if each.path in paths and each.scope in may]
