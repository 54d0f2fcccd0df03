-- name: retention_finished
-- Drops the log of jobs that ended longer ago than $1, and of all but the newest $2; what is still in the queue stays.
WITH ended AS (
    SELECT job_id, max(created) AS at FROM pgqueuer_log
    WHERE status IN ('successful', 'exception', 'canceled', 'deleted') GROUP BY job_id
), kept AS (
    SELECT job_id FROM ended WHERE at > statement_timestamp() - $1::interval ORDER BY at DESC LIMIT $2
)
DELETE FROM pgqueuer_log l USING ended
WHERE l.job_id = ended.job_id AND NOT EXISTS (SELECT FROM kept WHERE kept.job_id = l.job_id)
  AND NOT EXISTS (SELECT FROM pgqueuer q WHERE q.id = l.job_id)

-- name: retention_failed
-- Drops dead letters held longer than $1, and all but the newest $2.
DELETE FROM pgqueuer WHERE status = 'failed' AND (
    updated < statement_timestamp() - $1::interval
    OR id NOT IN (SELECT id FROM pgqueuer WHERE status = 'failed' ORDER BY updated DESC, id DESC LIMIT $2))

-- name: retention_failed_deliveries
-- Lets go of messages that failed for good longer than $1 ago, and of all but the newest $2.
UPDATE delivery SET ended_at = imprint_now(), outcome = 'discarded'
WHERE failed_at IS NOT NULL AND ended_at IS NULL AND (
    failed_at < imprint_now() - $1::interval
    OR id NOT IN (SELECT id FROM delivery WHERE failed_at IS NOT NULL AND ended_at IS NULL
                  ORDER BY failed_at DESC, id DESC LIMIT $2))

-- name: retention_set_aside
-- Drops items that were set aside and that their sources have not shown for longer than $1.
DELETE FROM set_aside WHERE seen_at < imprint_now() - $1::interval

-- name: retention_failed_log
-- Drops the log of dead letters that are gone: their last line is `failed` and nothing is held under their number.
DELETE FROM pgqueuer_log l WHERE l.created < statement_timestamp() - $1::interval
  AND NOT EXISTS (SELECT FROM pgqueuer q WHERE q.id = l.job_id)
  AND EXISTS (SELECT FROM pgqueuer_log f WHERE f.job_id = l.job_id AND f.status = 'failed')

-- name: retention_statistics
-- Drops PgQueuer's counts per second after a month.
DELETE FROM pgqueuer_statistics WHERE created < statement_timestamp() - interval '30 days'
