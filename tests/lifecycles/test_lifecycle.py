"""Lifecycles: a declaration that contradicts itself is refused, and PostgreSQL holds the newest one exactly."""

from dataclasses import replace
from enum import StrEnum

import asyncpg
import pytest

from imprint.lifecycles.lifecycle import IllegalLifecycle, Lifecycle, Move
from imprint.lifecycles.post import POST
from imprint.lifecycles.publication import PUBLICATION
from imprint.lifecycles.registry import LIFECYCLES
from imprint.lifecycles.source import SOURCE
from imprint.store.query import Link

# The table of spec.md, section 1, by hand; object is "as seed 004, and failed→uploading".
SPEC: dict[str, dict[str, set[str]]] = {
    "post": {
        "review": {"draft"},
        "draft": {"review", "scheduled"},
        "scheduled": {"draft", "uploading", "failed", "published"},
        "uploading": {"publishing", "scheduled", "failed", "draft"},
        "publishing": {"published", "uploading", "scheduled", "failed"},
        "published": set(),
        "failed": {"draft", "scheduled", "published"},
    },
    "publication": {
        "pending": {"running", "cancelled", "failed"},
        "running": {"success", "pending", "failed", "unknown", "cancelled"},
        "unknown": {"success", "pending", "failed"},
        "success": set(),
        "failed": {"pending"},
        "cancelled": set(),
    },
    "content": {
        "created": {"uploading", "uploaded"},
        "uploading": {"uploaded", "failed"},
        "uploaded": {"processing", "archived"},
        "processing": {"processed", "failed"},
        "processed": {"archived", "processing"},
        "failed": {"uploading", "processing"},
        "archived": set(),
    },
    "object": {
        "created": {"uploading", "uploaded", "failed"},
        "uploading": {"uploaded", "failed"},
        "uploaded": {"processing"},
        "processing": {"processed", "failed"},
        "processed": set(),
        "failed": {"processing", "uploading"},
    },
    "derivation": {
        "created": {"processing"},
        "processing": {"processed", "failed"},
        "processed": {"processing"},
        "failed": {"processing"},
    },
    "source": {
        "active": {"resting", "disabled"},
        "resting": {"active", "disabled"},
        "disabled": {"active"},
    },
    "account": {
        "connected": {"reconnect", "disabled"},
        "reconnect": {"connected", "disabled"},
        "disabled": {"connected", "reconnect"},
    },
}


class Light(StrEnum):
    """The states of a traffic light, which is no thing of ours."""

    RED = "red"
    GREEN = "green"
    DARK = "dark"


class Weather(StrEnum):
    """States of something else."""

    RAIN = "rain"


GO = Move("go", (Light.RED, Light.DARK), Light.GREEN, "it is our turn")
STOP = Move("stop", (Light.GREEN,), Light.RED, "it is theirs")
BREAK = Move("break", (Light.RED, Light.GREEN), Light.DARK, "the bulb burnt through")
LIGHT = Lifecycle("light", Light, Light.RED, (GO, STOP, BREAK))


def test_the_declarations_are_the_specification() -> None:
    """All seven have exactly the states and moves of the table in spec.md."""
    declared = {of.table: {str(s): {str(a.target) for a in of.open_to(s)} for s in of.states} for of in LIFECYCLES}
    assert declared == SPEC


@pytest.mark.parametrize("lifecycle", LIFECYCLES, ids=lambda lifecycle: lifecycle.table)
def test_every_move_says_why(lifecycle: Lifecycle) -> None:
    """A diagram, an audit line and a button are all made from these words."""
    for move in lifecycle.moves:
        assert move.name.islower()
        assert move.why
        assert move.why[0].islower()
        assert not move.why.endswith(".")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"moves": (GO, STOP, BREAK, Move("halt", (Light.GREEN,), Light.RED, "x"))}, "'stop' and 'halt'"),
        ({"moves": (GO, STOP, BREAK, Move("stop", (Light.GREEN,), Light.RED, "x"))}, "'stop' and 'stop'"),
        ({"moves": (GO, STOP, BREAK, Move("stay", (Light.RED,), Light.RED, "x"))}, "to itself"),
        ({"moves": (GO, STOP, BREAK, Move("wet", (Light.RED,), Weather.RAIN, "x"))}, "not a state of it: rain"),
        ({"moves": (GO, STOP, BREAK, Move("dry", (Weather.RAIN,), Light.RED, "x"))}, "not a state of it: rain"),
        ({"initial": Weather.RAIN}, "not a state of it: rain"),
        ({"needs": {Weather.RAIN: ("umbrella",)}}, "not a state of it: rain"),
        ({"bars": {Weather.RAIN: ("umbrella",)}}, "not a state of it: rain"),
        ({"moves": (GO, STOP)}, "nothing leads to dark"),
        ({"moves": (Move("mend", (Light.DARK,), Light.GREEN, "x"),)}, "nothing leads to dark, green"),
        ({"needs": {Light.RED: ("power",)}, "bars": {Light.RED: ("power",)}}, "red both needs and bars power"),
    ],
)
def test_a_declaration_that_contradicts_itself_is_refused(change: dict[str, object], said: str) -> None:
    """Seen when the program starts, never by a row."""
    with pytest.raises(IllegalLifecycle, match=said):
        replace(LIGHT, **change)  # type: ignore[arg-type] # the fields by name


def test_the_moves_open_to_a_state_are_told() -> None:
    """What can I do next, and what is it called."""
    assert [(a.name, a.target) for a in LIGHT.open_to("green")] == [("stop", "red"), ("break", "dark")]
    assert LIGHT.open_to("rain") == ()
    assert LIGHT.move("dark", "green") == "go"
    assert LIGHT.move("dark", "red") is None
    assert POST.open_to("published") == ()


def test_a_lifecycle_can_be_drawn() -> None:
    """Mermaid shows the beginning, every arrow with its name, and the states from which nothing leads on."""
    assert LIGHT.mermaid().splitlines() == [
        "stateDiagram-v2",
        "    [*] --> red",
        "    red --> green: go",
        "    dark --> green: go",
        "    green --> red: stop",
        "    red --> dark: break",
        "    green --> dark: break",
    ]
    ends = [line.strip() for line in PUBLICATION.mermaid().splitlines() if line.endswith("--> [*]")]
    assert ends == ["success --> [*]", "cancelled --> [*]"]


def test_a_lifecycle_is_plain_data() -> None:
    """Programs get one entry for each arrow, of plain strings."""
    data = LIGHT.as_data()
    assert data == {
        "name": "light",
        "states": ["red", "green", "dark"],
        "initial": "red",
        "moves": [
            {"name": "go", "from": "red", "to": "green", "why": "it is our turn"},
            {"name": "go", "from": "dark", "to": "green", "why": "it is our turn"},
            {"name": "stop", "from": "green", "to": "red", "why": "it is theirs"},
            {"name": "break", "from": "red", "to": "dark", "why": "the bulb burnt through"},
            {"name": "break", "from": "green", "to": "dark", "why": "the bulb burnt through"},
        ],
    }
    assert {type(state) for state in data["states"]} == {str}  # type: ignore[attr-defined] # a list


HELD = (
    "SELECT source, target, name, why FROM lifecycle_move WHERE lifecycle = $1 ORDER BY source, target",
    "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = $1::text::regclass ORDER BY 1",
    "SELECT tgname, tgenabled, pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = $1::text::regclass ORDER BY 1",
    "SELECT column_name, column_default FROM information_schema.columns WHERE table_name = $1 ORDER BY 1",
)


async def held(connection: Link, table: str) -> list[list[asyncpg.Record]]:
    """Read everything PostgreSQL holds of one lifecycle."""
    return [await connection.fetch(sql, table) for sql in HELD]


@pytest.mark.parametrize("lifecycle", LIFECYCLES, ids=lambda lifecycle: lifecycle.table)
async def test_a_declaration_can_be_applied_again(connection: Link, lifecycle: Lifecycle) -> None:
    """The same statements once more change nothing."""
    before = await held(connection, lifecycle.table)
    assert all(before)
    await connection.execute(lifecycle.sql())
    await connection.execute(lifecycle.sql())
    assert await held(connection, lifecycle.table) == before


async def test_a_changed_declaration_takes_the_place_of_the_older_one(connection: Link) -> None:
    """Moves, needs, bars and the first state that are gone from the declaration are gone from the database."""
    first = await held(connection, "source")
    s = SOURCE.states
    without_enable = tuple(move for move in SOURCE.moves if move.name != "enable")
    mend = Move("mend", (s("disabled"),), s("resting"), 'it\'s "mended" {now}')  # quotes and braces do no harm
    changed = replace(
        SOURCE,
        initial=s("resting"),
        moves=(*without_enable, mend),
        needs={s("resting"): ("held_until",)},
        bars={s("disabled"): ("held_until",)},
    )
    await connection.execute(changed.sql())
    with pytest.raises(asyncpg.CheckViolationError, match="needs_held_until"):
        await connection.execute("INSERT INTO source (name) VALUES ('x')")
    row = await connection.fetchval(
        "INSERT INTO source (name, held_until) VALUES ('x', imprint_now()) RETURNING id", column=0
    )
    assert await connection.fetchval("SELECT status FROM source WHERE id = $1", row) == "resting"
    with pytest.raises(asyncpg.CheckViolationError, match="bars_held_until"):
        await connection.execute("UPDATE source SET status = 'disabled' WHERE id = $1", row)
    await connection.execute("UPDATE source SET status = 'disabled', held_until = NULL WHERE id = $1", row)
    with pytest.raises(asyncpg.CheckViolationError, match="cannot go from disabled to active") as refusal:
        await connection.execute("UPDATE source SET status = 'active' WHERE id = $1", row)
    assert refusal.value.hint == "From here it can go to resting."
    await connection.execute("UPDATE source SET status = 'resting', held_until = imprint_now() WHERE id = $1", row)
    assert await connection.fetchval("SELECT why FROM lifecycle_move WHERE name = 'mend'") == mend.why

    await connection.execute(SOURCE.sql())
    assert await held(connection, "source") == first


async def test_a_state_that_rows_are_still_in_cannot_be_taken_away(connection: Link) -> None:
    """The database refuses the declaration as a whole and keeps the older one."""
    await connection.execute("INSERT INTO source (name) VALUES ('x')")
    await connection.execute("UPDATE source SET status = 'disabled'")
    before = await held(connection, "source")

    class Fewer(StrEnum):
        ACTIVE = "active"
        RESTING = "resting"

    fewer = Lifecycle("source", Fewer, Fewer.ACTIVE, (Move("rest", (Fewer.ACTIVE,), Fewer.RESTING, "x"),))
    with pytest.raises(asyncpg.CheckViolationError, match="lifecycle_states"):
        await connection.execute(fewer.sql())
    assert await held(connection, "source") == before
