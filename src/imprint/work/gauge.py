"""A gauge: reads from each answer how many calls the platform still allows, so that the pace slows before a refusal."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from imprint.decisions.quota import rest
from imprint.platforms.answer import Answer
from imprint.platforms.contract import Http, Platform
from imprint.platforms.request import Progress, Request


@dataclass
class Gauge:
    """What the answers of one attempt have told: whether there was one, and how long to leave the platform alone."""

    of: Platform[Any]
    rest: timedelta = timedelta(0)
    heard: bool = False

    def on(self, http: Http) -> Http:
        """Give the same sender with an eye on its answers."""
        return _Watched(http, self)

    def read(self, answer: Answer) -> None:
        """Take note of an answer; of several the longest rest counts, since each call has a count of its own."""
        self.heard = True
        if quota := self.of.quota(answer):
            self.rest = max(self.rest, rest(quota.remaining, quota.resets_in))


@dataclass(frozen=True)
class _Watched:
    http: Http
    gauge: Gauge

    async def send(self, request: Request, progress: Progress = lambda _: None) -> Answer:
        answer = await self.http.send(request, progress)
        self.gauge.read(answer)
        return answer
