"""Scopes: what somebody may do, as `thing:read` or `thing:write`; a role has some, and a key has some of those."""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from imprint.problem import Problem


class Role(StrEnum):
    """What a person is here."""

    ADMINISTRATOR = "administrator"  # has things of their own, and looks after people and the machine
    MEMBER = "member"  # has things of their own
    READER = "reader"  # looks at somebody else's things


class Scope(StrEnum):
    """One thing that may be done; whoever may write may read."""

    POSTS_READ = "posts:read"
    POSTS_WRITE = "posts:write"
    CONTENT_READ = "content:read"
    CONTENT_WRITE = "content:write"
    ACCOUNTS_READ = "accounts:read"
    ACCOUNTS_WRITE = "accounts:write"
    SERIES_READ = "series:read"
    SERIES_WRITE = "series:write"
    NOTICES_READ = "notices:read"
    NOTICES_WRITE = "notices:write"
    PEOPLE_READ = "people:read"
    PEOPLE_WRITE = "people:write"
    SYSTEM_READ = "system:read"
    SYSTEM_WRITE = "system:write"


OF_MACHINE = {Scope.PEOPLE_READ, Scope.PEOPLE_WRITE, Scope.SYSTEM_READ, Scope.SYSTEM_WRITE}
OF_ROLE: Mapping[str, frozenset[str]] = {
    Role.ADMINISTRATOR: frozenset(Scope),
    Role.MEMBER: frozenset(Scope) - OF_MACHINE,
    Role.READER: frozenset(each for each in Scope if each.endswith(":read")) - OF_MACHINE,
}


def checked(given: Iterable[str], role: str) -> list[str]:
    """Read scopes that a person wants for a key: known ones, that they have themselves."""
    wanted = sorted(set(given))
    if unknown := [each for each in wanted if each not in set(Scope)]:
        raise Problem("scope.unknown", f"There is no scope {unknown[0][:60]!r}; there are {', '.join(Scope)}.")
    if beyond := [each for each in wanted if each not in OF_ROLE[role]]:
        raise Problem("scope.beyond", f"A {role} cannot give {beyond[0]} away.")
    if not wanted:
        raise Problem("scope.none", f"Name at least one scope: {', '.join(sorted(OF_ROLE[role]))}.")
    return wanted


def allowed(role: str, of_key: Iterable[str] | None = None) -> frozenset[str]:
    """Give what somebody may do: what the role may, and with a key only what that was given for."""
    of_role = OF_ROLE[role]
    if of_key is None:
        return of_role
    given = set(of_key)
    given |= {each.replace(":write", ":read") for each in given}
    return of_role & given
