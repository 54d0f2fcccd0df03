"""The page on reliability: what each platform's promise is, from the registry, and what the last runs have shown."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from imprint.platforms.contract import Once
from imprint.platforms.registry import PLATFORMS

RUNS = Path(__file__).parent / "runs"
Run = Mapping[str, Any]
Table = Callable[[Sequence[str], Iterable[Sequence[str]]], str]

OPENING = (
    "A post goes out once, on time, or you are told exactly why not. What can be promised depends on what a platform "
    "offers, since no program can make somebody else's server act exactly once. Here is what is promised, what is not, "
    "and how you can check it."
)
PROMISED = """\
- **Never twice by our doing.** Nothing is sent again unless it is known that the first did not get there, or the
  platform knows our key and takes the second for the first.
- **Never early.** The row holds the time, and it is asked again at the moment of sending.
- **Never lost in silence.** What is planned goes out, or ends as failed, cancelled or unknown, each with a sentence, in
  the list of what needs you.
- **Never stuck.** Whoever dies with work in hand loses it when the lease ends (a minute), and another one goes on.
- **What was answered is kept.** A `200` or a line on the screen means that it is on the database's disk."""
NOT_PROMISED = """\
- That a platform does what it says. If it shows a post twice of its own accord, or forgets a key before its time,
  nobody can help it; you are told of a second success as soon as one is seen.
- That everything unknown can be cleared up without you. Where a platform can only be looked at, a crash in the wrong
  second leaves a post that is not to be seen: it may still appear. You decide, with the evidence in front of you.
- The exact second, while the machine, the database or the platform is away. What was missed goes out when they are
  back, or not at all if you said so.
- Messages to you exactly once: one may be repeated when its sender dies between sending and noting it.
- That a disk keeps what it says it has written."""
CHECK = """\
`imprint prove kills`, `model`, `database`, `soak` and `defects` run on your machine, against platforms that are
imitated by a real HTTP server, and take their verdict from that server's own log. [The proof](proof.md) says how.
`make test` has a short form of each, `make prove` the long one; it writes the tables below anew, whatever they say."""


@dataclass(frozen=True)
class Figure:
    """Something that is to be shown: what, where, and how the last result is read from the runs that show it."""

    what: str
    where: str
    runs: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()


FIGURES = (
    Figure(
        "10,000 publications, 8 workers, 1,000 kills at points, 1,000 at random: none twice, lost, stuck or early",
        "`imprint prove kills`",
        ("kills",),
    ),
    Figure(
        "the same where a platform can only be looked at: none twice; every unknown truly is",
        "`imprint prove kills --no-token`",
        ("kills-no-token",),
    ),
    Figure(
        "every interleaving of two workers and three faults: none twice, none stuck",
        "`imprint prove model`",
        ("model",),
    ),
    Figure(
        "every move of every lifecycle tried by raw SQL: PostgreSQL and the declaration agree",
        "",
        tests=("test_postgresql_allows_exactly_the_declared_moves",),
    ),
    Figure("30 mistakes of earlier programs put back: each is noticed", "`imprint prove defects`", ("defects",)),
    Figure(
        "PostgreSQL stopped hard 20 times under load: nothing that was answered is lost, back within 10 s",
        "`imprint prove database`",
        ("database", "database-lent"),
    ),
    Figure(
        "200 errors although it is out, 200 blank answers, 200 look-ups that lag: none twice",
        "",
        tests=("test_answers_that_say_nothing",),
    ),
    Figure(
        "a storm of 429 with hostile wishes: no call too early, no attempt used, all delivered",
        "",
        tests=("test_a_storm_of_rate_limits", "test_a_hostile_retry_after"),
    ),
    Figure(
        "an old backup restored, a database cloned: nothing is sent before it is reconciled",
        "",
        tests=("test_25_a_backup_is_restored", "test_a_cloned_database_is_held"),
    ),
    Figure(
        "a lease that has ended is taken back within 30 s",
        "the runs of 1, 2 and 6",
        ("kills", "kills-no-token", "database"),
    ),
)
OLDEST = 10  # the figure that is read from the runs of others
COUNTS = ("published", "duplicates", "lost", "stuck", "early", "unknown")
# What of each run is shown, in this order.
SHOWN = (
    *("publishes", "workers", "kills", "named_kills", "random_kills", "sleeps", "stops", "server", *COUNTS, "missing"),
    *("states", "defects", "caught", "recovery_ms", "back_s", "oldest_s", "acknowledged", "did", "reads", "faults"),
    *("worker_mb", "api_mb", "worker_files", "api_files", "connections", "hops", "skipped_s", "hits", "seed"),
)


def page(table: Table, runs: Path = RUNS) -> Iterator[str]:
    """Give the parts of the page after its opening."""
    told = read(runs)
    yield "## What is promised\n\n" + PROMISED
    yield "## Platform by platform"
    rows = [(f"`{name}`", _after_a_crash(each.once), each.once.promise) for name, each in sorted(PLATFORMS.items())]
    yield table(("platform", "after a crash in the middle of sending", "in short"), rows)
    yield "## What is not promised\n\n" + NOT_PROMISED
    yield "## How to check it\n\n" + CHECK
    yield "## The figures"
    yield table(
        ("", "what is to be shown", "shown by", "last result"),
        [(str(number), each.what, _where(each), _result(number, each, told)) for number, each in enumerate(FIGURES, 1)],
    )
    if told:
        yield "## The last runs"
    for name, run in told.items():
        yield f"### {name}"
        took = f"{run['minutes']} minutes on {run['cores']} cores"
        yield f"`{run['command']}` · commit {run['commit']} · {run['date']} · {took}"
        report = run["report"]
        shown = [(each.replace("_", " "), _cell(report[each])) for each in SHOWN if each in report]
        yield table(("", ""), shown)
        if report.get("wrong"):
            yield "**Wrong:** " + " · ".join(report["wrong"])
        if report.get("proved_nothing"):
            yield "**It has proved nothing:** " + ", ".join(report["proved_nothing"])
        if "table" in report:
            caught = [", ".join(f"`{each}`" for each in row["caught_by"]) or "**nobody**" for row in report["table"]]
            rows = [(f"`{row['name']}`", row["says"], by) for row, by in zip(report["table"], caught, strict=True)]
            yield table(("mistake", "what it was", "noticed by"), rows)
        if "ablations" in report:
            yield table(
                ("taken out of the protocol", "found unsafe"),
                [(row["name"], "yes" if row["unsafe"] else "**no**") for row in report["ablations"]],
            )


def read(folder: Path) -> dict[str, Run]:
    """Read the last runs, by their names."""
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))}


def _after_a_crash(once: Once) -> str:
    if not once.token:
        return "is looked for three times in half an hour: found, it is out; else you decide. Never sent again unasked."
    if once.lasts is None:
        return "is sent again under the same key, and is out once in the end, without you."
    minutes = f"{once.lasts.total_seconds() / 60:.0f} minutes"
    return f"is sent again under the same key for {minutes}; later it is looked for, and if not found you decide."


def _where(figure: Figure) -> str:
    return figure.where or ", ".join(f"`{each}`" for each in figure.tests)


def _result(number: int, figure: Figure, told: Mapping[str, Run]) -> str:
    if figure.tests:
        return "part of every `make test`"
    found = [(each, told[each]["report"]) for each in figure.runs if each in told]
    if not found:
        return "no run is kept yet"
    if number == OLDEST:
        return ", ".join(f"{report['oldest_s']} s ({name})" for name, report in found)
    return "; ".join(_in_short(report) for _, report in found)


def _in_short(report: Mapping[str, Any]) -> str:
    """Say the outcome in a few words, a bad one first."""
    if report.get("wrong"):
        return f"**wrong**: {report['wrong'][0]}"
    if report.get("proved_nothing"):
        return f"**has proved nothing**: {', '.join(report['proved_nothing'])}"
    if "caught" in report:
        return f"{report['caught']} of {report['defects']} noticed"
    if "states" in report:
        return f"{report['states']} states, {report['duplicates']} twice, {report['stuck']} stuck"
    counts = ", ".join(f"{report[name]} {name}" for name in COUNTS)
    stops = f"{report['stops']} stops, back in {report['back_s']['max']} s at most, " if "back_s" in report else ""
    kills = f"{report['kills']} kills, " if "hits" in report else ""
    return f"{kills}{stops}{counts}"


def _cell(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name.replace('_', ' ')} {each}" for name, each in value.items())
    return str(value)
