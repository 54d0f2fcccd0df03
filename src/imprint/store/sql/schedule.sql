-- name: schedule_now
-- The moment it is for Imprint.
SELECT imprint_now() AS now

-- name: schedule_accounts
-- Accounts of a person, kept as they are until the transaction ends; always taken before publications.
SELECT id, platform, label, name, status FROM account
WHERE id = ANY ($1::uuid[]) AND owner = $2 AND deleted_at IS NULL ORDER BY id FOR SHARE

-- name: schedule_default
-- The account a person publishes to when none is named.
SELECT id FROM account WHERE owner = $1 AND is_default AND deleted_at IS NULL

-- name: schedule_turn
-- Lets one transaction at a time change what is planned of a post; taken before anything else.
SELECT FROM pg_advisory_xact_lock(hashtextextended('post_schedule', 0) # hashtextextended($1::uuid::text, 0))

-- name: schedule_hold
-- The publications of a post, kept as they are until the transaction ends; always taken before the post. One that was
-- given up, and then turned out to be out, counts as what it is.
SELECT u.id, u.account_id, u.file_id, CASE WHEN o.out THEN 'success' ELSE u.status END AS status,
    u.intent_at IS NOT NULL OR u.left_at IS NOT NULL AS left, u.due_at, u.deleted_at IS NOT NULL AND NOT o.out AS dismissed
FROM publication u CROSS JOIN LATERAL (
    SELECT u.status IN ('cancelled', 'failed') AND EXISTS (
        SELECT FROM attempt a WHERE a.publication_id = u.id AND a.outcome = 'published') AS out
) o WHERE u.post_id = $1 ORDER BY u.id FOR UPDATE OF u

-- name: schedule_insert
-- Plans a publication.
INSERT INTO publication (post_id, account_id, file_id, scheduled_at, zone, jitter_seconds, due_at)
VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id

-- name: schedule_again
-- Plans a publication that failed for another time.
UPDATE publication SET status = 'pending', scheduled_at = $2, zone = $3, jitter_seconds = $4, due_at = $5,
    batch_id = NULL, error_code = NULL, crashes = 0, attempts = 0, looks = 0, intent_at = NULL, deadline = NULL, made_at = NULL,
    snapshot = NULL, snapshot_sha256 = NULL
WHERE id = $1 AND status = 'failed' AND deleted_at IS NULL RETURNING id

-- name: schedule_move
-- Gives the waiting publications of a post another time, each with the jitter it has; what runs or may be out is not
-- touched. With a time of its own it leaves its batch.
UPDATE publication SET scheduled_at = $3::timestamptz, zone = $4, batch_id = NULL, made_at = NULL,
    due_at = $3::timestamptz + make_interval(secs => jitter_seconds)
WHERE post_id = $1 AND status = 'pending' AND left_at IS NULL AND ($2::uuid[] IS NULL OR account_id = ANY ($2))
RETURNING id, account_id, due_at

-- name: schedule_bring_forward
-- Lets the waiting publications of a post go now; with a time of its own each leaves its batch.
UPDATE publication SET scheduled_at = imprint_now(), zone = $3, jitter_seconds = 0, due_at = imprint_now(),
    batch_id = NULL, made_at = CASE WHEN left_at IS NOT NULL THEN made_at END
WHERE post_id = $1 AND status = 'pending' AND ($2::uuid[] IS NULL OR account_id = ANY ($2))
RETURNING id, account_id, due_at

-- name: schedule_withdraw
-- Cancels the waiting publications of a post.
UPDATE publication SET status = 'cancelled', error_code = 'cancelled_by_hand'
WHERE post_id = $1 AND status = 'pending' AND left_at IS NULL AND ($2::uuid[] IS NULL OR account_id = ANY ($2))
RETURNING id, account_id, due_at

-- name: schedule_cancel
-- Cancels what waits and what runs without an intent; the fence grows, so that the worker's word no longer counts.
UPDATE publication SET status = 'cancelled', error_code = 'cancelled_by_hand', phase = NULL, lease_until = NULL,
    fence = fence + CASE status WHEN 'running' THEN 1 ELSE 0 END
WHERE post_id = $1 AND ($2::uuid[] IS NULL OR account_id = ANY ($2))
  AND left_at IS NULL AND (status = 'pending' OR (status = 'running' AND intent_at IS NULL))
RETURNING id, account_id, due_at

-- name: schedule_dismiss
-- Lets go of publications that failed and nobody wants any more.
UPDATE publication SET deleted_at = imprint_now()
WHERE post_id = $1 AND status = 'failed' AND deleted_at IS NULL AND ($2::uuid[] IS NULL OR account_id = ANY ($2))
RETURNING id, account_id, due_at

-- name: schedule_retry
-- Tries what failed once more: now, or at its time if that has not come yet.
UPDATE publication SET status = 'pending', error_code = NULL, crashes = 0, attempts = 0, looks = 0, intent_at = NULL,
    deadline = NULL, made_at = NULL, snapshot = NULL, snapshot_sha256 = NULL,
    due_at = greatest(imprint_now(), scheduled_at + make_interval(secs => jitter_seconds))
WHERE post_id = $1 AND status = 'failed' AND deleted_at IS NULL AND ($2::uuid[] IS NULL OR account_id = ANY ($2))
  AND ($3::uuid[] IS NULL OR id = ANY ($3))
RETURNING id, account_id, due_at

-- name: schedule_waiting_on
-- The posts of which something waits for an account.
SELECT DISTINCT post_id AS id FROM publication WHERE account_id = $1 AND status = 'pending' ORDER BY post_id
