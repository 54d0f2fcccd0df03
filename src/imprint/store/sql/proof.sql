-- name: proof_account
-- An account to publish on while something is proved.
INSERT INTO account (platform, name, label, owner) VALUES ($1, $2, $2, $3) RETURNING id

-- name: proof_posts
-- A post for each title.
INSERT INTO post (title, description, tags)
SELECT title, 'Ink.', ARRAY['harbour', 'ink'] FROM unnest($1::text[]) AS title RETURNING id

-- name: proof_files
-- The same file for every post.
INSERT INTO post_file (post_id, content_id, position) SELECT post, $2, 0 FROM unnest($1::uuid[]) AS post

-- name: proof_ready
-- Says of posts that they can go out.
UPDATE post SET status = 'draft' WHERE id = ANY ($1::uuid[]) AND status = 'review'

-- name: proof_plan
-- Plans each post on the account beside it, so many seconds from now.
INSERT INTO publication (post_id, account_id, scheduled_at, zone, due_at)
SELECT post, account, imprint_now() + seconds * interval '1 second', 'UTC', imprint_now() + seconds * interval '1 second'
FROM unnest($1::uuid[], $2::uuid[], $3::double precision[]) AS planned (post, account, seconds) RETURNING id

-- name: proof_progress
-- How far everything has come: what is due, ready in the queue or just picked, in the hands of these workers, to be
-- looked for by now, and not over yet; and how many connections there are, those of the dead included.
SELECT count(*) FILTER (WHERE u.status <> 'running' AND u.wake_at <= imprint_now()) AS due,
    (SELECT count(*) FROM pgqueuer WHERE entrypoint IN ('publish', 'reconcile')
        AND ((status = 'queued' AND execute_after <= now()) OR (status = 'picked' AND updated > now() - interval '0.5 s'))) AS queued,
    count(*) FILTER (WHERE u.status = 'running' AND EXISTS (
        SELECT FROM attempt a WHERE a.publication_id = u.id AND a.fence = u.fence AND a.worker = ANY ($1::text[])
    )) AS held,
    count(*) FILTER (WHERE u.status = 'unknown' AND u.look_at <= imprint_now()) AS looks,
    count(*) FILTER (WHERE u.status = 'unknown') AS unknown,
    count(*) AS open,
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS connections
FROM publication u WHERE u.wake_at < 'infinity'

-- name: proof_next
-- How long until the first few of everything that waits, or of what is unknown, must be looked at. What a dead worker had
-- picked waits until the queue takes it for dead, whatever the row says: until then no second job is taken.
SELECT greatest(max(first.moment) - imprint_now(), interval '0') AS wait FROM (
    SELECT CASE j.status WHEN 'picked' THEN greatest(own.at, imprint_now() + (j.heartbeat + $2::interval - now()))
                         WHEN 'queued' THEN greatest(own.at, imprint_now() + (j.execute_after - now()))
                         ELSE u.wake_at END AS moment
    FROM publication u
    CROSS JOIN LATERAL (SELECT CASE u.status WHEN 'pending' THEN u.due_at WHEN 'unknown' THEN u.look_at END AS at) AS own
    LEFT JOIN pgqueuer j ON j.status IN ('picked', 'queued')
        AND j.dedupe_key = CASE u.status WHEN 'pending' THEN 'publish:' WHEN 'unknown' THEN 'reconcile:' END || u.id
    WHERE u.wake_at < 'infinity' AND (u.status = 'unknown' OR NOT $3) ORDER BY 1 LIMIT $1
) AS first HAVING count(*) > 0

-- name: proof_age_jobs
-- Lets the queue's own times pass as well, when a proof skips time in which nobody would do anything.
UPDATE pgqueuer SET heartbeat = heartbeat - $1::interval, execute_after = execute_after - $1::interval

-- name: proof_overdue
-- Every publication whose lease has ended without anybody having taken it back.
SELECT id, fence FROM publication WHERE status = 'running' AND lease_until <= imprint_now()

-- name: proof_ends
-- Where every publication stands, as Imprint believes.
SELECT u.id, p.title, a.platform, u.status, u.scheduled_at, u.wake_at IS NULL AS rests, u.held_why, u.error_code
FROM publication u JOIN post p ON p.id = u.post_id JOIN account a ON a.id = u.account_id

-- name: proof_intents
-- Every attempt at these publications whose request may have left, and how it ended.
SELECT publication_id, worker, outcome, stage FROM attempt
WHERE intent_at IS NOT NULL AND publication_id = ANY ($1::uuid[])

-- name: proof_deaths
-- How many attempts were given up for dead.
SELECT count(*) AS count FROM attempt WHERE outcome = 'died'

-- name: proof_source
-- A series with a source that nobody asks: a proof hands in its chapters itself.
WITH series AS (INSERT INTO series (title) VALUES ($1) RETURNING id)
INSERT INTO source (name, series_id, kind, ref, host, next_check_at)
SELECT 'feed', id, 'feed', 'https://proof.invalid/feed', 'proof.invalid', '9998-01-01' FROM series
RETURNING id, series_id

-- name: proof_releases
-- The ids of every release that a source has brought.
SELECT own_id AS id FROM release WHERE source_id = $1

-- name: proof_contents
-- Those of these contents that are verified and have their bytes somewhere.
SELECT c.id FROM content c JOIN object o ON o.content_id = c.id AND o.variant IS NULL
WHERE c.id = ANY ($1::uuid[]) AND o.status IN ('uploaded', 'processing', 'processed')

-- name: proof_publications
-- Those of these publications that are there.
SELECT id FROM publication WHERE id = ANY ($1::uuid[])

-- name: proof_ask
-- Lets every source that can be asked be asked now instead of at its time.
UPDATE source SET next_check_at = imprint_now()
WHERE status = 'active' AND lease_until IS NULL AND deleted_at IS NULL AND host <> 'proof.invalid'

-- name: proof_all_releases
-- The ids of every release there is.
SELECT own_id AS id FROM release

-- name: proof_connections
-- How many connections there are to this database.
SELECT count(*) AS count FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'

-- name: proof_made
-- How many works have all their variants, and how many have failed to get them.
SELECT count(*) FILTER (WHERE status = 'processed') AS processed, count(*) FILTER (WHERE status = 'failed') AS failed
FROM content
