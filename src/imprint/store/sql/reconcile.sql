-- name: reconcile_take
-- Takes an unknown publication whose look is due for a while; the fence grows, so that two never act on one look.
UPDATE publication SET fence = fence + 1, held_until = imprint_now() + $2::interval, held_why = 'look'
WHERE id = $1 AND status = 'unknown' AND look_at <= imprint_now()
RETURNING id, fence, post_id, account_id, snapshot, snapshot_sha256, coalesce(left_at, intent_at) AS since

-- name: reconcile_others
-- The remote ids that belong to other publications of an account since a time.
SELECT DISTINCT remote_id AS id FROM publication
WHERE account_id = $1 AND status = 'success' AND published_at >= $2::timestamptz - interval '1 day' AND id <> $3
  AND remote_id IS NOT NULL

-- name: reconcile_twins
-- How many other publications of an account have the same title and may be out without our knowing as what.
SELECT count(*)::integer AS twins FROM publication
WHERE account_id = $1 AND id <> $2 AND lower(btrim(snapshot::jsonb->>'title')) = lower(btrim($3))
  AND (status IN ('unknown', 'running') AND intent_at IS NOT NULL OR status = 'pending' AND left_at IS NOT NULL
       OR status = 'success' AND published_at >= $4::timestamptz - interval '1 day' AND (url IS NULL OR remote_id = url))

-- name: reconcile_later
-- Nothing was seen, or the look did not work; somebody looks again after a while.
UPDATE publication SET look_at = imprint_now() + $3::interval, looks = looks + $4::integer,
    held_until = CASE WHEN $5 AND (SELECT status FROM account WHERE id = account_id) <> 'connected'
                      THEN 'infinity'::timestamptz END,
    held_why = CASE WHEN $5 THEN 'account' END
WHERE id = $1 AND fence = $2 AND status = 'unknown' RETURNING id

-- name: reconcile_ask
-- Nobody but a person can decide.
UPDATE publication SET look_at = NULL, looks = looks + $3::integer, held_until = NULL, held_why = 'person'
WHERE id = $1 AND fence = $2 AND status = 'unknown' RETURNING id

-- name: reconcile_send_again
-- It is sent again: the platform knows its key, or a person says that it is not out.
UPDATE publication SET status = 'pending', due_at = greatest(due_at, imprint_now()), held_until = NULL, held_why = NULL,
    look_at = NULL, looks = 0, intent_at = NULL, deadline = NULL, error_code = NULL,
    left_at = CASE WHEN $3 THEN left_at END, attempts = CASE WHEN $3 THEN attempts ELSE 0 END
WHERE id = $1 AND fence = $2 AND status = 'unknown' RETURNING id

-- name: reconcile_give_up
-- A person says that it is not out and not wanted any more.
UPDATE publication SET status = 'failed', error_code = $3, look_at = NULL, held_until = NULL, held_why = NULL,
    left_at = NULL
WHERE id = $1 AND fence = $2 AND status = 'unknown' RETURNING id
