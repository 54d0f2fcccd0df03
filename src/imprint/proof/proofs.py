"""The proofs, each behind one call: what goes in is what the command line asks for, what comes out is the report."""

from collections.abc import Sequence
from typing import Any

from imprint.cli import session
from imprint.proof.defects import prove_defects
from imprint.proof.exploration import prove_model
from imprint.proof.ground import WORKERS_LOG, scratch
from imprint.proof.kills import asked, prove_kills
from imprint.proof.nursery import Work, open_nursery
from imprint.proof.outages import prove_database
from imprint.proof.server import Lent
from imprint.proof.soak import prove_soak


class Proofs:
    """Everything that can be proved; `work` runs a command of this program."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def kills(self, publishes: int, kills: int, workers: int, *, token: bool, seed: int) -> dict[str, Any]:
        """Kill workers while they publish."""
        with scratch() as home:
            nursery = open_nursery(self._work, home / WORKERS_LOG)
            try:
                return session.run(prove_kills(nursery, home, asked(publishes, kills, workers, token=token, seed=seed)))
            finally:
                nursery.close()

    def model(self) -> dict[str, Any]:
        """Explore every interleaving of a small world."""
        return prove_model()

    def defects(self, only: Sequence[str]) -> dict[str, Any]:
        """Put mistakes back one at a time."""
        return prove_defects(only)

    def database(
        self, stops: int, *, seed: int, server: str | None, stop: Sequence[str], start: str | None
    ) -> dict[str, Any]:
        """Stop PostgreSQL hard while everybody works; a server with commands that stop and start it may be lent."""
        lent = Lent(server, stop, start) if server is not None and start is not None else None
        with scratch() as home:
            nursery = open_nursery(self._work, home / WORKERS_LOG)
            try:
                return session.run(prove_database(nursery, home, stops=stops, seed=seed, lent=lent))
            finally:
                nursery.close()

    def soak(self, minutes: float, *, seed: int) -> dict[str, Any]:
        """Let everything happen at once."""
        with scratch() as home:
            nursery = open_nursery(self._work, home / WORKERS_LOG)
            try:
                return session.run(prove_soak(nursery, home, minutes=minutes, seed=seed))
            finally:
                nursery.close()
