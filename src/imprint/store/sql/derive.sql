-- name: derive_plan
-- Writes down the variants that a content is to have and does not have yet.
INSERT INTO derivation (parent_id, variant, recipe_version, recipe)
SELECT $1, r.variant, r.version, r.recipe::jsonb
FROM unnest($2::text[], $3::int[], $4::text[]) AS r (variant, version, recipe)
ON CONFLICT (parent_id, variant, recipe_version) DO NOTHING

-- name: derive_plan_one
-- Writes down a variant that is made on demand; the content's own state does not depend on it.
INSERT INTO derivation (parent_id, variant, recipe_version, recipe, wanted)
VALUES ($1, $2, $3, $4::text::jsonb, false)
ON CONFLICT (parent_id, variant, recipe_version) DO NOTHING

-- name: derive_source
-- The original that variants are made from; its content is locked, so that two who look decide one after the other.
SELECT c.id AS content_id, c.status, o.id AS object_id, o.status AS object_status, o.store, o.key, o.size, o.sha256,
       o.content_type, o.width, o.height, o.frames, o.has_alpha, o.orientation
FROM content c JOIN object o ON o.content_id = c.id AND o.variant IS NULL AND o.deleted_at IS NULL
WHERE c.id = $1 AND c.deleted_at IS NULL AND o.sha256 IS NOT NULL FOR NO KEY UPDATE OF c

-- name: derive_content_begins
-- The variants of a content are being made.
UPDATE content SET status = 'processing', error_code = NULL
WHERE id = $1 AND deleted_at IS NULL AND status = ANY ($2::text[]) RETURNING id

-- name: derive_object_begins
-- Variants are being made from an original.
UPDATE object SET status = 'processing', error_code = NULL WHERE id = $1 AND status IN ('uploaded', 'failed') RETURNING id

-- name: derive_claim
-- Takes the variants of a content that nobody is making; the fence grows, and a lease that ended by itself was a crash.
UPDATE derivation SET status = 'processing', fence = fence + 1, lease_until = imprint_now() + $3::interval,
    crashes = crashes + (lease_until IS NOT NULL)::int, error_code = NULL
WHERE parent_id = $1 AND (($2::text IS NULL AND wanted) OR variant = $2) AND deleted_at IS NULL
  AND (status IN ('created', CASE WHEN $2 IS NOT NULL THEN 'failed' END)
       OR (status = 'processing' AND coalesce(lease_until <= imprint_now(), true)))
RETURNING id, variant, recipe_version, recipe::text AS recipe, fence, crashes, failures,
    imprint_now() - status_at AS since

-- name: derive_renew
-- Keeps the leases of variants that are being made.
UPDATE derivation d SET lease_until = imprint_now() + $3::interval
FROM unnest($1::uuid[], $2::bigint[]) AS mine (id, fence)
WHERE d.id = mine.id AND d.fence = mine.fence AND d.status = 'processing' AND d.lease_until > imprint_now()
RETURNING d.id

-- name: derive_release
-- Gives variants back unmade, to be taken again at once; this holder lived, so earlier crashes count no more.
UPDATE derivation d SET lease_until = NULL, crashes = 0, failures = d.failures + $3
FROM unnest($1::uuid[], $2::bigint[]) AS mine (id, fence)
WHERE d.id = mine.id AND d.fence = mine.fence AND d.status = 'processing'
RETURNING d.id

-- name: derive_fail
-- Says why variants could not be made.
UPDATE derivation d SET status = 'failed', error_code = $3, lease_until = NULL
FROM unnest($1::uuid[], $2::bigint[]) AS mine (id, fence)
WHERE d.id = mine.id AND d.fence = mine.fence AND d.status = 'processing'
RETURNING d.id

-- name: derive_facts
-- Remembers what an original is, once a decoder has looked at it.
UPDATE object SET width = $2, height = $3, frames = $4, has_alpha = $5, orientation = $6 WHERE id = $1 AND width IS NULL

-- name: derive_object_create
-- Makes the row of a variant's bytes, which are in the store already; no row means that the lease was lost.
INSERT INTO object (content_id, variant, store, key, width, height, frames, has_alpha, orientation)
SELECT parent_id, variant, $3, $4, $5, $6, $7, $8, 1 FROM derivation
WHERE id = $1 AND fence = $2 AND status = 'processing'
RETURNING id

-- name: derive_object_stored
-- The bytes of a variant are in the store and verified.
UPDATE object SET status = 'uploaded', size = $2, sha256 = $3, content_type = $4 WHERE id = $1 AND status = 'created'

-- name: derive_finish
-- A variant is made, and its bytes are there.
UPDATE derivation SET status = 'processed', object_id = $3, lease_until = NULL, crashes = 0, failures = 0, error_code = NULL
WHERE id = $1 AND fence = $2 AND status = 'processing' RETURNING id

-- name: derive_supersede
-- Retires what the same variant was by older recipes; their bytes go after a while.
WITH older AS (
    UPDATE derivation d SET deleted_at = imprint_now() FROM derivation n
    WHERE n.id = $1 AND d.parent_id = n.parent_id AND d.variant = n.variant AND d.recipe_version < n.recipe_version
      AND d.deleted_at IS NULL
    RETURNING d.object_id
)
UPDATE object o SET deleted_at = imprint_now(), purge_at = imprint_now() + $2::interval
FROM older WHERE o.id = older.object_id AND o.deleted_at IS NULL

-- name: derive_tally
-- How the variants of a content stand, and why the first of those failed that did.
SELECT count(*) FILTER (WHERE status IN ('created', 'processing')) AS open,
       count(*) FILTER (WHERE status = 'failed') AS failed,
       count(*) FILTER (WHERE status = 'processed') AS processed,
       (array_agg(error_code ORDER BY status_at) FILTER (WHERE status = 'failed'))[1] AS error_code
FROM derivation WHERE parent_id = $1 AND wanted AND deleted_at IS NULL

-- name: derive_content_finished
-- Every variant that a content should have is there.
UPDATE content SET status = 'processed', error_code = NULL WHERE id = $1 AND status = 'processing' RETURNING id

-- name: derive_object_finished
-- Every variant of an original is there.
UPDATE object SET status = 'processed', error_code = NULL WHERE id = $1 AND status = 'processing' RETURNING id

-- name: derive_content_failed
-- A variant that a content should have could not be made.
UPDATE content SET status = 'failed', error_code = $2 WHERE id = $1 AND status = 'processing' RETURNING id

-- name: derive_object_failed
-- A variant could not be made from an original.
UPDATE object SET status = 'failed', error_code = $2 WHERE id = $1 AND status = 'processing' RETURNING id

-- name: derive_made
-- A variant of a content that is there.
SELECT o.id, o.store, o.key, o.size, o.sha256, o.content_type
FROM derivation d JOIN object o ON o.id = d.object_id
WHERE d.parent_id = $1 AND d.variant = $2 AND d.recipe_version = $3 AND d.status = 'processed' AND d.deleted_at IS NULL

-- name: derive_lost
-- Contents with variants that should be made, that nobody is making and that nobody will be told of any more.
SELECT DISTINCT d.parent_id AS content_id FROM derivation d JOIN content c ON c.id = d.parent_id
WHERE d.status IN ('created', 'processing') AND d.deleted_at IS NULL AND d.wanted AND c.deleted_at IS NULL
  AND c.status IN ('uploaded', 'processing') AND d.status_at < imprint_now() - $1::interval
  AND coalesce(d.lease_until <= imprint_now(), true)
LIMIT $2

-- name: derive_retry_derivations
-- Lets the variants of a content that failed be tried again.
UPDATE derivation SET status = 'processing', error_code = NULL, failures = 0, crashes = 0
WHERE parent_id = $1 AND wanted AND status = 'failed' AND deleted_at IS NULL

-- name: derive_remake
-- Lets variants of a content be made again; none named, all of them.
UPDATE derivation d SET status = 'processing', object_id = NULL, failures = 0, crashes = 0
WHERE d.parent_id = $1 AND d.wanted AND d.status = 'processed' AND d.deleted_at IS NULL
  AND ($2::uuid[] IS NULL OR d.id = ANY ($2))
RETURNING d.id

-- name: derive_retire
-- Lets go of the bytes of variants that are made again.
UPDATE object o SET deleted_at = imprint_now(), purge_at = imprint_now() + $3::interval
FROM derivation d WHERE d.parent_id = $1 AND d.wanted AND d.deleted_at IS NULL AND d.object_id = o.id
  AND ($2::uuid[] IS NULL OR d.id = ANY ($2)) AND o.deleted_at IS NULL
