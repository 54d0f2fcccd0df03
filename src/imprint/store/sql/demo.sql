-- name: demo_move_post
-- Asks for any status at all; PostgreSQL decides.
UPDATE post SET status = $2 WHERE id = $1 RETURNING status

-- name: demo_publications
-- Every publication, of which post it is, on which account, and where it stands.
SELECT u.id, u.post_id, p.title, coalesce(a.label, a.name) AS account, a.platform, u.status
FROM publication u JOIN post p ON p.id = u.post_id JOIN account a ON a.id = u.account_id ORDER BY u.created_at, u.id
