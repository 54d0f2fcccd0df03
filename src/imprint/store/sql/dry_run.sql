-- name: dry_run_standing
-- What is fixed of a publication already: when it was made, what may be out of it, and which revision it would send.
SELECT u.made_at, p.revision, CASE WHEN u.left_at IS NOT NULL THEN u.snapshot END AS snapshot,
    CASE WHEN u.left_at IS NOT NULL THEN u.snapshot_sha256 END AS snapshot_sha256
FROM publication u JOIN post p ON p.id = u.post_id WHERE u.id = $1

-- name: dry_run_sent
-- What the last request of a publication said, whether it is out or not, and on which account.
SELECT a.id AS account_id, a.platform, u.snapshot, u.snapshot_sha256
FROM publication u JOIN account a ON a.id = u.account_id WHERE u.id = $1 AND u.snapshot IS NOT NULL
