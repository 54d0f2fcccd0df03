-- name: idempotency_begin
-- Begins a request with a key of its own, or takes one over whose server died before it did anything; no row: it is known.
INSERT INTO idempotency AS i (person_id, key, request_sha256, running_until) VALUES ($1, $2, $3, imprint_now() + $5::interval)
ON CONFLICT (person_id, key) DO UPDATE SET request_sha256 = excluded.request_sha256, token = gen_random_uuid(),
    began_at = imprint_now(), running_until = excluded.running_until, touched_at = NULL,
    status = NULL, media_type = NULL, body = NULL
WHERE i.began_at < imprint_now() - $4::interval
   OR (i.status IS NULL AND i.touched_at IS NULL AND i.request_sha256 = excluded.request_sha256
       AND i.running_until <= imprint_now())
RETURNING token

-- name: idempotency_known
-- What is known of a request with this key: its answer, or whether it has done anything and may still be running.
SELECT request_sha256, status, media_type, body, touched_at IS NOT NULL AS touched,
    greatest(0, ceil(extract(epoch FROM running_until - imprint_now())))::int AS seconds
FROM idempotency WHERE person_id = $1 AND key = $2

-- name: idempotency_renew
-- Says that a request is still being done; no row means that it is not ours any more.
UPDATE idempotency SET running_until = imprint_now() + $4::interval
WHERE person_id = $1 AND key = $2 AND token = $3 AND status IS NULL RETURNING token

-- name: idempotency_mark
-- Marks a request whose transaction has changed something; changed but not marked means that somebody else has taken it over.
WITH marked AS (
    UPDATE idempotency SET touched_at = imprint_now()
    WHERE person_id = $1 AND key = $2 AND token = $3 AND pg_current_xact_id_if_assigned() IS NOT NULL
    RETURNING token
)
SELECT EXISTS (SELECT FROM marked) AS marked, pg_current_xact_id_if_assigned() IS NOT NULL AS changed

-- name: idempotency_end
-- Keeps what was answered; no row means that somebody else has taken the request over.
UPDATE idempotency SET status = $4, media_type = $5, body = $6
WHERE person_id = $1 AND key = $2 AND token = $3 AND status IS NULL RETURNING token

-- name: idempotency_drop
-- Forgets a request that came to nothing, so that it can be made again; one that has changed something stays.
DELETE FROM idempotency WHERE person_id = $1 AND key = $2 AND token = $3 AND status IS NULL AND touched_at IS NULL

-- name: idempotency_leave
-- Says that a request is not being done any more, though there is no answer to keep.
UPDATE idempotency SET running_until = imprint_now() WHERE person_id = $1 AND key = $2 AND token = $3 AND status IS NULL

-- name: idempotency_forget
-- Forgets answers that are older than this.
DELETE FROM idempotency WHERE began_at < imprint_now() - $1::interval
