"""The lifecycle of a source: one place that carries a series."""

from enum import StrEnum

from imprint.lifecycles.lifecycle import Lifecycle, Move


class SourceStatus(StrEnum):
    """Whether a source is asked for news."""

    ACTIVE = "active"
    RESTING = "resting"
    DISABLED = "disabled"


S = SourceStatus

SOURCE = Lifecycle(
    table="source",
    states=S,
    initial=S.ACTIVE,
    moves=(
        Move("rest", (S.ACTIVE,), S.RESTING, "it failed too often in a row; its circuit is open"),
        Move("recover", (S.RESTING,), S.ACTIVE, "a probe of it worked again"),
        Move("disable", (S.ACTIVE, S.RESTING), S.DISABLED, "a person does not want it asked"),
        Move("enable", (S.DISABLED,), S.ACTIVE, "a person wants it asked again"),
    ),
)
