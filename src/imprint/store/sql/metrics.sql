-- name: metrics_counts
-- Everything that is counted: what was counted up to the mark, and what came later.
SELECT name, kind, outcome, sum(value)::float8 AS value FROM (
    SELECT name, kind, outcome, value FROM tally
    UNION ALL
    SELECT new.* FROM tally_mark AS mark, LATERAL tally_between(
        mark, ROW (true, imprint_now() + interval '1 day', 9223372036854775807, 9223372036854775807)::tally_mark) AS new
) AS counted GROUP BY name, kind, outcome ORDER BY name, kind, outcome

-- name: metrics_fold
-- Adds what came since the mark to the tally and moves the mark; not too near to now, where something may still be
-- committed with an earlier time, and not while somebody else does.
WITH mark AS MATERIALIZED (
    SELECT * FROM tally_mark WHERE at < imprint_now() - interval '10 min' FOR UPDATE SKIP LOCKED
), upto AS MATERIALIZED (
    SELECT true AS one, imprint_now() - interval '2 min' AS at,
        greatest(mark.chapter, coalesce((SELECT min(id) - 1 FROM chapter
            WHERE id > mark.chapter AND first_seen_at > imprint_now() - interval '2 min'), (SELECT max(id) FROM chapter)))
            AS chapter,
        greatest(mark.notice, coalesce((SELECT min(id) - 1 FROM notice
            WHERE id > mark.notice AND created_at > imprint_now() - interval '2 min'), (SELECT max(id) FROM notice)))
            AS notice
    FROM mark
), added AS (
    INSERT INTO tally (name, kind, outcome, value)
    SELECT new.name, new.kind, new.outcome, new.value FROM mark, upto, LATERAL tally_between(
        ROW (mark.one, mark.at, mark.chapter, mark.notice)::tally_mark,
        ROW (upto.one, upto.at, upto.chapter, upto.notice)::tally_mark) AS new
    ON CONFLICT (name, kind, outcome) DO UPDATE SET value = tally.value + excluded.value
)
UPDATE tally_mark SET at = upto.at, chapter = upto.chapter, notice = upto.notice FROM upto

-- name: metrics_gauges
-- How things stand: what is open, what is due, how long the oldest of it waits; of what may be many, at most 100,000.
SELECT 'jobs' AS name, entrypoint AS kind, status::text AS state, count(*)::float8 AS value FROM pgqueuer
WHERE status <> 'failed' GROUP BY entrypoint, status
UNION ALL
SELECT 'publications', '', 'pending', count(*)::float8 FROM (
    SELECT FROM publication WHERE status = 'pending' LIMIT 100000) AS open
UNION ALL
SELECT 'publications', '', 'due', count(*)::float8 FROM (
    SELECT FROM publication WHERE status = 'pending' AND wake_at <= imprint_now() LIMIT 100000) AS open
UNION ALL
SELECT 'publications', '', 'running', count(*)::float8 FROM publication WHERE status = 'running'
UNION ALL
SELECT 'publications', '', 'unknown', count(*)::float8 FROM publication WHERE status = 'unknown'
UNION ALL
SELECT 'circuits_open', split_part(key, ':', 1), '', count(*)::float8 FROM circuit WHERE open_until > imprint_now()
GROUP BY split_part(key, ':', 1)
UNION ALL
SELECT 'deliveries', '', 'waiting', count(*)::float8 FROM (
    SELECT FROM delivery WHERE ended_at IS NULL AND failed_at IS NULL LIMIT 100000) AS open
UNION ALL
SELECT 'derivations', '', 'open', count(*)::float8 FROM (
    SELECT FROM derivation WHERE status IN ('created', 'processing') AND deleted_at IS NULL LIMIT 100000) AS open
UNION ALL
SELECT 'workers', '', '', count(*)::float8 FROM worker WHERE seen_at > imprint_now() - interval '1 min'
UNION ALL
SELECT 'oldest', 'publication', '', greatest(extract(epoch FROM imprint_now() - (
    SELECT wake_at FROM publication WHERE status = 'pending' ORDER BY wake_at LIMIT 1)), 0)::float8
UNION ALL
SELECT 'oldest', 'running', '', greatest(extract(epoch FROM imprint_now() - (
    SELECT min(status_at) FROM publication WHERE status = 'running')), 0)::float8
UNION ALL
SELECT 'oldest', 'source', '', greatest(extract(epoch FROM imprint_now() - (
    SELECT wake_at FROM source WHERE lease_until IS NULL ORDER BY wake_at LIMIT 1)), 0)::float8
UNION ALL
SELECT 'oldest', 'delivery', '', greatest(extract(epoch FROM imprint_now() - (
    SELECT wake_at FROM delivery WHERE ended_at IS NULL AND failed_at IS NULL ORDER BY wake_at LIMIT 1)), 0)::float8
UNION ALL
SELECT 'oldest', 'job', '', greatest(extract(epoch FROM statement_timestamp() - (
    SELECT min(created) FROM pgqueuer WHERE status <> 'failed')), 0)::float8
