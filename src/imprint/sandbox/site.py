"""A site: one simulated platform or source; a module of the sandbox with a class named in `SITE` is served.

Its pages live under /NAME/ of the sandbox's address.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from imprint.sandbox.exchange import Call, Reply, json_reply
from imprint.sandbox.log import Log


class Site(ABC):
    """What the server needs of a site; the shapes of its errors are each site's own."""

    name: ClassVar[str]
    # What can be switched while it runs, with the values at the start.
    switches: ClassVar[Mapping[str, bool]] = {}
    # Whether a person is sent to it with a browser; it lets everybody in unasked.
    sends_for: ClassVar[bool] = False
    # How many seconds its clock is ahead of this machine's, for a proof that lets time pass.
    ahead: float = 0.0

    def __init__(self, log: Log) -> None:
        self.log = log
        self.on = dict(self.switches)

    def now(self) -> float:
        """Say what its clock shows."""
        return time.time() + self.ahead

    def switch(self, name: str, *, on: bool) -> None:
        """Turn something on or off; KeyError when there is no such switch."""
        if name not in self.switches:
            raise KeyError(name)
        self.on[name] = on

    @abstractmethod
    async def handle(self, call: Call) -> Reply:
        """Do what is asked and answer."""

    def login(self, base_url: str, account: str) -> str:
        """Make an account and give its login, as the platform's own type writes it for sealing."""
        raise NotImplementedError(f"{self.name} has no accounts: {base_url} {account}")

    def answers(self, base_url: str, account: str) -> dict[str, str]:
        """Give what a person answers who adds an account here with `imprint account add`; nothing where nobody can."""
        del base_url, account
        return {}

    def spoil(self, account: str, token: str) -> None:
        """Let the access token of an account expire, or its refresh token be burnt; KeyError where there is none."""
        raise KeyError(f"{token} of {account}")

    def rate_limited(self) -> Reply:
        """Answer 429 in the site's own shape."""
        return json_reply({"error": "rate limited"}, 429)

    def broken(self, status: int) -> Reply:
        """Answer with a status that was asked for, as a server that is not well does."""
        return json_reply({"error": "broken"}, status)

    def expired(self) -> Reply:
        """Answer that the access token has expired."""
        return json_reply({"error": "expired"}, 401)

    def refused(self, code: int) -> Reply:
        """Answer with a refusal and its code."""
        return json_reply({"error": "refused", "code": code}, 400)
