-- name: person_any
-- Whether there is a person already.
SELECT EXISTS (SELECT FROM person) AS there

-- name: person_first
-- Makes the first person, an administrator to whom everything belongs that the command line made.
INSERT INTO person (id, name, password_hash, role)
SELECT 'operator', $1, $2, 'administrator' WHERE NOT EXISTS (SELECT FROM person)
ON CONFLICT DO NOTHING RETURNING id

-- name: person_add
-- Makes a person.
INSERT INTO person (name, password_hash, role, looks_at) VALUES ($1, $2, $3, $4) RETURNING id

-- name: person_list
-- Every person, or one, in the order in which they came.
SELECT id, name, role, looks_at, created_at, disabled_at,
    (SELECT max(s.seen_at) FROM session s WHERE s.person_id = person.id) AS seen_at
FROM person WHERE $1::text IS NULL OR id = $1 ORDER BY created_at, id

-- name: person_found
-- A person by their name, however it is written, or by their id.
SELECT id FROM person WHERE lower(name) = lower($1) OR id = $1 ORDER BY lower(name) = lower($1) DESC LIMIT 1

-- name: person_knock
-- Whoever has a name, with what their password must hash to.
SELECT id, password_hash, disabled_at IS NOT NULL AS disabled FROM person WHERE lower(name) = lower($1)

-- name: person_hash
-- What the password of a person must hash to.
SELECT id, password_hash, disabled_at IS NOT NULL AS disabled FROM person WHERE id = $1

-- name: person_password
-- A person has another password.
UPDATE person SET password_hash = $2 WHERE id = $1 RETURNING id

-- name: person_change
-- A person has another name or another role; the trigger keeps the last administrator.
UPDATE person SET name = coalesce($2, name), role = coalesce($3, role),
    looks_at = CASE WHEN coalesce($3, role) = 'reader' THEN coalesce(looks_at, $4) END
WHERE id = $1 RETURNING id

-- name: person_disable
-- A person may no longer come in; the trigger keeps the last administrator.
UPDATE person SET disabled_at = imprint_now() WHERE id = $1 AND disabled_at IS NULL RETURNING id

-- name: person_enable
-- A person may come in again.
UPDATE person SET disabled_at = NULL WHERE id = $1 AND disabled_at IS NOT NULL RETURNING id
