-- name: catalogue_page
-- Posts of a person, the newest first, a page at a time; of one state, of one kind, with these words in their title.
SELECT p.id, p.kind, p.title, p.status, p.status_at, p.created_at, p.zone,
    (SELECT count(*) FROM post_file f WHERE f.post_id = p.id AND f.deleted_at IS NULL) AS files,
    (SELECT count(*) FROM publication u WHERE u.post_id = p.id AND u.status = 'success') AS out,
    (SELECT min(u.due_at) FROM publication u WHERE u.post_id = p.id AND u.status = 'pending') AS next_at
FROM post p
WHERE p.owner = $1 AND p.deleted_at IS NULL AND ($2::text IS NULL OR p.status = $2)
  AND ($3::text IS NULL OR p.kind = $3) AND ($4::text IS NULL OR strpos(lower(p.title), lower($4)) > 0)
  AND ($5::uuid IS NULL OR EXISTS (SELECT FROM publication u WHERE u.post_id = p.id AND u.account_id = $5))
  AND (p.created_at, p.id) < ($6::timestamptz, $7::uuid)
ORDER BY p.created_at DESC, p.id DESC LIMIT $8

-- name: catalogue_asking
-- Which of these posts of a person have a publication of which nobody knows whether it is out.
SELECT DISTINCT u.post_id FROM publication u JOIN post p ON p.id = u.post_id
WHERE p.owner = $1 AND u.post_id = ANY($2::uuid[]) AND u.status = 'unknown'

-- name: catalogue_history
-- Everything that happened to a post of a person and to its publications, in order.
SELECT a.id, a.at, a.lifecycle, a.row_id, a.move, a.source, a.target, a.actor, a.reason FROM audit a
WHERE a.row_id IN (SELECT p.id FROM post p WHERE p.id = $1 AND p.owner = $2 UNION ALL
    SELECT u.id FROM publication u JOIN post p ON p.id = u.post_id WHERE p.id = $1 AND p.owner = $2)
ORDER BY a.id
