"""Metrics: counted from rows, never falling, the same from every process, and cheap however much has happened."""

import json
import re
from datetime import timedelta
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from imprint.store.db import Database
from imprint.store.query import Connection, Link
from imprint.work.metrics import COUNTS, FOLD, GAUGES, metrics

DASHBOARD = Path(__file__).parents[2] / "docs" / "grafana.json"
OUTCOMES = ("published", "not_yet", "rate_limited", "died")


async def figures(database: Database) -> dict[str, float]:
    """Read the metrics as Prometheus does: each sample by its name and labels."""
    text = (await metrics(database, lambda: 0)).decode()
    return {
        sample.name + "".join(f",{value}" for _, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def attempted(connection: Link, ago: timedelta, drift: timedelta = timedelta(seconds=1)) -> None:
    """Let a publication have been tried, once with each outcome."""
    post = await connection.fetchval("INSERT INTO post (title, owner) VALUES ('secret title', 'ada') RETURNING id")
    account = await connection.fetchval(
        "INSERT INTO account (platform, name, owner) VALUES ('folder', 'secret name', 'ada') RETURNING id"
    )
    await connection.execute("UPDATE post SET status = 'draft' WHERE id = $1", post)
    publication = await connection.fetchval(
        "INSERT INTO publication (post_id, account_id, due_at) VALUES ($1, $2, imprint_now()) RETURNING id",
        *(post, account),
    )
    for fence, outcome in enumerate(OUTCOMES):
        await connection.execute(
            "INSERT INTO attempt (publication_id, fence, began_at, drift, ended_at, outcome, remote_id) "
            "VALUES ($1, $2, imprint_now() - $3::interval, $4, imprint_now() - $3::interval, $5, '1')",
            *(publication, fence, ago, drift, outcome),
        )


async def test_what_happened_is_counted(database: Database) -> None:
    """Attempts by platform and outcome, retries, rate limits, drift, chapters, notices; and no name of anything."""
    async with database.connection() as link:
        await attempted(link, timedelta(seconds=5))
        series = await link.fetchval("INSERT INTO series (title, owner) VALUES ('secret series', 'ada') RETURNING id")
        await link.execute(
            "INSERT INTO chapter (series_id, slug, kind, silent) VALUES ($1, '1', 'chapter', false)", series
        )
        await link.execute(
            "INSERT INTO notice (person, series_id, chapter_id) SELECT 'ada', series_id, id FROM chapter"
        )
        await link.execute(
            "INSERT INTO circuit (key, openings, open_until) VALUES ('host:x', 1, imprint_now() + '1 h')"
        )
    found = await figures(database)
    assert found["imprint_attempts_total,published,folder"] == 1
    assert found["imprint_retries_total,folder"] == 2
    assert found["imprint_rate_limits_total,folder"] == 1
    assert (found["imprint_drift_seconds_bucket,0.5"], found["imprint_drift_seconds_bucket,1"]) == (0, 4)
    assert (found["imprint_drift_seconds_count"], found["imprint_drift_seconds_sum"]) == (4, 4)
    assert (found["imprint_chapters_total,new"], found["imprint_notices_total"]) == (1, 1)
    assert (found["imprint_publications,due"], found["imprint_circuits_open,host"]) == (1, 1)
    assert found["imprint_oldest_seconds,publication"] > 0
    assert found["process_resident_memory_bytes"] > 0
    assert "secret" not in (await metrics(database, lambda: 0)).decode()


async def test_folding_changes_no_figure(database: Database) -> None:
    """What is far enough back is added up once, and nothing is counted twice or forgotten."""
    async with database.connection() as link:
        for ago in (1, 3, 30, 300):
            await attempted(link, timedelta(minutes=ago))
        before = [each for each in await COUNTS.all(link) if each.value]
        assert await FOLD.run(link) == 1
        assert await FOLD.run(link) == 0  # not again so soon
        assert sum(await link.fetchval("SELECT array_agg(value) FROM tally WHERE name = 'attempts'")) == 12
        after = [each for each in await COUNTS.all(link) if each.value]
    assert after == before
    assert sum(each.value for each in after if each.name == "attempts") == 16


async def test_no_figure_reads_all_of_the_past(connection: Connection) -> None:
    """However much there is: what is counted from the mark on, and what is open, is found by an index."""
    await connection.execute("SET enable_seqscan = off")
    for statement in (GAUGES.sql, COUNTS.sql):
        plan = "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN {statement}"))
        scanned = set(re.findall(r"Seq Scan on (\w+)", plan))
        assert scanned <= {"circuit", "worker", "pgqueuer", "tally", "tally_mark"}, plan
    body = await connection.fetchval("SELECT prosrc FROM pg_proc WHERE proname = 'tally_between'")
    for name, value in (("after", "$1"), ("upto", "$2")):
        body = re.sub(rf"\b{name}\.(at)\b", f"({value}::timestamptz)", body)
        body = re.sub(
            rf"\b{name}\.(chapter|notice)\b", f"({value.replace('$1', '$3').replace('$2', '$4')}::bigint)", body
        )
    await connection.execute(f"PREPARE tallied AS {body}")
    await connection.execute("SET plan_cache_mode = force_generic_plan")
    rows = await connection.fetch("EXPLAIN EXECUTE tallied (now(), now(), 1, 2)")
    plan = "\n".join(row[0] for row in rows)
    assert not re.findall(r"Seq Scan on (attempt|delivery|derivation|chapter|notice|pgqueuer_log)", plan), plan


async def test_the_dashboard_asks_for_nothing_that_is_not_there(database: Database) -> None:
    """Every metric in docs/grafana.json is one that we give, also when nothing has happened yet."""
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    asked = {
        name
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in re.findall(r"\b(?:imprint|process)_\w+", target["expr"])
    }
    text = (await metrics(database, lambda: 0)).decode()
    families = re.findall(r"^# TYPE (\S+) (\w+)", text, re.MULTILINE)
    given = {name for name, _ in families} | {
        name + end for name, kind in families if kind == "histogram" for end in ("_bucket", "_sum", "_count")
    }
    assert len(asked) > 15
    assert asked <= given
    unseen = {name for name in given if name.startswith("imprint_")} - asked
    assert unseen <= {"imprint_drift_seconds", "imprint_drift_seconds_sum", "imprint_drift_seconds_count"}
