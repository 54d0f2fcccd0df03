-- name: upload_content
-- Makes the content that an upload is for; a statement of its own, since a wall sees only what was there before one.
INSERT INTO content (name, owner) VALUES ($1, $2) RETURNING id

-- name: upload_begin
-- Makes the object of a content with what was promised of it; nothing has arrived yet.
INSERT INTO object (content_id, store, key, expected_size, expected_sha256, expected_type, nonce, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, date_trunc('second', imprint_now() + $8::interval))
RETURNING content_id, expires_at, imprint_now() AS now

-- name: upload_again
-- Gives an upload that did not work out a new key and a new promise; what came by the old one counts no more.
UPDATE object o SET status = 'uploading', store = $3, key = $4, expected_size = $5, expected_sha256 = $6,
    expected_type = $7, nonce = $8, expires_at = date_trunc('second', imprint_now() + $9::interval),
    used_at = NULL, error_code = NULL
FROM content c WHERE c.id = $1 AND c.owner = $2 AND c.deleted_at IS NULL
  AND o.content_id = c.id AND o.variant IS NULL AND o.sha256 IS NULL AND o.status IN ('created', 'uploading', 'failed')
RETURNING o.content_id, o.expires_at, imprint_now() AS now

-- name: upload_time
-- The moment it is for Imprint.
SELECT imprint_now() AS now

-- name: upload_use
-- Uses an upload's nonce up, once; no row means that it was used before, or that there is a newer one.
UPDATE object SET used_at = imprint_now()
WHERE key = $1 AND ($2::text IS NULL OR nonce = $2) AND used_at IS NULL AND sha256 IS NULL AND deleted_at IS NULL AND status IN ('created', 'uploading')
  AND EXISTS (SELECT FROM content c WHERE c.id = content_id AND c.deleted_at IS NULL)
RETURNING id, content_id, store, key, expected_size, expected_sha256

-- name: upload_unuse
-- Lets an upload's URL be used once more, because nothing came of it.
UPDATE object SET used_at = NULL WHERE id = $1 AND key = $2 AND sha256 IS NULL

-- name: upload_lock
-- Lets one at a time confirm an upload; the lock ends with the transaction, however it ends.
SELECT pg_try_advisory_xact_lock(hashtextextended('upload ' || $1::uuid, 0)) AS taken

-- name: upload_promised
-- What was promised of a content's bytes, and what is known of them by now.
SELECT c.id AS content_id, c.owner, c.status AS content_status, o.id AS object_id, o.status AS object_status,
       o.store, o.key, o.expected_size, o.expected_sha256, o.expected_type, o.size, o.sha256, o.content_type, o.error_code
FROM content c JOIN object o ON o.content_id = c.id AND o.variant IS NULL AND o.deleted_at IS NULL
WHERE c.id = $1 AND c.deleted_at IS NULL

-- name: upload_content_begins
-- The bytes of a content begin to arrive.
UPDATE content SET status = 'uploading', error_code = NULL WHERE id = $1 AND status IN ('created', 'failed')

-- name: upload_object_begins
-- Bytes begin to arrive; only for the key they were promised under.
UPDATE object SET status = 'uploading', error_code = NULL
WHERE id = $1 AND key = $2 AND sha256 IS NULL AND status IN ('created', 'failed')

-- name: upload_object_stored
-- The bytes are in the store and are what was promised; no row means that a newer upload took their place.
UPDATE object SET status = 'uploaded', size = $3, sha256 = $4, content_type = $5, error_code = NULL
WHERE id = $1 AND key = $2 AND sha256 IS NULL AND status IN ('created', 'uploading') RETURNING id

-- name: upload_content_stored
-- The content has its bytes.
UPDATE content SET status = 'uploaded', error_code = NULL
WHERE id = $1 AND deleted_at IS NULL AND status IN ('created', 'uploading') RETURNING id

-- name: upload_object_failed
-- The bytes did not come, or are not what was promised.
UPDATE object SET status = 'failed', error_code = $3
WHERE id = $1 AND key = $2 AND sha256 IS NULL AND status IN ('created', 'uploading') RETURNING id

-- name: upload_content_failed
-- The upload of a content failed.
UPDATE content SET status = 'failed', error_code = $2 WHERE id = $1 AND status = 'uploading' RETURNING id

-- name: upload_expired
-- Uploads whose time is over, the oldest first, a page at a time.
SELECT o.content_id, o.expires_at FROM object o JOIN content c ON c.id = o.content_id AND c.deleted_at IS NULL
WHERE o.variant IS NULL AND o.status IN ('created', 'uploading') AND o.expires_at < imprint_now() - $1::interval
  AND (o.expires_at, o.content_id) > ($2, $3)
ORDER BY o.expires_at, o.content_id LIMIT $4

-- name: upload_unfinished
-- A content of the same owner and name that waits for these very bytes: an earlier try that was cut short.
SELECT c.id FROM object o JOIN content c ON c.id = o.content_id
WHERE o.expected_sha256 = $1 AND o.variant IS NULL AND o.sha256 IS NULL AND o.deleted_at IS NULL
  AND c.owner = $2 AND c.name = $3 AND c.deleted_at IS NULL AND c.status IN ('created', 'uploading', 'failed')
ORDER BY c.created_at LIMIT 1
