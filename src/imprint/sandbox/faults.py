"""Faults: what goes wrong in the sandbox, by rule ("the next 3 publishes") or by chance, always the same for a seed."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any


class Fault(StrEnum):
    """One way to go wrong; `after` and `applied` ones happen when the effect is there already."""

    LATENCY = "latency"
    RESET_BEFORE = "reset_before"  # the request was read, nothing was done
    RESET_DURING = "reset_during"  # in the middle of the request's body
    RESET_AFTER = "reset_after"
    HALF_ANSWER = "half_answer"  # applied; the answer breaks off in its middle
    RATE_LIMIT = "rate_limit"
    FORBIDDEN = "forbidden"  # the load balancer's empty text/html 403
    ERROR_BEFORE = "error_before"
    ERROR_AFTER = "error_after"
    BLANK = "blank"  # applied; 200 and nothing but spaces
    EXPIRED = "expired"  # the access token counts as expired
    REFUSE = "refuse"  # the platform's own refusal with an error code
    LAG = "lag"  # a look-up does not show what is younger than so many seconds


@dataclass
class Rule:
    """What to do with calls whose site and path match; `times` None is for ever, `chance` is asked each time."""

    does: Fault
    site: str = "*"
    path: str = "*"
    times: int | None = 1
    chance: float = 1
    skip: int = 0  # let so many matching calls pass first
    seconds: float = 0
    status: int = 500
    code: int = 0
    retry_after: str | None = None  # written into the answer as it is, however hostile

    @classmethod
    def heard(cls, data: Mapping[str, Any]) -> "Rule":
        """Take a rule from JSON; raise ValueError or TypeError when it is none."""
        return cls(**{**data, "does": Fault(data["does"])})

    def matches(self, site: str, path: str) -> bool:
        """Say whether a call is meant."""
        return self.times != 0 and fnmatchcase(site, self.site) and fnmatchcase(path, self.path)


class Faults:
    """The rules in force; the first that matches decides, and a delay comes on top of whatever else happens."""

    def __init__(self, seed: int = 0) -> None:
        self._rules: list[Rule] = []
        self._dice = random.Random(seed)  # noqa: S311 - the same faults for the same seed, no secret

    def add(self, rule: Rule) -> None:
        """Add a rule."""
        self._rules.append(rule)

    def next(self, does: Fault, path: str = "*", times: int = 1, **more: Any) -> None:
        """Let the next calls to a path fail in one way."""
        self.add(Rule(does, path=path, times=times, **more))

    def clear(self) -> None:
        """Let everything work again."""
        self._rules.clear()

    def pick(self, site: str, path: str) -> list[Rule]:
        """Give the rules for one call: at most one delay and one other, each used up by one."""
        picked: dict[bool, Rule] = {}
        for rule in self._rules:
            delays = rule.does is Fault.LATENCY
            if delays in picked or not rule.matches(site, path):
                continue
            if rule.skip > 0:
                rule.skip -= 1
                continue
            if rule.chance < 1 and self._dice.random() >= rule.chance:
                continue
            if rule.times is not None:
                rule.times -= 1
            picked[delays] = rule
        self._rules = [rule for rule in self._rules if rule.times != 0]
        return list(picked.values())
