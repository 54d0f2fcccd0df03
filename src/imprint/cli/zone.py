"""The zone in which a person reads and writes times on the command line."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID
from zoneinfo import ZoneInfo

import typer

from imprint.decisions.schedule import shown, zone_of
from imprint.settings import Settings

Zone = Annotated[
    str | None,
    typer.Option(
        "--zone", help="The time zone of times, such as Europe/Berlin; IMPRINT_ZONE if not given.", metavar="ZONE"
    ),
]


def chosen(settings: Settings, zone: str | None) -> ZoneInfo:
    """Give the zone that was named, or the one that is set."""
    return zone_of(zone or settings.zone)


def on_wall(at: datetime | None, zone: ZoneInfo, *, seconds: bool = False) -> str:
    """Write a moment for a person: to the minute with the zone's short name, or to the second without it."""
    return at.astimezone(zone).strftime("%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M %Z") if at else ""


def written(data: Any, zone: ZoneInfo) -> Any:
    """Write data for JSON, every moment in the zone and with its offset."""
    match data:
        case datetime():
            return shown(data, zone)
        case UUID():
            return str(data)
        case dict():
            return {name: written(value, zone) for name, value in data.items()}
        case list() | tuple():
            return [written(value, zone) for value in data]
        case _:
            return data
