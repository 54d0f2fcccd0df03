-- name: incarnation_begin
-- Gives a new database its identity, once.
INSERT INTO incarnation (place) SELECT s.system_identifier || ':' || d.oid
FROM pg_control_system() s, pg_database d WHERE d.datname = current_database()
ON CONFLICT DO NOTHING

-- name: incarnation_current
-- Which database this says it is, and where it really is; locked, so that two starts are one after the other.
SELECT i.id, i.place, i.generation, i.held_since, i.held_why, s.system_identifier || ':' || d.oid AS here
FROM incarnation i, pg_control_system() s, pg_database d
WHERE d.datname = current_database() FOR UPDATE OF i

-- name: incarnation_read
-- Which database this says it is, and where it really is.
SELECT i.id, i.place, i.generation, i.held_since, i.held_why, s.system_identifier || ':' || d.oid AS here
FROM incarnation i, pg_control_system() s, pg_database d
WHERE d.datname = current_database()

-- name: incarnation_advance
-- Grows the generation, so that the database's past can be told from its present.
UPDATE incarnation SET generation = generation + 1 RETURNING id, generation

-- name: incarnation_hold
-- Holds every send until a person has looked; a reason that is already there stays.
UPDATE incarnation SET held_since = imprint_now(), held_why = $1 WHERE held_since IS NULL

-- name: incarnation_accept
-- Lets sends go on: a person has looked, and this is the database to go on with.
UPDATE incarnation SET held_since = NULL, held_why = NULL, place = $1, generation = greatest(generation, $2)

-- name: incarnation_suspect
-- Marks what was due as something that may be out: what this database has forgotten may have been sent. It is not sent
-- again unless the platform knows its key; otherwise it is looked for first.
WITH suspect AS (
    UPDATE publication SET left_at = coalesce(left_at, due_at)
    WHERE status IN ('pending', 'running') AND due_at <= imprint_now() RETURNING id
), quiet AS (
    -- What was announced since is forgotten too: a person says when rules shall go on.
    UPDATE rule SET enabled = false WHERE enabled AND deleted_at IS NULL
), told AS (
    INSERT INTO publication_log (publication_id, kind, line)
    SELECT id, 'suspect', 'It was due before this database was accepted, which may have forgotten that it went out.'
    FROM suspect ORDER BY id
)
SELECT count(*)::integer AS suspects FROM suspect
