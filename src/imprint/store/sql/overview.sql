-- name: overview_publications
-- Where the publications of a person stand: what waits, runs, is late, unknown, asks the person, has failed or is out.
SELECT count(*) FILTER (WHERE u.status = 'pending') AS waiting,
    count(*) FILTER (WHERE u.status = 'running') AS running,
    count(*) FILTER (WHERE u.status = 'pending' AND u.due_at < imprint_now() - interval '1 min' AND NOT u.paused
        AND u.turn IS DISTINCT FROM 'behind') AS late,
    count(*) FILTER (WHERE u.status = 'unknown') AS unknown,
    count(*) FILTER (WHERE u.status = 'unknown' AND u.look_at IS NULL) AS asking,
    count(*) FILTER (WHERE u.status = 'failed') AS failed,
    count(*) FILTER (WHERE u.status = 'success') AS out,
    min(u.due_at) FILTER (WHERE u.status = 'pending') AS next_at
FROM account a JOIN publication u ON u.account_id = a.id AND u.deleted_at IS NULL
JOIN post p ON p.id = u.post_id AND p.owner = $1
WHERE a.owner = $1

-- name: overview_accounts
-- How many accounts of a person there are in each state.
SELECT status, count(*) AS things FROM account WHERE owner = $1 AND deleted_at IS NULL GROUP BY status ORDER BY status

-- name: overview_sources
-- How many sources of a person's series there are, and how many of them cannot be read.
SELECT count(*) AS sources, count(*) FILTER (WHERE s.error_code IS NOT NULL AND s.status <> 'disabled') AS failing
FROM series r JOIN source s ON s.series_id = r.id AND s.deleted_at IS NULL
WHERE r.owner = $1 AND r.deleted_at IS NULL

-- name: overview_attempts
-- How many attempts of a person's publications have ended in each way, and how many seconds they took together.
SELECT t.outcome, count(*) AS attempts, coalesce(sum(extract(epoch FROM t.ended_at - t.began_at)), 0)::float8 AS seconds
FROM account a JOIN publication u ON u.account_id = a.id JOIN post p ON p.id = u.post_id AND p.owner = $1
JOIN attempt t ON t.publication_id = u.id AND t.ended_at IS NOT NULL
WHERE a.owner = $1 GROUP BY t.outcome ORDER BY t.outcome

-- name: overview_drift
-- How many seconds after their time a person's publications of the last while were begun: half, and all but a hundredth.
SELECT count(*) AS attempts,
    coalesce(percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM t.drift)), 0)::float8 AS p50,
    coalesce(percentile_cont(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM t.drift)), 0)::float8 AS p99
FROM attempt t JOIN publication u ON u.id = t.publication_id JOIN post p ON p.id = u.post_id AND p.owner = $2
WHERE t.began_at > imprint_now() - $1::interval AND t.drift IS NOT NULL

-- name: overview_alarms
-- How many publications of a person were accepted twice.
SELECT count(*) AS publications FROM publication_log l
JOIN publication u ON u.id = l.publication_id JOIN post p ON p.id = u.post_id AND p.owner = $1 WHERE l.kind = 'duplicate'
