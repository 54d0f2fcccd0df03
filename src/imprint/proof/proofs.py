"""The proofs, each behind one call: what goes in is what the command line asks for, what comes out is the report."""

from typing import Any

from imprint.cli import session
from imprint.proof.ground import WORKERS_LOG, scratch
from imprint.proof.kills import asked, prove_kills
from imprint.proof.nursery import Work, open_nursery


class Proofs:
    """Everything that can be proved; `work` runs a command of this program."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def kills(self, publishes: int, kills: int, workers: int, *, token: bool, seed: int) -> dict[str, Any]:
        """Kill workers while they publish."""
        with scratch() as home:
            nursery = open_nursery(self._work, home / WORKERS_LOG)
            try:
                return session.run(
                    prove_kills(nursery, home, asked(publishes, kills, workers, token=token, seed=seed))
                )
            finally:
                nursery.close()
