-- name: sheet_rows
-- Posts of a person for a sheet, as the list finds them: their words, files and accounts, and when and where they went.
SELECT p.id, p.kind, p.title, p.description, p.body, p.tags, p.status, p.zone,
    ARRAY(SELECT c.name FROM post_file f JOIN content c ON c.id = f.content_id
          WHERE f.post_id = p.id AND f.deleted_at IS NULL ORDER BY f.position) AS files,
    ARRAY(SELECT DISTINCT coalesce(a.label, nullif(a.name, ''), a.platform) FROM publication u
          JOIN account a ON a.id = u.account_id
          WHERE u.post_id = p.id AND u.deleted_at IS NULL AND u.status <> 'cancelled' ORDER BY 1) AS accounts,
    (SELECT min(coalesce(u.scheduled_at, u.due_at)) FROM publication u
     WHERE u.post_id = p.id AND u.deleted_at IS NULL AND u.status <> 'cancelled') AS at,
    ARRAY(SELECT u.url FROM publication u
          WHERE u.post_id = p.id AND u.deleted_at IS NULL AND u.url IS NOT NULL ORDER BY u.published_at, u.id) AS urls
FROM post p
WHERE p.owner = $1 AND p.deleted_at IS NULL AND ($2::text IS NULL OR p.status = $2)
  AND ($3::text IS NULL OR p.kind = $3) AND ($4::text IS NULL OR strpos(lower(p.title), lower($4)) > 0)
  AND ($5::uuid IS NULL OR EXISTS (SELECT FROM publication u WHERE u.post_id = p.id AND u.account_id = $5))
ORDER BY p.created_at DESC, p.id DESC LIMIT $6

-- name: sheet_contents
-- Contents of a person by their names, whose bytes are here; a name may be that of several.
SELECT c.id, c.name FROM content c
WHERE c.owner = $1 AND c.name = ANY ($2::text[]) AND c.deleted_at IS NULL
  AND EXISTS (SELECT FROM object o WHERE o.content_id = c.id AND o.variant IS NULL AND o.sha256 IS NOT NULL
              AND o.deleted_at IS NULL AND o.purged_at IS NULL)
ORDER BY c.created_at
