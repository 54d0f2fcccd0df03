-- name: idempotency_begin
-- Begins a request with a key of its own, or takes one over whose server has died; no row: it is known already.
INSERT INTO idempotency AS i (person_id, key, request_sha256) VALUES ($1, $2, $3)
ON CONFLICT (person_id, key) DO UPDATE SET request_sha256 = excluded.request_sha256, token = gen_random_uuid(),
    began_at = imprint_now(), status = NULL, media_type = NULL, body = NULL
WHERE i.began_at < imprint_now() - $4::interval
   OR (i.status IS NULL AND i.request_sha256 = excluded.request_sha256 AND i.began_at < imprint_now() - $5::interval)
RETURNING token

-- name: idempotency_known
-- What is known of a request with this key.
SELECT request_sha256, status, media_type, body FROM idempotency WHERE person_id = $1 AND key = $2

-- name: idempotency_end
-- Keeps what was answered; no row means that somebody else has taken the request over.
UPDATE idempotency SET status = $4, media_type = $5, body = $6
WHERE person_id = $1 AND key = $2 AND token = $3 AND status IS NULL RETURNING token

-- name: idempotency_drop
-- Forgets a request that came to nothing, so that it can be made again.
DELETE FROM idempotency WHERE person_id = $1 AND key = $2 AND token = $3 AND status IS NULL

-- name: idempotency_forget
-- Forgets answers that are older than this.
DELETE FROM idempotency WHERE began_at < imprint_now() - $1::interval
