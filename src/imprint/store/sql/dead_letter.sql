-- name: dead_letter_list
-- What failed for good and waits for a person, the newest first, a page at a time: of one queue or of all, of one id or
-- of any, of one person or of everybody.
WITH job_error AS (
    SELECT DISTINCT ON (l.job_id) l.job_id, l.traceback FROM pgqueuer_log l
    WHERE l.status = 'failed' AND EXISTS (SELECT FROM pgqueuer q WHERE q.id = l.job_id AND q.status = 'failed')
    ORDER BY l.job_id, l.id DESC
), letter AS (
    SELECT 'job' AS kind, q.id::text AS id, q.entrypoint AS queue, encode(q.payload, 'escape') AS about,
           q.attempts + 1 AS attempts,
           coalesce(e.traceback ->> 'exception_type' || ': ' || (e.traceback ->> 'exception_message'), '') AS error,
           q.updated AS held_at,
           jsonb_build_object('key', encode(q.payload, 'escape'), 'priority', q.priority, 'createdAt', q.created) AS data,
           lpad(to_hex(q.id), 32, '0')::uuid AS key,
           NULL AS owner  -- what went wrong with a job may quote anything: it is the machine's
    FROM pgqueuer q LEFT JOIN job_error e ON e.job_id = q.id
    WHERE q.status = 'failed'
    UNION ALL
    SELECT 'delivery', 'd' || d.id, 'notify', t.label, d.attempts, coalesce(d.error, ''), d.failed_at,
           jsonb_build_object('person', t.person, 'target', t.label, 'service', t.service, 'series', s.title, 'news', d.news,
               'rowId', d.row_id, 'notices', (
               SELECT jsonb_agg(jsonb_build_object('id', n.id, 'series', r.title, 'chapter', c.slug, 'title', c.title)
                                ORDER BY n.id)
               FROM delivery_notice dn JOIN notice n ON n.id = dn.notice_id JOIN chapter c ON c.id = n.chapter_id
               JOIN series r ON r.id = n.series_id WHERE dn.delivery_id = d.id)),
           ('d' || lpad(to_hex(d.id), 31, '0'))::uuid, t.person
    FROM delivery d JOIN target t ON t.id = d.target_id LEFT JOIN series s ON s.id = d.series_id
    WHERE d.failed_at IS NOT NULL AND d.ended_at IS NULL
    UNION ALL
    SELECT 'item', 'a' || a.id, 'ingest', r.title || ' at ' || o.name, a.times, a.error, a.seen_at,
           a.data || jsonb_build_object('source', o.name, 'series', r.title, 'code', a.error_code),
           ('a' || lpad(to_hex(a.id), 31, '0'))::uuid, r.owner
    FROM set_aside a JOIN source o ON o.id = a.source_id AND o.deleted_at IS NULL JOIN series r ON r.id = o.series_id
    WHERE a.discarded_at IS NULL
)
SELECT kind, id, queue, about, attempts, error, held_at, data::text AS data, key FROM letter
WHERE ($1::text IS NULL OR queue = $1) AND ($2::text IS NULL OR id = $2) AND ($4::text IS NULL OR owner = $4)
  AND (held_at, key) < ($5::timestamptz, $6::uuid)
ORDER BY held_at DESC, key DESC LIMIT $3

-- name: dead_letter_history_job
-- Everything that happened to a job: put in, begun, put back with its error, failed for good.
SELECT created AS at, status::text AS what,
       coalesce(traceback -> 'additional_context' ->> 'reason',
                traceback ->> 'exception_type' || ': ' || (traceback ->> 'exception_message')) AS error
FROM pgqueuer_log WHERE job_id = $1 ORDER BY id

-- name: dead_letter_requeue_job
-- Puts a job that is held back into the queue with all its attempts; no row means that somebody was faster.
WITH back AS (
    UPDATE pgqueuer SET status = 'queued', execute_after = statement_timestamp(), updated = statement_timestamp(),
        attempts = 0, queue_manager_id = NULL
    WHERE id = $1 AND status = 'failed' RETURNING id, entrypoint, priority, payload
), due AS (
    -- A source is asked when its row says so, and after a failure that is later.
    UPDATE source SET next_check_at = imprint_now(), held_until = imprint_now() + interval '60 s'
    FROM back WHERE source.id = CASE back.entrypoint WHEN 'poll' THEN encode(back.payload, 'escape')::uuid END
      AND source.lease_until IS NULL AND source.next_check_at > imprint_now()
), logged AS (
    INSERT INTO pgqueuer_log (job_id, status, entrypoint, priority) SELECT id, 'queued', entrypoint, priority FROM back
)
SELECT lpad(to_hex(id), 32, '0')::uuid AS row_id FROM back

-- name: dead_letter_discard_job
-- Takes a job that is held out of the queue; no row means that somebody was faster.
WITH gone AS (
    DELETE FROM pgqueuer WHERE id = $1 AND status = 'failed' RETURNING id, entrypoint, priority
), logged AS (
    INSERT INTO pgqueuer_log (job_id, status, entrypoint, priority) SELECT id, 'deleted', entrypoint, priority FROM gone
)
SELECT lpad(to_hex(id), 32, '0')::uuid AS row_id FROM gone

-- name: dead_letter_history_delivery
-- Why a message did not arrive, attempt by attempt.
SELECT at, 'failed' AS what, error FROM delivery_attempt WHERE delivery_id = $1 ORDER BY id

-- name: dead_letter_requeue_delivery
-- Lets a message that never arrived be sent with all its attempts; no row means that somebody was faster.
WITH back AS (
    UPDATE delivery SET failed_at = NULL, attempts = 0, lost = 0, next_at = imprint_now(), held_until = NULL
    WHERE id = $1 AND failed_at IS NOT NULL AND ended_at IS NULL RETURNING id, target_id
), closed AS (
    DELETE FROM circuit USING back WHERE circuit.key = 'target:' || back.target_id
)
SELECT ('d' || lpad(to_hex(id), 31, '0'))::uuid AS row_id FROM back

-- name: dead_letter_discard_delivery
-- Lets a message go that never arrived; no row means that somebody was faster.
UPDATE delivery SET ended_at = imprint_now(), outcome = 'discarded'
WHERE id = $1 AND failed_at IS NOT NULL AND ended_at IS NULL
RETURNING ('d' || lpad(to_hex(id), 31, '0'))::uuid AS row_id

-- name: dead_letter_history_item
-- When an item of a source was first set aside, and when it was last seen to be as bad.
SELECT first_seen_at AS at, 'set aside' AS what, error FROM set_aside WHERE id = $1
UNION ALL
SELECT seen_at, 'set aside again, ' || times || ' times in all', error FROM set_aside WHERE id = $1 AND times > 1
ORDER BY at

-- name: dead_letter_requeue_item
-- Forgets that an item was set aside and lets its source be read from its beginning at once; while it is being asked
-- there is no row.
WITH back AS (
    UPDATE source SET etag = NULL, last_modified = NULL, cursor = NULL, read_all_at = NULL, next_check_at = imprint_now(),
        held_until = NULL
    WHERE id = (SELECT source_id FROM set_aside WHERE id = $1 AND discarded_at IS NULL)
      AND lease_until IS NULL AND status <> 'disabled' AND deleted_at IS NULL
    RETURNING id
), gone AS (
    DELETE FROM set_aside USING back
    WHERE set_aside.id = $1 AND set_aside.source_id = back.id AND discarded_at IS NULL RETURNING set_aside.id
)
SELECT ('a' || lpad(to_hex(id), 31, '0'))::uuid AS row_id FROM gone

-- name: dead_letter_discard_item
-- Lets an item go that was set aside; no row means that somebody was faster.
UPDATE set_aside SET discarded_at = imprint_now() WHERE id = $1 AND discarded_at IS NULL
RETURNING ('a' || lpad(to_hex(id), 31, '0'))::uuid AS row_id

-- name: dead_letter_audit
-- Writes into the audit who requeued or discarded a dead letter; who and which are said by the transaction.
INSERT INTO audit (lifecycle, row_id, move, source, target, actor, reason)
VALUES ('dead_letter', $1, $2, 'held', $3,
        coalesce(nullif(current_setting('imprint.actor', true), ''), 'database user ' || session_user),
        nullif(current_setting('imprint.reason', true), ''))
