-- name: sweep_lock
-- Lets one at a time go through everything for the same purpose; the lock ends with the session, however it ends.
SELECT pg_try_advisory_lock(hashtextextended('sweep ' || $1::text, 0)) AS taken

-- name: sweep_unlock
-- Lets the next one begin.
SELECT pg_advisory_unlock(hashtextextended('sweep ' || $1::text, 0)) AS taken

-- name: sweep_read
-- How far something that goes through everything had come when it was stopped.
SELECT cursor, tally FROM sweep WHERE name = $1

-- name: sweep_moved
-- Remembers how far something that goes through everything has come.
INSERT INTO sweep (name, cursor, tally) VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE SET cursor = $2, tally = $3, moved_at = imprint_now()

-- name: sweep_done
-- Forgets how far it had come, because it has come to its end.
DELETE FROM sweep WHERE name = $1
