-- name: collection_list
-- Contents of a person that are not deleted, of one state or of all, the newest first, a page at a time.
SELECT c.id, c.name, c.owner, c.status, c.status_at, c.error_code, c.created_at, o.size, o.content_type, o.width, o.height
FROM content c LEFT JOIN object o ON o.content_id = c.id AND o.variant IS NULL AND o.deleted_at IS NULL
WHERE c.owner = $1 AND c.deleted_at IS NULL AND ($2::text IS NULL OR c.status = $2)
  AND (c.created_at, c.id) < ($3::timestamptz, $4::uuid)
ORDER BY c.created_at DESC, c.id DESC LIMIT $5

-- name: collection_counts
-- How many contents of a person there are in each state.
SELECT status, count(*) AS contents FROM content WHERE owner = $1 AND deleted_at IS NULL GROUP BY status ORDER BY status

-- name: collection_has
-- Those of these contents that belong to a person.
SELECT id FROM content WHERE id = ANY ($1::uuid[]) AND owner = $2

-- name: collection_failed
-- The contents of a person that failed, a page at a time.
SELECT id FROM content WHERE owner = $1 AND status = 'failed' AND deleted_at IS NULL AND id > $2 ORDER BY id LIMIT $3
