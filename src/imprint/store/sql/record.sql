-- name: record_hold
-- A publication and what is known of it, kept as it is until the transaction ends.
SELECT u.id, u.account_id, a.platform, u.status, u.fence, u.intent_at IS NOT NULL AS intent,
    u.left_at IS NOT NULL AS left, u.attempts, u.crashes, u.looks, u.remote_id,
    imprint_now() - coalesce(u.left_at, u.intent_at) AS left_for
FROM publication u JOIN account a ON a.id = u.account_id WHERE u.id = $1 FOR UPDATE OF u

-- name: record_attempt
-- Ends an attempt with its outcome; evidence of success also replaces what was thought of it before.
UPDATE attempt SET ended_at = coalesce(ended_at, imprint_now()), outcome = $3, code = $4, sentence = $5, stage = $6,
    http_status = $7, remote_id = $8, url = $9
WHERE publication_id = $1 AND fence = $2 AND (ended_at IS NULL OR ($3 = 'published' AND outcome <> 'published'))
RETURNING publication_id AS id

-- name: record_succeed
-- It is out, whoever holds the lease: evidence of success always wins.
WITH out AS (
    UPDATE publication SET status = 'success', remote_id = $2, url = $3, published_at = imprint_now(), phase = NULL,
        lease_until = NULL, look_at = NULL, held_until = NULL, held_why = NULL, error_code = NULL, crashes = 0,
        fence = fence + CASE WHEN fence = $4 THEN 0 ELSE 1 END
    WHERE id = $1 AND status IN ('running', 'unknown') RETURNING id
), ended AS (
    -- What was thought of the attempt before, that it died for instance, was wrong.
    UPDATE attempt SET ended_at = coalesce(ended_at, imprint_now()), outcome = 'published', code = NULL, sentence = NULL,
        remote_id = $2, url = $3
    FROM out WHERE publication_id = out.id AND fence = $4
), told AS (
    INSERT INTO publication_log (publication_id, kind, line, data)
    SELECT id, $5, $6, jsonb_build_object('remoteId', $2::text, 'url', $3::text) FROM out
)
SELECT id FROM out

-- name: record_try_again
-- It is proven not to be out by this attempt; it is tried again after a while.
UPDATE publication SET status = 'pending', phase = NULL, lease_until = NULL, intent_at = NULL, deadline = NULL,
    attempts = attempts + $3::integer, crashes = 0, due_at = greatest(due_at, imprint_now() + $4::interval),
    held_why = $5
WHERE id = $1 AND fence = $2 AND status = 'running' RETURNING id

-- name: record_hold_account
-- Nothing is out; it waits until its account is connected again, and keeps its time.
UPDATE publication SET status = 'pending', phase = NULL, lease_until = NULL, intent_at = NULL, deadline = NULL,
    crashes = 0, held_until = CASE WHEN (SELECT status FROM account WHERE id = account_id) = 'connected' THEN NULL
                                   ELSE 'infinity'::timestamptz END,
    held_why = 'account'
WHERE id = $1 AND fence = $2 AND status = 'running' RETURNING id

-- name: record_fail
-- It cannot be published as it is. What was uploaded for it is forgotten: the next try, if a person wants one, is new.
WITH failed AS (
    UPDATE publication SET status = 'failed', phase = NULL, lease_until = NULL, error_code = $3
    WHERE id = $1 AND fence = $2 AND status = 'running' RETURNING id
), forgotten AS (
    DELETE FROM remote_file USING failed WHERE publication_id = failed.id
)
SELECT id FROM failed

-- name: record_lose
-- It left, or may have, and no trustworthy answer came back; it is looked for when its sender must be done.
UPDATE publication SET status = 'unknown', phase = NULL, lease_until = NULL, attempts = attempts + 1, crashes = 0,
    intent_at = coalesce(intent_at, left_at), left_at = coalesce(left_at, intent_at),
    look_at = greatest(imprint_now(), deadline) + $3::interval
WHERE id = $1 AND fence = $2 AND status = 'running' RETURNING id

-- name: record_want_again
-- Evidence came for one that was given up: it is taken up again, and the evidence settles it.
UPDATE publication SET status = 'pending', error_code = NULL, crashes = 0, attempts = 0, looks = 0, intent_at = NULL,
    deadline = NULL, due_at = greatest(imprint_now(), scheduled_at + make_interval(secs => jitter_seconds))
WHERE id = $1 AND status = 'failed' AND deleted_at IS NULL RETURNING id

-- name: record_log
-- Writes a line into the log of a publication.
INSERT INTO publication_log (publication_id, kind, line, data) VALUES ($1, $2, $3, $4::jsonb)

-- name: record_worked
-- Closes the circuits that have just worked and forgets their failures, and eases the pace of the account.
WITH closed AS (
    DELETE FROM circuit WHERE key = ANY ($1::text[]) AND coalesce(open_until <= imprint_now(), true)
)
UPDATE pace SET gap = least(greatest(gap * $5::double precision, $3::interval), $4::interval) WHERE key = $2 AND gap > $3
