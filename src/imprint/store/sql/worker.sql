-- name: worker_begin
-- A worker says that it is there.
INSERT INTO worker (id, name, version, concurrency) VALUES ($1, $2, $3, $4)
ON CONFLICT (id) DO UPDATE SET seen_at = imprint_now()

-- name: worker_seen
-- A worker says that it is still there; no row means that it was thought dead and must say so anew.
UPDATE worker SET seen_at = imprint_now() WHERE id = $1 RETURNING id

-- name: worker_end
-- A worker says goodbye.
DELETE FROM worker WHERE id = $1

-- name: worker_forget
-- Forgets the workers that died without a goodbye a day ago.
DELETE FROM worker WHERE seen_at < imprint_now() - interval '1 day'

-- name: worker_all
-- Every worker that has not said goodbye, and how long ago it was seen.
SELECT id, name, version, concurrency, started_at, seen_at, seen_at > imprint_now() - interval '30 s' AS alive
FROM worker ORDER BY started_at, id

-- name: worker_forget_all
-- Forgets every worker: those a backup remembers are not here.
DELETE FROM worker
