-- name: status_work
-- For each kind of work: what waits for its time, what runs, what is late, and what is stuck.
SELECT 'publications' AS kind,
       (SELECT count(*) FROM publication WHERE status = 'pending') AS waiting,
       (SELECT count(*) FROM publication WHERE status = 'running') AS running,
       (SELECT count(*) FROM publication WHERE status = 'pending' AND due_at < imprint_now() - interval '1 min'
           AND NOT paused AND turn IS DISTINCT FROM 'behind') AS late,
       (SELECT count(*) FROM publication WHERE status = 'running' AND wake_at < imprint_now() - interval '30 s') AS stuck
UNION ALL
SELECT 'sources',
       (SELECT count(*) FROM source WHERE lease_until IS NULL AND status <> 'disabled'),
       (SELECT count(*) FROM source WHERE lease_until IS NOT NULL),
       (SELECT count(*) FROM source WHERE lease_until IS NULL AND status <> 'disabled'
           AND next_check_at < imprint_now() - interval '1 min'),
       (SELECT count(*) FROM source WHERE lease_until IS NOT NULL AND wake_at < imprint_now() - interval '30 s')
UNION ALL
SELECT 'uploads',
       (SELECT count(*) FROM object WHERE variant IS NULL AND status = 'created' AND deleted_at IS NULL),
       (SELECT count(*) FROM object WHERE variant IS NULL AND status = 'uploading' AND deleted_at IS NULL),
       0,
       (SELECT count(*) FROM object o JOIN content c ON c.id = o.content_id AND c.deleted_at IS NULL
           WHERE o.variant IS NULL AND o.status IN ('created', 'uploading')
             AND o.expires_at < imprint_now() - interval '1 hour')
UNION ALL
SELECT 'variants',
       count(*) FILTER (WHERE d.lease_until IS NULL),
       count(*) FILTER (WHERE d.lease_until IS NOT NULL),
       count(*) FILTER (WHERE d.lease_until IS NULL AND d.status_at < imprint_now() - interval '10 min'),
       count(*) FILTER (WHERE d.lease_until < imprint_now() - interval '5 min')
FROM derivation d JOIN content c ON c.id = d.parent_id AND c.deleted_at IS NULL AND c.status IN ('uploaded', 'processing')
WHERE d.status IN ('created', 'processing') AND d.deleted_at IS NULL AND d.wanted
UNION ALL
SELECT 'jobs',
       count(*) FILTER (WHERE status = 'queued'),
       count(*) FILTER (WHERE status = 'picked'),
       count(*) FILTER (WHERE status = 'queued' AND execute_after < statement_timestamp() - interval '1 min'),
       count(*) FILTER (WHERE status = 'picked' AND heartbeat < statement_timestamp() - interval '1 min')
FROM pgqueuer

-- name: status_dead_letters
-- How much failed for good and waits for a person, by queue.
SELECT entrypoint, sum(held)::bigint AS held FROM (
    SELECT entrypoint, count(*) AS held FROM pgqueuer WHERE status = 'failed' GROUP BY entrypoint
    UNION ALL
    SELECT 'notify', count(*) FROM delivery WHERE failed_at IS NOT NULL AND ended_at IS NULL
    UNION ALL
    SELECT 'ingest', count(*) FROM set_aside a JOIN source o ON o.id = a.source_id AND o.deleted_at IS NULL
    WHERE a.discarded_at IS NULL
) AS letter WHERE held > 0 GROUP BY entrypoint ORDER BY entrypoint

-- name: status_unknown
-- How many publications are unknown, how many of them ask a person, which to begin with, and how many went out twice.
SELECT count(*) AS unknown, count(*) FILTER (WHERE look_at IS NULL) AS asking,
    (array_agg(id ORDER BY status_at) FILTER (WHERE look_at IS NULL))[1:3] AS examples,
    (SELECT count(*) FROM publication_log
     WHERE kind = 'duplicate' AND at > imprint_now() - interval '7 days') AS duplicates,
    ARRAY(SELECT DISTINCT publication_id FROM publication_log
          WHERE kind = 'duplicate' AND at > imprint_now() - interval '7 days' LIMIT 3) AS doubled
FROM publication WHERE status = 'unknown'

-- name: status_lifecycles
-- The moves the database allows, to be compared with the declarations.
SELECT lifecycle, source, target, name FROM lifecycle_move ORDER BY lifecycle, source, target

-- name: status_size
-- How large the database is, in bytes.
SELECT pg_database_size(current_database()) AS bytes

-- name: status_failing
-- How many publications have failed within a week and still wait for a person, which posts to begin with, and how many
-- sources cannot be read.
SELECT count(*) AS publications, (array_agg(DISTINCT post_id))[1:3] AS posts,
    (SELECT count(*) FROM source WHERE error_code IS NOT NULL AND status <> 'disabled' AND deleted_at IS NULL) AS sources
FROM publication WHERE status = 'failed' AND deleted_at IS NULL AND status_at > imprint_now() - interval '7 days'
