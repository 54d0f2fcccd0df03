-- name: mismatch_states
-- Contents whose own state, that of their original and those of their variants do not go together, by what is wrong.
SELECT w.what, count(*) AS contents, (array_agg(w.id::text ORDER BY w.id))[1:3] AS examples
FROM (
    SELECT c.id, CASE
        WHEN c.status IN ('uploaded', 'processing', 'processed', 'archived') AND o.sha256 IS NULL
             -- The original of what is published may be removed; the variants stay.
             AND NOT (c.status = 'archived' AND EXISTS (
                 SELECT FROM object g WHERE g.content_id = c.id AND g.variant IS NULL AND g.sha256 IS NOT NULL
                   AND g.deleted_at IS NOT NULL))
            THEN c.status || ', and its bytes were never verified'
        WHEN c.status IN ('created', 'uploading') AND o.sha256 IS NOT NULL
            THEN c.status || ', and its bytes are here'
        WHEN c.status = 'processed' AND d.open > 0 THEN 'processed, and variants are not made'
        WHEN c.status = 'processed' AND d.failed > 0 THEN 'processed, and variants failed'
        WHEN c.status = 'processed' AND d.processed = 0 THEN 'processed, and there are no variants'
        WHEN c.status = 'uploaded' AND d.open = 0 AND d.processed > 0 THEN 'uploaded, and its variants are made'
        WHEN c.status = 'processing' AND d.open = 0 THEN 'processing, and nothing is left to be made'
        WHEN c.status = 'failed' AND o.sha256 IS NOT NULL AND d.open > 0 THEN 'failed, and variants are being made'
    END AS what
    FROM content c
    LEFT JOIN object o ON o.content_id = c.id AND o.variant IS NULL AND o.deleted_at IS NULL
    LEFT JOIN LATERAL (
        SELECT count(*) FILTER (WHERE status IN ('created', 'processing')) AS open,
               count(*) FILTER (WHERE status = 'failed') AS failed,
               count(*) FILTER (WHERE status = 'processed') AS processed
        FROM derivation WHERE parent_id = c.id AND wanted AND deleted_at IS NULL
    ) d ON true
    WHERE c.deleted_at IS NULL
) w WHERE w.what IS NOT NULL GROUP BY w.what ORDER BY w.what

-- name: mismatch_objects
-- Variants that are called made and whose bytes are deleted, gone or not verified, by what is wrong.
SELECT w.what, count(*) AS contents, (array_agg(w.id::text ORDER BY w.id))[1:3] AS examples
FROM (
    SELECT d.parent_id AS id, CASE
        WHEN o.deleted_at IS NOT NULL OR o.purged_at IS NOT NULL THEN 'a variant is made, and its bytes were deleted'
        WHEN o.sha256 IS NULL THEN 'a variant is made, and its bytes were never verified'
    END AS what
    FROM derivation d JOIN object o ON o.id = d.object_id JOIN content c ON c.id = d.parent_id
    WHERE d.status = 'processed' AND d.deleted_at IS NULL AND c.deleted_at IS NULL
      AND (o.deleted_at IS NOT NULL OR o.purged_at IS NOT NULL OR o.sha256 IS NULL)
) w GROUP BY w.what ORDER BY w.what

-- name: mismatch_failed
-- How many contents failed, by reason.
SELECT error_code AS what, count(*) AS contents, (array_agg(id::text ORDER BY id))[1:3] AS examples
FROM content WHERE status = 'failed' AND deleted_at IS NULL GROUP BY error_code ORDER BY count(*) DESC, error_code
