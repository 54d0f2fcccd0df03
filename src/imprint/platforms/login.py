"""A login: what an account needs to call its platform; decrypted for a moment, never logged, never shown."""

import json
from dataclasses import dataclass, field
from datetime import timedelta

from pydantic import BaseModel, ConfigDict, SecretStr


class Login(BaseModel):
    """The credentials of one account; each platform has a type of its own, secrets as SecretStr.

    `expires_in` is how long it is good unless it is renewed, `renewable_for` how long until even that is over and
    a person must sign in again, both from when it was given; None where the platform knows no such end. They are spans,
    since the database alone says what time it is.

    `outside_only` when somebody has connected it who may not reach into the network of this machine.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: str = ""
    expires_in: timedelta | None = None
    renewable_for: timedelta | None = None
    outside_only: bool = False

    def sealable(self) -> str:
        """Give everything as JSON with the secrets in plain sight: only to be encrypted, at once."""
        return json.dumps(self.model_dump(mode="json") | self._secrets())

    def _secrets(self) -> dict[str, str]:
        values = ((name, getattr(self, name)) for name in type(self).model_fields)
        return {name: value.get_secret_value() for name, value in values if isinstance(value, SecretStr)}


@dataclass(frozen=True)
class Ask:
    """One thing a person is asked for when an account is added."""

    name: str
    sentence: str
    secret: bool = False
    default: str | None = None


@dataclass(frozen=True)
class Errand:
    """A person is sent to the platform with a URL; what must be remembered until the return is kept, encrypted."""

    url: str = field(repr=False)  # the state is in it
    state: SecretStr
    kept: SecretStr
