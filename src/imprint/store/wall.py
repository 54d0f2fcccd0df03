"""Walls: what the database shows a connection that asks for somebody, whatever the code asks it for.

The API works under a role of its own, which sees nothing but what the policies in 012_walls.sql let it; the settings of
a connection say for whom. Its connections are apart from all others: none of them ever had more rights or will have.
"""

import asyncio
from dataclasses import dataclass

import asyncpg

from imprint.problem import Unavailable
from imprint.store.query import Link, Pool, query

DOOR_SIZE = 4
SIZE = 10


@dataclass(frozen=True)
class Wall:
    """For whom a connection asks: whose things are seen, who asks, where they stand, whether they may change things."""

    owner: str = ""
    person: str = ""
    office: str = ""
    changes: bool = False


# Before anybody is known: see 012_walls.sql.
DOOR = Wall(office="door")


@dataclass(frozen=True)
class Standing:
    """For whom a connection asks, as the database says it."""

    owner: str
    person: str
    changes: str
    office: str


@dataclass(frozen=True)
class Role:
    """Under which role a connection works."""

    role: str


@dataclass(frozen=True)
class Lacking:
    """What is wrong with the walls, and as whom we looked."""

    what: str
    who: str


@dataclass(frozen=True)
class Done:
    """Something was done, and says nothing."""

    done: str


TAKE_ON = query("wall_take_on", Role)
STAND = query("wall_stand", Standing)
LACKS = query("wall_lacks", Lacking)
RAISE = query("wall_raise", Done)


class _Connection(asyncpg.Connection):
    """A connection of the API, which knows for whom it asks."""

    stands: Wall | None = None

    async def stand(self, wall: Wall) -> None:
        """Ask for somebody from now on; nothing is sent when that is so already."""
        if self.stands == wall:
            return
        self.stands = None  # until it is sure: we may be cancelled while we say it
        await STAND.one(self, wall.owner, wall.person, "yes" if wall.changes else "", wall.office)
        self.stands = wall


class Walls:
    """The connections of the API, which are opened when somebody comes."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.open: dict[bool, Pool] = {}
        self._opening = asyncio.Lock()

    async def pool(self, wall: Wall) -> Pool:
        """Give the connections that can stand behind this wall.

        The door has its own, which always stand there: who comes is looked up without a word more.
        """
        door = wall == DOOR
        async with self._opening:
            if door not in self.open:
                self.open[door] = await asyncpg.create_pool(
                    self._url,
                    min_size=0,
                    max_size=DOOR_SIZE if door else SIZE,
                    init=_take_on,
                    reset=_keep,
                    connection_class=_Connection,
                    server_settings={"application_name": "imprint api"},
                )
            return self.open[door]

    async def close(self) -> None:
        """Close them all."""
        for pool in self.open.values():
            await pool.close()


async def stand(connection: Link, wall: Wall) -> None:
    """Let a connection ask for somebody, and for nobody else, until it is told otherwise.

    Whoever borrows one is told so first; therefore nothing need be taken back when it is returned.
    """
    await connection.stand(wall)  # type: ignore[union-attr] # only a connection of the API has it; another one raises


async def raised(connection: Link) -> None:
    """See to it that the walls stand, or say what somebody with more rights must do; without them nobody is let in."""
    lacking = await LACKS.one(connection)
    if lacking.what in {"role", "rights"}:
        await RAISE.one(connection)
        lacking = await LACKS.one(connection)
    if sentence := told(lacking):
        raise Unavailable("database.no_wall", sentence)


def told(lacking: Lacking) -> str:
    """Say what is wrong with the walls and how to mend it; nothing when they stand."""
    match lacking.what:
        case "role":
            return (
                "The HTTP API needs the database role imprint_api, and this user may not make it or take it on; "
                "let one who may run: CREATE ROLE imprint_api NOLOGIN (unless it is there); "
                f'GRANT imprint_api TO "{lacking.who}".'
            )
        case "through":
            return (
                "The database role imprint_api has rights that see through the walls between people; let one who may "
                "run: ALTER ROLE imprint_api NOSUPERUSER NOBYPASSRLS, and revoke from it the role that owns the tables."
            )
        case "rights":
            return "The database role imprint_api lacks its rights; let the tables' owner run SELECT wall_raise()."
    return ""


async def _take_on(connection: Link) -> None:
    await TAKE_ON.one(connection)


async def _keep(_: Link) -> None:
    """Give a connection back as it is: asyncpg ends an open transaction itself, and the next one is told for whom."""
