-- name: dry_run_standing
-- What is fixed of a publication already: when it was made, what may be out of it, and which revision it would send.
SELECT u.made_at, p.revision, CASE WHEN u.left_at IS NOT NULL THEN u.snapshot END AS snapshot,
    CASE WHEN u.left_at IS NOT NULL THEN u.snapshot_sha256 END AS snapshot_sha256
FROM publication u JOIN post p ON p.id = u.post_id WHERE u.id = $1
