-- name: first_code_set
-- Writes the hash of a new code down while there is no person; the code before it is good for nothing.
INSERT INTO first_code (sha256) SELECT $1 WHERE NOT EXISTS (SELECT FROM person)
ON CONFLICT (one) DO UPDATE SET sha256 = excluded.sha256, created_at = imprint_now() RETURNING sha256

-- name: first_code_use
-- Uses the code up.
DELETE FROM first_code WHERE sha256 = $1 RETURNING sha256
