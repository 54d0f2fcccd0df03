-- name: orphan_known
-- What rows say is in a part of a store: bytes that must be there, and bytes that may be on their way or about to go.
SELECT key, content_id, variant, size, sha256 IS NOT NULL AND deleted_at IS NULL AS stored FROM object
WHERE store = $1 AND key >= $2 AND key < $3 AND purged_at IS NULL
  AND (sha256 IS NOT NULL OR status IN ('created', 'uploading'))

-- name: orphan_stores
-- The stores that rows speak of, and how many objects each has.
SELECT store, count(*) AS objects FROM object WHERE store IS NOT NULL AND purged_at IS NULL GROUP BY store ORDER BY store
