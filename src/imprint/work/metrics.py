"""Metrics: what Prometheus reads. All of it comes from the database, so that any process can answer for all.

No name of a person, no title, no address is among the labels: only kinds of things.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from imprint.store.db import Database
from imprint.store.query import Nothing, query
from imprint.work.status import DEAD_LETTERS, DeadLetters

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BOUNDS = ("0.01", "0.05", "0.1", "0.5", "1", "5", "15", "60", "300", "3600", "+Inf")
# A worker died, or the platform was not ready: the same is tried again.
TRIED_AGAIN = frozenset({"not_yet", "died", "stopped"})


@dataclass(frozen=True)
class Count:
    """How often something happened."""

    name: str
    kind: str
    outcome: str
    value: float


@dataclass(frozen=True)
class Gauge:
    """How something stands."""

    name: str
    kind: str
    state: str
    value: float | None


COUNTS = query("metrics_counts", Count)
FOLD = query("metrics_fold", Nothing)
GAUGES = query("metrics_gauges", Gauge)


async def metrics(database: Database, streams: Callable[[], int]) -> bytes:
    """Read everything and write it as Prometheus does; `streams` are those this process has open."""
    async with database.connection() as connection:
        await FOLD.run(connection)
        counts = await COUNTS.all(connection)
        gauges = await GAUGES.all(connection)
        letters = await DEAD_LETTERS.all(connection)
    registry = CollectorRegistry()
    registry.register(_Read([*_counted(counts), *_standing(gauges, letters), *_of_process(streams())]))
    ProcessCollector(registry=registry)
    return generate_latest(registry)


@dataclass(frozen=True, eq=False)
class _Read(Collector):
    families: list[Metric]

    def collect(self) -> Iterable[Metric]:
        """Give what was read."""
        return self.families


def _counted(counts: list[Count]) -> Iterator[Metric]:
    of = defaultdict[str, list[Count]](list)
    for each in counts:
        of[each.name].append(each)
    attempts = CounterMetricFamily(
        "imprint_attempts",
        "Attempts to publish that have ended, by platform and outcome.",
        labels=["platform", "outcome"],
    )
    for each in of["attempts"]:
        attempts.add_metric([each.kind, each.outcome], each.value)
    yield attempts
    seconds = CounterMetricFamily("imprint_attempt_seconds", "How long attempts took together.", labels=["platform"])
    for each in of["seconds"]:
        seconds.add_metric([each.kind], each.value)
    yield seconds
    by_platform = defaultdict[str, float](float)
    limited = defaultdict[str, float](float)
    for each in of["attempts"]:
        by_platform[each.kind] += each.value * (each.outcome in TRIED_AGAIN)
        limited[each.kind] += each.value * (each.outcome == "rate_limited")
    yield _family("imprint_retries", "Attempts that are made once more.", "platform", by_platform)
    yield _family("imprint_rate_limits", "Attempts that a platform put off for their number.", "platform", limited)
    yield _drift(of["drift"], sum(each.value for each in of["drift_sum"]))
    jobs = CounterMetricFamily(
        "imprint_jobs", "Jobs that have ended, such as polls and derivations.", labels=["queue", "outcome"]
    )
    for each in of["jobs"]:
        jobs.add_metric([each.kind, each.outcome], each.value)
    yield jobs
    polls = {each.outcome: each.value for each in of["jobs"] if each.kind == "poll"}
    yield _family("imprint_polls", "Sources that were asked.", "outcome", polls)
    yield _family("imprint_chapters", "Chapters that were found.", "kind", {e.kind: e.value for e in of["chapters"]})
    notices = CounterMetricFamily("imprint_notices", "Notices that were made for people.")
    notices.add_metric([], sum(each.value for each in of["notices"]))
    yield notices
    sent = {each.outcome: each.value for each in of["deliveries"]}
    yield _family("imprint_deliveries", "Messages and calls of webhooks that have ended.", "outcome", sent)
    made = {each.outcome: each.value for each in of["derivations"]}
    yield _family("imprint_derivations", "Variants that were made, or could not be.", "outcome", made)


def _drift(found: list[Count], total: float) -> Metric:
    drift = HistogramMetricFamily("imprint_drift_seconds", "How long after their time publications were begun.")
    alone = {each.kind: each.value for each in found}
    buckets, sum_so_far = [], 0.0
    for bound in BOUNDS:
        sum_so_far += alone.get(bound, 0)
        buckets.append((bound, sum_so_far))
    drift.add_metric([], buckets, total)
    return drift


def _standing(gauges: list[Gauge], letters: list[DeadLetters]) -> Iterator[Metric]:
    known = (
        ("jobs", "imprint_queue_depth", "Jobs in the queue.", ("queue", "state")),
        ("publications", "imprint_publications", "Publications that are open, up to 100,000.", ("state",)),
        ("circuits_open", "imprint_circuits_open", "Circuits that are open.", ("of",)),
        ("deliveries", "imprint_deliveries_waiting", "Messages and calls of webhooks that wait.", ()),
        ("derivations", "imprint_derivations_open", "Variants that are to be made.", ()),
        ("workers", "imprint_workers", "Workers that are alive.", ()),
        ("oldest", "imprint_oldest_seconds", "How long the oldest unfinished work waits that is due.", ("of",)),
    )
    for name, shown, help_text, labels in known:
        family = GaugeMetricFamily(shown, help_text, labels=labels)
        for each in gauges:
            if each.name == name:
                values = [value for value in (each.kind, each.state) if value][: len(labels)]
                family.add_metric(values, each.value or 0)
        yield family
    dead = GaugeMetricFamily("imprint_dead_letters", "What failed for good and waits for a person.", labels=["queue"])
    for letter in letters:
        dead.add_metric([letter.entrypoint], letter.held)
    yield dead


def _of_process(streams: int) -> Iterator[Metric]:
    yield GaugeMetricFamily("imprint_event_streams", "Streams of events that this process has open.", value=streams)


def _family(name: str, help_text: str, label: str, values: dict[str, float]) -> Metric:
    family = CounterMetricFamily(name, help_text, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family
