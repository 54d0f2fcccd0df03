-- name: session_begin
-- A person has come in.
INSERT INTO session (sha256, person_id, address, agent, expires_at)
SELECT $1, id, $3, $4, imprint_now() + $5::interval FROM person WHERE id = $2 AND disabled_at IS NULL
RETURNING id, expires_at

-- name: session_find
-- The person of a session that has not ended, and whether it was seen long enough ago to say so again.
SELECT s.id, p.id AS person_id, p.name, p.role, p.looks_at,
    s.seen_at < imprint_now() - interval '1 min' AS stale, s.expires_at
FROM session s JOIN person p ON p.id = s.person_id
WHERE s.sha256 = $1 AND s.expires_at > imprint_now() AND s.seen_at > imprint_now() - $2::interval AND p.disabled_at IS NULL

-- name: session_seen
-- A session was used.
UPDATE session SET seen_at = imprint_now() WHERE id = $1

-- name: session_list
-- The sessions of a person that have not ended, the newest first.
SELECT id, address, agent, created_at, seen_at, expires_at FROM session
WHERE person_id = $1 AND expires_at > imprint_now() AND seen_at > imprint_now() - $2::interval
ORDER BY created_at DESC, id

-- name: session_end
-- Ends a session of a person.
DELETE FROM session WHERE id = $1 AND person_id = $2 RETURNING id

-- name: session_replace
-- Ends whatever session had this hash: a new one takes its place.
DELETE FROM session WHERE sha256 = $1

-- name: session_end_all
-- Ends every session of a person but one.
DELETE FROM session WHERE person_id = $1 AND ($2::uuid IS NULL OR id <> $2)

-- name: session_forget
-- Forgets sessions that have ended.
DELETE FROM session WHERE expires_at < imprint_now()
