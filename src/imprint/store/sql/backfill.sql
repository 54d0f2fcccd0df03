-- name: backfill_count
-- How many contents there are to look at after one of them.
SELECT count(*) AS contents FROM content c WHERE c.deleted_at IS NULL AND c.id > $1

-- name: backfill_page
-- Contents whose original is here, in the order of their ids, a page at a time.
SELECT c.id, c.name, c.status, c.error_code, o.id AS object_id, o.store, o.key, o.size, o.sha256
FROM content c JOIN object o ON o.content_id = c.id AND o.variant IS NULL AND o.deleted_at IS NULL
WHERE c.deleted_at IS NULL AND c.id > $1 AND o.sha256 IS NOT NULL
ORDER BY c.id LIMIT $2

-- name: backfill_variants
-- The variants of these contents, and the bytes of those that are made.
SELECT d.id, d.parent_id, d.variant, d.recipe_version, d.wanted, d.status,
       d.status IN ('created', 'processing') AND coalesce(d.lease_until <= imprint_now(), true) AS idle,
       o.store, o.key, o.size, o.sha256
FROM derivation d LEFT JOIN object o ON o.id = d.object_id
WHERE d.parent_id = ANY ($1::uuid[]) AND d.deleted_at IS NULL

-- name: backfill_broken_rendition
-- Lets a rendition whose bytes are bad be made again when somebody asks for it.
UPDATE derivation SET status = 'processing', object_id = NULL WHERE id = $1 AND status = 'processed' AND NOT wanted

-- name: backfill_lost
-- Says that a content whose original is damaged or gone has failed.
UPDATE content SET status = 'failed', error_code = $2 WHERE id = $1 AND status = 'processing' RETURNING id

-- name: backfill_open
-- Lets a content be looked at anew, whatever was thought of it.
UPDATE content SET status = 'processing', error_code = NULL
WHERE id = $1 AND deleted_at IS NULL AND status IN ('uploaded', 'processed', 'failed') RETURNING id

-- name: backfill_queued
-- Whether a content's job waits or runs.
SELECT EXISTS (SELECT FROM pgqueuer WHERE dedupe_key = $1::text || ':' || $2::text AND status IN ('queued', 'picked')) AS queued
