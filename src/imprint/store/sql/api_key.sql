-- name: api_key_add
-- A person gets a key for a program of theirs.
INSERT INTO api_key (sha256, person_id, label, prefix, scopes, expires_at)
VALUES ($1, $2, $3, $4, $5, imprint_now() + $6::interval) RETURNING id

-- name: api_key_list
-- The keys of a person, or of all, the newest first; without what would open a door.
SELECT k.id, k.person_id, p.name AS person, k.label, k.prefix, k.scopes, k.created_at, k.expires_at, k.last_used_at,
    k.revoked_at
FROM api_key k JOIN person p ON p.id = k.person_id
WHERE ($1::text IS NULL OR k.person_id = $1) AND ($2::uuid IS NULL OR k.id = $2) ORDER BY k.created_at DESC, k.id

-- name: api_key_find
-- The person of a key that is good, and whether it was used long enough ago to say so again.
SELECT k.id, p.id AS person_id, p.name, p.role, p.looks_at, k.scopes,
    k.last_used_at IS NULL OR k.last_used_at < imprint_now() - interval '1 min' AS stale
FROM api_key k JOIN person p ON p.id = k.person_id
WHERE k.sha256 = $1 AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > imprint_now())
  AND p.disabled_at IS NULL

-- name: api_key_used
-- A key was used.
UPDATE api_key SET last_used_at = imprint_now() WHERE id = $1

-- name: api_key_revoke
-- A key opens nothing any more; of one person, or of anybody.
UPDATE api_key SET revoked_at = imprint_now()
WHERE id = $1 AND ($2::text IS NULL OR person_id = $2) AND revoked_at IS NULL RETURNING id

-- name: api_key_found
-- Keys whose id or beginning starts with these letters, six at most.
SELECT id, label AS name, id::text = $1 AS exact FROM api_key
WHERE starts_with(id::text, $1) OR starts_with(prefix, $1) ORDER BY created_at DESC LIMIT 6
