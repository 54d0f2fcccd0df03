-- name: figures_attempts
-- How many attempts have ended in each way since the beginning, and how many seconds they took together.
SELECT outcome, count(*) AS attempts, coalesce(sum(extract(epoch FROM ended_at - began_at)), 0)::float8 AS seconds
FROM attempt WHERE ended_at IS NOT NULL GROUP BY outcome ORDER BY outcome

-- name: figures_drift
-- How many seconds after their time the publications of the last while were begun: half of them, and all but a hundredth.
SELECT count(*) AS attempts,
    coalesce(percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM drift)), 0)::float8 AS p50,
    coalesce(percentile_cont(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM drift)), 0)::float8 AS p99
FROM attempt WHERE began_at > imprint_now() - $1::interval AND drift IS NOT NULL

-- name: figures_open
-- How many publications wait, run or are unknown.
SELECT status, count(*) AS publications FROM publication WHERE status IN ('pending', 'running', 'unknown')
GROUP BY status ORDER BY status

-- name: figures_alarms
-- How many publications were accepted twice.
SELECT count(*) AS publications FROM publication_log WHERE kind = 'duplicate'
