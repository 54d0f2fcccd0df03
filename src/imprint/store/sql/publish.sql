-- name: publish_standing
-- Everything a worker must know of a publication before it takes it; nothing when its batch does not let it go now.
SELECT u.id, u.post_id, p.owner, u.account_id, a.platform, u.file_id, u.status, u.due_at, imprint_now() AS now,
    a.status = 'connected' AND a.deleted_at IS NULL AS connected, p.late_policy, p.late_hours,
    u.left_at IS NOT NULL AS left
FROM publication u JOIN post p ON p.id = u.post_id JOIN account a ON a.id = u.account_id
WHERE u.id = $1 AND NOT u.paused AND u.turn IS DISTINCT FROM 'behind'

-- name: publish_hold
-- Leaves a publication alone until a moment, or for a while, and says what it waits for.
UPDATE publication SET held_until = coalesce($2::timestamptz, imprint_now() + $3::interval), held_why = $4
WHERE id = $1 AND status = 'pending' RETURNING id

-- name: publish_refuse
-- Ends a publication that cannot go out as it is before anybody takes it; one that may be out is not called failed. The
-- next one of its account need not wait for it any longer.
WITH refused AS (
    UPDATE publication SET status = 'failed', error_code = $2, held_until = NULL, held_why = NULL
    WHERE id = $1 AND status = 'pending' AND left_at IS NULL RETURNING id, account_id
), next AS (
    UPDATE publication SET held_until = NULL WHERE id = (
        SELECT n.id FROM refused JOIN publication n ON n.account_id = refused.account_id
        WHERE n.status = 'pending' AND n.held_why = 'busy' AND n.due_at <= imprint_now() AND n.id <> refused.id
        ORDER BY n.due_at LIMIT 1 FOR NO KEY UPDATE OF n SKIP LOCKED)
), told AS (
    INSERT INTO publication_log (publication_id, kind, line, data)
    SELECT id, 'failed', $3, jsonb_build_object('code', $2::text) FROM refused
)
SELECT id FROM refused

-- name: publish_taken
-- What the one who took a publication needs to know: what was said before, the evidence of earlier attempts, and whether
-- a circuit must be asked.
SELECT u.made_at, imprint_now() - u.left_at AS left_for, u.snapshot, u.snapshot_sha256, p.revision,
    known.remote_id AS known_id, known.url AS known_url,
    EXISTS (SELECT FROM circuit WHERE key = ANY ($2::text[])) AS troubled
FROM publication u JOIN post p ON p.id = u.post_id
LEFT JOIN LATERAL (
    SELECT a.remote_id, a.url FROM attempt a
    WHERE a.publication_id = u.id AND a.outcome = 'published' ORDER BY a.fence LIMIT 1
) known ON true
WHERE u.id = $1

-- name: publish_uploads
-- The files of this revision of a post that the platform has already taken.
SELECT remote_id AS id, sha256, data FROM remote_file WHERE publication_id = $1 AND revision = $2

-- name: publish_uploaded
-- Keeps what the platform made of a file, under the fence; no row means that the lease is lost.
WITH mine AS (
    SELECT id FROM publication WHERE id = $1 AND fence = $2 AND status = 'running' AND lease_until > imprint_now()
    FOR NO KEY UPDATE
), kept AS (
    INSERT INTO remote_file (publication_id, revision, sha256, remote_id, data, fence)
    SELECT id, $3, $4, $5, $6, $2 FROM mine
    ON CONFLICT (publication_id, revision, sha256)
    DO UPDATE SET remote_id = excluded.remote_id, data = excluded.data, fence = excluded.fence,
        uploaded_at = imprint_now()
    RETURNING publication_id AS id
), told AS (
    INSERT INTO publication_log (publication_id, kind, line, data)
    SELECT id, 'uploaded', 'The platform has the file ' || $7::text || '.',
           jsonb_build_object('remoteId', $5::text, 'sha256', $4::text)
    FROM kept
), done AS (
    DELETE FROM progress WHERE publication_id = $1
)
SELECT id FROM kept

-- name: publish_progress
-- Says how far an upload has come.
INSERT INTO progress (publication_id, fence, sha256, name, sent, size) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (publication_id) DO UPDATE SET fence = excluded.fence, sha256 = excluded.sha256, name = excluded.name,
    sent = excluded.sent, size = excluded.size, at = imprint_now()

-- name: publish_intend
-- Commits that a request that publishes is about to leave, by whom, and exactly what it says; only for the holder of the
-- lease, which from here on outlives the request. An intent that was made in this attempt before is made anew.
WITH acts AS MATERIALIZED (
    SELECT set_config('imprint.actor', $7, true), set_config('imprint.reason', 'the request that publishes leaves', true)
), intended AS (
    UPDATE publication SET phase = 'publishing', intent_at = imprint_now(), snapshot = $3, snapshot_sha256 = $4,
        deadline = imprint_now() + $5::interval,
        lease_until = greatest(lease_until, imprint_now() + $5::interval + $6::interval)
    FROM acts WHERE id = $1 AND fence = $2 AND status = 'running' AND lease_until > imprint_now()
      AND NOT EXISTS (SELECT FROM incarnation WHERE held_since IS NOT NULL)
    RETURNING id, fence, intent_at, deadline
), noted AS (
    UPDATE attempt a SET intent_at = intended.intent_at, deadline = intended.deadline, request_sha256 = $4
    FROM intended WHERE a.publication_id = intended.id AND a.fence = intended.fence
)
SELECT id FROM intended

-- name: publish_intended
-- Reads back whether an intent stands, when the answer to its commit was lost.
SELECT u.id FROM publication u JOIN attempt a ON a.publication_id = u.id AND a.fence = u.fence
WHERE u.id = $1 AND u.fence = $2 AND u.status = 'running' AND u.intent_at IS NOT NULL AND a.intent_at = u.intent_at
