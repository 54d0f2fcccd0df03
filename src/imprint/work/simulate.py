"""Simulating: when everything that is planned will go out, read in four statements; nothing is written."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from imprint.problem import Problem
from imprint.store.db import Database
from imprint.store.query import query
from imprint.work.outlook import WAITS
from imprint.work.simulation import Forecast, Lane, Planned, Rhythm, Why, World, by_account, simulated

SENTENCES = {
    **{Why(why): text for why, text in WAITS.items() if why in set(Why)},
    Why.RUNNING: "it is on its way",
    Why.QUEUE: "it is due: a worker takes it in a moment",
    Why.TIME: "its time",
    Why.AGAIN: "it is tried again",
    Why.BATCH: "its turn in the batch",
    Why.CIRCUIT: "one try when the circuit closes",
    Why.HELD: "every send is held",
    Why.ACCOUNT: "its account waits for you",
    Why.PAUSED: "its batch is paused",
    Why.LATE: "its time will be missed by too much",
    Why.LOOK: "nobody can tell whether it is out; somebody looks",
    Why.PERSON: "nobody can tell whether it is out; you must decide",
}
SURE = (
    "What waits only for its own time goes then. Every other time is an estimate: as if a worker were always free, "
    "every attempt worked and took as long as they did lately, and nobody changed anything."
)
NO_WORKER = "No worker is alive: this is what happens if one is started now."


@dataclass(frozen=True)
class Share:
    """What goes out on one account: how much, the first and the last, and how much does not by itself."""

    lane: Lane
    goes: int
    first_at: datetime | None
    last_at: datetime | None
    stays: int

    def as_data(self) -> dict[str, Any]:
        """Give it as plain data."""
        return {
            "accountId": self.lane.id,
            "account": self.lane.account,
            "platform": self.lane.platform,
            "accountStatus": self.lane.status,
            "publications": self.goes,
            "firstAt": self.first_at,
            "lastAt": self.last_at,
            "notByThemselves": self.stays,
        }


@dataclass(frozen=True)
class Simulation:
    """Everything that is planned, in the order in which it will probably go out; what does not by itself is last."""

    world: World
    lanes: dict[UUID, Lane]
    forecasts: list[Forecast]

    @property
    def going(self) -> list[Forecast]:
        """Give what goes out by itself, in order."""
        return [each for each in self.forecasts if each.at is not None]

    @property
    def staying(self) -> list[Forecast]:
        """Give what does not go out by itself."""
        return [each for each in self.forecasts if each.at is None]

    @property
    def shares(self) -> list[Share]:
        """Give what goes out on each account that has anything planned."""
        of = by_account(self.forecasts)
        return [_share(lane, of[lane.id]) for lane in self.lanes.values() if lane.id in of]

    @property
    def notes(self) -> list[str]:
        """Say what one has to know to believe the times."""
        held = [f"Every send is held: {self.world.sends_held}."] if self.world.sends_held else []
        unwatched = [] if self.world.worker_alive or not self.going else [NO_WORKER]
        return [*held, *unwatched, *([SURE] if self.going else [])]

    def on(self, accounts: Sequence[UUID]) -> "Simulation":
        """Give only what is on these accounts; what others do was taken into account all the same."""
        lanes = {key: lane for key, lane in self.lanes.items() if key in accounts}
        return Simulation(self.world, lanes, [each for each in self.forecasts if each.of.account_id in lanes])

    def until(self, moment: datetime) -> "Simulation":
        """Give only what goes out up to a moment."""
        early = [each for each in self.forecasts if each.at is not None and each.at <= moment]
        return Simulation(self.world, self.lanes, early)

    def name(self, forecast: Forecast) -> str:
        """Give the account of a forecast as a person knows it."""
        lane = self.lanes.get(forecast.of.account_id)
        return lane.account if lane else ""

    def do(self, forecast: Forecast) -> str | None:
        """Give the command with which a person lets something go on that does not by itself."""
        of = forecast.of
        match forecast.why:
            case Why.HELD:
                return "imprint incarnation --accept"
            case Why.ACCOUNT:
                lane = self.lanes.get(of.account_id)
                how = "enable" if lane and lane.status == "disabled" else "reconnect"
                return f"imprint account {how} {lane.account if lane else of.account_id}"
            case Why.PAUSED:
                return f"imprint batch resume {of.batch_id}"
            case Why.LATE:
                return f"imprint post reschedule {of.post_id} --at TIME"
            case Why.PERSON:
                return f"imprint resolve {of.id}"
            case _:
                return None

    def as_data(self, limit: int | None = None) -> dict[str, Any]:
        """Give it as plain data, of the publications as many as wanted."""
        going = self.going
        return {
            "now": self.world.now,
            "publications": [self._data(each) for each in self.forecasts[:limit]],
            "goingOut": len(going),
            "notByThemselves": len(self.forecasts) - len(going),
            "lastAt": going[-1].at if going else None,
            "accounts": [each.as_data() for each in self.shares],
            "workerAlive": self.world.worker_alive,
            "notes": self.notes,
        }

    def _data(self, forecast: Forecast) -> dict[str, Any]:
        of = forecast.of
        lane = self.lanes.get(of.account_id)
        return {
            "id": of.id,
            "postId": of.post_id,
            "title": of.title,
            "accountId": of.account_id,
            "account": self.name(forecast),
            "platform": lane.platform if lane else None,
            "batchId": of.batch_id,
            "status": of.status,
            "actualPublishAt": of.due_at,
            "expectedAt": forecast.at,
            "estimated": forecast.estimated,
            "why": forecast.why.value,
            "sentence": SENTENCES[forecast.why],
            "do": self.do(forecast),
        }


WORLD = query("simulate_world", World)
LANES = query("simulate_lanes", Lane)
BATCHES = query("simulate_batches", Rhythm)
PLANNED = query("simulate_planned", Planned)


async def simulate(database: Database, owner: str, *, late_hours: int = 24) -> Simulation:
    """Simulate everything that a person has planned; `late_hours` is how late a post goes whose author did not say."""
    async with database.connection() as connection, connection.transaction(isolation="repeatable_read", readonly=True):
        world = await WORLD.one(connection)
        lanes = await LANES.all(connection, owner)
        rhythms = await BATCHES.all(connection, owner)
        planned = await PLANNED.all(connection, owner)
    forecasts = simulated(world, lanes, rhythms, planned, most_late=timedelta(hours=late_hours))
    return Simulation(world, {lane.id: lane for lane in lanes}, forecasts)


def refuse_past(world: World, moment: datetime) -> None:
    """Raise when somebody asks what will have happened before now."""
    if moment <= world.now:
        raise Problem("simulate.past", "That time is over; a simulation tells what is to come.")


def _share(lane: Lane, forecasts: Sequence[Forecast]) -> Share:
    times = [each.at for each in forecasts if each.at is not None]
    return Share(lane, len(times), min(times, default=None), max(times, default=None), len(forecasts) - len(times))
