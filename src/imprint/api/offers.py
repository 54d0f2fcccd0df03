"""Offers: what a caller can do with a thing as it stands, each under the name of the route that does it.

Whoever may only look is offered nothing. A lifecycle has more moves than these: a worker takes a post, a sign-in ends.
They happen, and nobody can ask for them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from imprint.lifecycles.account import ACCOUNT
from imprint.lifecycles.content import CONTENT, ContentStatus
from imprint.lifecycles.lifecycle import Lifecycle
from imprint.lifecycles.post import POST, PostStatus
from imprint.lifecycles.publication import PUBLICATION, PublicationStatus
from imprint.lifecycles.source import SOURCE, SourceStatus
from imprint.work.caller import Caller
from imprint.work.scope import Scope

Offer = dict[str, str | None]
P = PostStatus

# By which routes a move of the lifecycle is asked for. One that is not here happens by itself.
_POST: Mapping[str, tuple[str, ...]] = {
    "approve": ("ready",),
    "reopen": ("reopen",),
    "rework": ("reopen",),
    "schedule": ("schedule", "publish"),
    "unschedule": ("unschedule",),
    "withdraw": ("cancel",),
}
_ACCOUNT = {"disable": ("disable",), "enable": ("enable",)}
_SOURCE = {"disable": ("disable",), "enable": ("enable",)}
_PUBLICATION = {"retry": ("retry",)}

# What leads to no other state, or not to one that can be said beforehand.
_EDIT, _DUPLICATE, _DELETE = (
    ("edit", "it is to read otherwise"),
    ("duplicate", "to have another like it"),
    ("delete", ""),
)
_STOP = ("cancel", "what has not left is not to go, and what failed is let go of")
_OF_POST: Mapping[str, tuple[tuple[str, str], ...]] = {
    P.REVIEW: (_EDIT, _DUPLICATE, _DELETE),
    P.DRAFT: (_EDIT, _DUPLICATE, _DELETE),
    P.SCHEDULED: (
        ("reschedule", "it is to go at another time"),
        ("publish", "it is to go now"),
        _STOP,
        _EDIT,
        _DUPLICATE,
        _DELETE,
    ),
    P.UPLOADING: (_DUPLICATE, _DELETE),
    P.PUBLISHING: (_DUPLICATE,),
    P.PUBLISHED: (_DUPLICATE, _DELETE),
    P.FAILED: (("retry", "what failed is to be tried again"), _STOP, _EDIT, _DUPLICATE, _DELETE),
}
# While nobody knows whether it is out, and when nothing of it failed but something is unknown.
_NOT_UNKNOWN = {"reopen", "edit", "delete"}
_ONLY_FAILED = {"retry", "cancel"}


def to(me: Caller, scope: Scope, moves: Iterable[tuple[str, str]]) -> list[Offer]:
    """Offer moves, each a name and why one makes it, to a caller who has the scope that they need."""
    return allowed(me, scope, [_more(each) for each in moves])


def of_post(me: Caller, status: str, publications: Sequence[str] | None = None) -> list[Offer]:
    """Say what can be done with a post; with the states of its publications exactly, without them by its own alone."""
    barred: set[str] = set()
    if publications is not None and PublicationStatus.UNKNOWN in publications:
        barred |= _NOT_UNKNOWN
    if publications is not None and status == P.FAILED and PublicationStatus.FAILED not in publications:
        barred |= _ONLY_FAILED
    offers = [*_asked(POST, status, _POST), *map(_more, _OF_POST[status])]
    return allowed(me, Scope.POSTS_WRITE, offers, barred)


def of_content(me: Caller, status: str, *, deleted: bool = False, purged: bool = False) -> list[Offer]:
    """Say what can be done with a content; one that is deleted can only be taken back, while its bytes are there."""
    if deleted:
        return [] if purged else to(me, Scope.CONTENT_WRITE, [("restore", "it is wanted again")])
    process = "retry" if status == ContentStatus.FAILED else "derive"
    asked = {"process": (process,), "archive": ("archive",)}
    return allowed(me, Scope.CONTENT_WRITE, [*_asked(CONTENT, status, asked), _more(_DELETE)])


def of_account(me: Caller, status: str, *, default: bool) -> list[Offer]:
    """Say what can be done with an account."""
    more = [("reconnect", "to sign in anew"), ("default", "to publish there when none is named"), ("remove", "")]
    offers = [*_asked(ACCOUNT, status, _ACCOUNT), *map(_more, more)]
    return allowed(me, Scope.ACCOUNTS_WRITE, offers, {"default"} if default else ())


def of_publication(me: Caller, status: str, *, dismissed: bool) -> list[Offer]:
    """Say what can be done with a publication by itself; the rest is done with its post."""
    if status == PublicationStatus.UNKNOWN:
        return to(me, Scope.POSTS_WRITE, [("resolve", "a person has looked whether it is out")])
    return [] if dismissed else allowed(me, Scope.POSTS_WRITE, _asked(PUBLICATION, status, _PUBLICATION))


def of_source(me: Caller, status: str, *, polling: bool) -> list[Offer]:
    """Say what can be done with a source."""
    more = [("poll", "a person wants it asked now"), ("remove", "")]
    barred = {"poll"} if polling or status == SourceStatus.DISABLED else set()
    return allowed(me, Scope.SERIES_WRITE, [*_asked(SOURCE, status, _SOURCE), *map(_more, more)], barred)


def _asked(of: Lifecycle, status: str, routes: Mapping[str, tuple[str, ...]]) -> list[Offer]:
    """Give the moves of a lifecycle that can be asked for; where two lead elsewhere under one name, the first."""
    found: dict[str, Offer] = {}
    for arrow in of.open_to(status):
        for name in routes.get(arrow.name, ()):
            found.setdefault(name, {"name": name, "to": str(arrow.target), "why": arrow.why})
    return list(found.values())


def _more(given: tuple[str, str]) -> Offer:
    return {"name": given[0], "to": None, "why": given[1] or "it is not wanted any more"}


def allowed(me: Caller, scope: Scope, offers: Sequence[Offer], barred: Collection[str] = ()) -> list[Offer]:
    """Leave out what is barred now; for a caller without the scope, everything."""
    return [each for each in offers if each["name"] not in barred] if scope in me.scopes else []
