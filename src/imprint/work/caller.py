"""A caller: a person who is here, by a session or by a key; what they may do, and whose things they see."""

from dataclasses import dataclass, field
from uuid import UUID

from imprint.work.scope import allowed


@dataclass(frozen=True)
class Caller:
    """Who asks; `owner` is the person whose things they see, which for a reader is somebody else."""

    person: str
    name: str
    role: str
    owner: str
    scopes: frozenset[str]
    session: UUID | None = None
    key: UUID | None = None
    # What a page of ours must send along to change something; nobody else can know it.
    csrf: str = field(default="", repr=False)

    @classmethod
    def of(
        cls,
        person: str,
        name: str,
        role: str,
        looks_at: str | None,
        *,
        scopes: list[str] | None = None,
        session: UUID | None = None,
        key: UUID | None = None,
        csrf: str = "",
    ) -> "Caller":
        """Say what a person may do who came in with this."""
        return cls(person, name, role, looks_at or person, allowed(role, scopes), session, key, csrf)
