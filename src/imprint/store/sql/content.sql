-- name: content_newest
-- Contents that are not deleted, the newest first, a page at a time.
SELECT c.id, c.name, c.owner, c.status, c.status_at, c.error_code, c.created_at, o.size, o.content_type, o.width, o.height
FROM content c LEFT JOIN object o ON o.content_id = c.id AND o.variant IS NULL AND o.deleted_at IS NULL
WHERE c.deleted_at IS NULL AND (c.created_at, c.id) < ($1::timestamptz, $2::uuid)
ORDER BY c.created_at DESC, c.id DESC LIMIT $3

-- name: content_in_state
-- Contents in one state, the newest first, a page at a time.
SELECT c.id, c.name, c.owner, c.status, c.status_at, c.error_code, c.created_at, o.size, o.content_type, o.width, o.height
FROM content c LEFT JOIN object o ON o.content_id = c.id AND o.variant IS NULL AND o.deleted_at IS NULL
WHERE c.deleted_at IS NULL AND c.status = $1 AND (c.created_at, c.id) < ($2::timestamptz, $3::uuid)
ORDER BY c.created_at DESC, c.id DESC LIMIT $4

-- name: content_counts
-- How many contents there are in each state.
SELECT status, count(*) AS contents FROM content WHERE deleted_at IS NULL GROUP BY status ORDER BY status

-- name: content_show
-- One content, deleted or not.
SELECT id, name, owner, status, status_at, error_code, created_at, deleted_at, purge_at, purged_at FROM content WHERE id = $1

-- name: content_found
-- Contents whose id begins with these letters, six at most.
SELECT id, name, $1::uuid = $2::uuid AS exact FROM content WHERE id BETWEEN $1 AND $2 ORDER BY id LIMIT 6

-- name: content_objects
-- The objects of a content: its original first, then its variants.
SELECT o.id, o.variant, o.version, o.status, o.store, o.key, o.size, o.sha256, o.content_type, o.width, o.height, o.frames,
       o.error_code, o.created_at
FROM object o WHERE o.content_id = $1 AND o.deleted_at IS NULL ORDER BY o.variant IS NOT NULL, o.created_at

-- name: content_derivations
-- The variants of a content, made or not.
SELECT d.id, d.variant, d.recipe_version, d.wanted, d.status, d.error_code, d.status_at, o.size, o.width, o.height,
       o.content_type
FROM derivation d LEFT JOIN object o ON o.id = d.object_id
WHERE d.parent_id = $1 AND d.deleted_at IS NULL ORDER BY coalesce(o.width, 0), d.variant, d.recipe_version

-- name: content_history
-- Everything that happened to a content, its objects and its variants, in order.
SELECT a.at, a.lifecycle, coalesce(o.variant, d.variant) AS variant, a.move, a.source, a.target, a.actor, a.reason
FROM audit a
LEFT JOIN object o ON a.lifecycle = 'object' AND o.id = a.row_id
LEFT JOIN derivation d ON a.lifecycle = 'derivation' AND d.id = a.row_id
WHERE a.row_id IN (SELECT $1::uuid UNION ALL SELECT id FROM object WHERE content_id = $1
                   UNION ALL SELECT id FROM derivation WHERE parent_id = $1)
ORDER BY a.id

-- name: content_original
-- The bytes of a content's original that may be given out.
SELECT o.id, o.store, o.key, o.size, o.sha256, o.content_type FROM object o
WHERE o.content_id = $1 AND o.variant IS NULL AND o.deleted_at IS NULL AND o.sha256 IS NOT NULL AND o.purged_at IS NULL

-- name: content_variant
-- The bytes of a content's variant by its newest recipe.
SELECT o.id, o.store, o.key, o.size, o.sha256, o.content_type FROM derivation d JOIN object o ON o.id = d.object_id
WHERE d.parent_id = $1 AND d.variant = $2 AND d.status = 'processed' AND d.deleted_at IS NULL AND o.purged_at IS NULL
ORDER BY d.recipe_version DESC LIMIT 1

-- name: content_delete
-- Deletes a content, softly; while its variants are being made only by force.
UPDATE content SET deleted_at = imprint_now(), purge_at = imprint_now() + $3::interval
WHERE id = $1 AND deleted_at IS NULL AND (status <> 'processing' OR $2) RETURNING id

-- name: content_restore
-- Takes a deletion back, while the bytes are still there.
UPDATE content SET deleted_at = NULL, purge_at = NULL
WHERE id = $1 AND deleted_at IS NOT NULL AND purged_at IS NULL AND purge_at > imprint_now() RETURNING id

-- name: content_archive
-- Keeps a content, which is no longer worked with.
UPDATE content SET status = 'archived' WHERE id = $1 AND deleted_at IS NULL AND status IN ('uploaded', 'processed')
RETURNING id

-- name: content_retry
-- Lets a content that failed over its variants be processed again; its bytes must be here.
UPDATE content c SET status = 'processing', error_code = NULL
WHERE c.id = $1 AND c.status = 'failed' AND c.deleted_at IS NULL
  AND EXISTS (SELECT FROM object o WHERE o.content_id = c.id AND o.variant IS NULL AND o.deleted_at IS NULL
              AND o.sha256 IS NOT NULL)
RETURNING id

-- name: content_retry_object
-- Variants are made from an original again.
UPDATE object SET status = 'processing', error_code = NULL
WHERE content_id = $1 AND variant IS NULL AND deleted_at IS NULL AND status = 'failed' AND sha256 IS NOT NULL

-- name: content_failed
-- Contents that failed, a page at a time, and whether their bytes are here.
SELECT c.id, c.name, c.error_code, EXISTS (
    SELECT FROM object o WHERE o.content_id = c.id AND o.variant IS NULL AND o.deleted_at IS NULL AND o.sha256 IS NOT NULL
) AS has_bytes
FROM content c WHERE c.status = 'failed' AND c.deleted_at IS NULL AND c.id > $1 ORDER BY c.id LIMIT $2

-- name: content_purge_due
-- Objects whose bytes are to go now: those of deleted content, and those that were replaced; each with what it was.
SELECT o.id, o.content_id, o.store, o.key FROM object o JOIN content c ON c.id = o.content_id
WHERE c.purge_at <= imprint_now() AND o.purged_at IS NULL AND o.key IS NOT NULL
UNION
SELECT o.id, o.content_id, o.store, o.key FROM object o
WHERE o.purge_at <= imprint_now() AND o.purged_at IS NULL AND o.key IS NOT NULL
LIMIT $1

-- name: content_purge_object
-- The bytes of an object are gone.
UPDATE object SET purged_at = imprint_now(), deleted_at = coalesce(deleted_at, imprint_now()), purge_at = NULL
WHERE id = $1 AND purged_at IS NULL

-- name: content_purged
-- Deleted contents of which no bytes are left.
UPDATE content c SET purged_at = imprint_now(), purge_at = NULL
WHERE c.purge_at <= imprint_now() AND NOT EXISTS (
    SELECT FROM object o WHERE o.content_id = c.id AND o.key IS NOT NULL AND o.purged_at IS NULL)
RETURNING c.id

-- name: content_lighten
-- Archives what is published everywhere it was to go and lets its original go after a grace period; the variants stay.
-- Not while another post that is not out yet uses it, nor while a variant is missing.
WITH done AS (
    SELECT c.id FROM content c
    WHERE c.status = 'processed' AND c.deleted_at IS NULL
      AND EXISTS (SELECT FROM post_file f JOIN post p ON p.id = f.post_id
                  WHERE f.content_id = c.id AND f.deleted_at IS NULL AND p.status = 'published' AND p.deleted_at IS NULL)
      AND NOT EXISTS (SELECT FROM post_file f JOIN post p ON p.id = f.post_id
                      WHERE f.content_id = c.id AND f.deleted_at IS NULL AND p.status <> 'published'
                        AND p.deleted_at IS NULL)
      AND EXISTS (SELECT FROM derivation d WHERE d.parent_id = c.id AND d.wanted)
      AND NOT EXISTS (SELECT FROM derivation d WHERE d.parent_id = c.id AND d.wanted AND d.status <> 'processed')
    ORDER BY c.id LIMIT $2 FOR UPDATE SKIP LOCKED
), archived AS (
    UPDATE content c SET status = 'archived' FROM done WHERE c.id = done.id
)
UPDATE object o SET deleted_at = imprint_now(), purge_at = imprint_now() + $1::interval FROM done
WHERE o.content_id = done.id AND o.variant IS NULL AND o.deleted_at IS NULL
RETURNING o.id
