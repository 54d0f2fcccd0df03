-- name: status_work
-- For each kind of work: what waits for its time, what runs, what is late, and what is stuck.
SELECT 'publications' AS kind,
       (SELECT count(*) FROM publication WHERE status = 'pending') AS waiting,
       (SELECT count(*) FROM publication WHERE status = 'running') AS running,
       (SELECT count(*) FROM publication WHERE status = 'pending' AND due_at < imprint_now() - interval '1 min') AS late,
       (SELECT count(*) FROM publication WHERE status = 'running' AND wake_at < imprint_now() - interval '30 s') AS stuck
UNION ALL
SELECT 'sources',
       (SELECT count(*) FROM source WHERE lease_until IS NULL AND status <> 'disabled'),
       (SELECT count(*) FROM source WHERE lease_until IS NOT NULL),
       (SELECT count(*) FROM source WHERE lease_until IS NULL AND status <> 'disabled'
           AND next_check_at < imprint_now() - interval '1 min'),
       (SELECT count(*) FROM source WHERE lease_until IS NOT NULL AND wake_at < imprint_now() - interval '30 s')
UNION ALL
SELECT 'jobs',
       count(*) FILTER (WHERE status = 'queued'),
       count(*) FILTER (WHERE status = 'picked'),
       count(*) FILTER (WHERE status = 'queued' AND execute_after < statement_timestamp() - interval '1 min'),
       count(*) FILTER (WHERE status = 'picked' AND heartbeat < statement_timestamp() - interval '1 min')
FROM pgqueuer

-- name: status_dead_letters
-- How many jobs are held after their last attempt, by kind.
SELECT entrypoint, count(*) AS held FROM pgqueuer WHERE status = 'failed' GROUP BY entrypoint ORDER BY entrypoint

-- name: status_unknown
-- How many publications wait for a person because nobody can tell whether they are out.
SELECT count(*) AS waiting FROM publication WHERE status = 'unknown'

-- name: status_lifecycles
-- The moves the database allows, to be compared with the declarations.
SELECT lifecycle, source, target, name FROM lifecycle_move ORDER BY lifecycle, source, target

-- name: status_size
-- How large the database is, in bytes.
SELECT pg_database_size(current_database()) AS bytes
