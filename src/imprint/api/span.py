"""A span of time that a query asks for: from a moment, until a moment, on the wall of a zone."""

from datetime import datetime
from typing import Annotated
from zoneinfo import ZoneInfo

from fastapi import Query

from imprint.api.shape import Text
from imprint.decisions.schedule import BadTime, parse
from imprint.problem import Problem

_FIRST = Query(alias="from", max_length=60, description="The first moment of it.", examples=["2030-05-01T00:00"])
_END = Query(max_length=60, description="The first moment that is no longer in it.", examples=["2030-06-01T00:00"])
Since = Annotated[Text, _FIRST]
Until = Annotated[Text, _END]
SinceIfAny = Annotated[Text | None, _FIRST]
UntilIfAny = Annotated[Text | None, _END]
Zone = Annotated[
    Text,
    Query(max_length=60, description="On whose wall the times are that have no offset.", examples=["Europe/Berlin"]),
]


def moment(text: str, wall: ZoneInfo, field: str) -> datetime:
    """Read one end of a span; when it is no time, the problem names the field."""
    try:
        return parse(text, wall)
    except BadTime as bad:
        raise Problem(f"request.bad_{field}", bad.sentence) from None
