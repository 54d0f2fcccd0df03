"""The lifecycle of an account: one login on one platform."""

from enum import StrEnum

from imprint.lifecycles.lifecycle import Lifecycle, Move


class AccountStatus(StrEnum):
    """Whether an account can be published to."""

    CONNECTED = "connected"
    RECONNECT = "reconnect"
    DISABLED = "disabled"


S = AccountStatus

ACCOUNT = Lifecycle(
    table="account",
    states=S,
    initial=S.CONNECTED,
    moves=(
        Move("expire", (S.CONNECTED,), S.RECONNECT, "the platform wants the person to sign in again"),
        Move("reconnect", (S.RECONNECT,), S.CONNECTED, "the person signed in again"),
        Move("disable", (S.CONNECTED, S.RECONNECT), S.DISABLED, "the person does not want it used"),
        Move("enable", (S.DISABLED,), S.CONNECTED, "the person wants it used again"),
        Move("enable_expired", (S.DISABLED,), S.RECONNECT, "it is wanted again, but its sign-in has ended"),
    ),
)
