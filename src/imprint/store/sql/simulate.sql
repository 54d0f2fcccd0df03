-- name: simulate_world
-- What holds for every publication: the time, why every send is held if it is, and whether a worker is alive.
SELECT imprint_now() AS now, (SELECT i.held_why FROM incarnation i WHERE i.held_since IS NOT NULL) AS sends_held,
    EXISTS (SELECT FROM worker w WHERE w.seen_at > imprint_now() - interval '30 s') AS worker_alive

-- name: simulate_lanes
-- The accounts of a person: whether they can be used, their pace, their circuit, and how long an attempt took lately.
WITH lately AS (
    SELECT publication_id, ended_at - began_at AS took FROM attempt
    WHERE ended_at IS NOT NULL AND outcome = 'published' ORDER BY ended_at DESC LIMIT 1000
), usual AS (
    SELECT u.account_id, percentile_cont(0.5) WITHIN GROUP (ORDER BY lately.took) AS took
    FROM lately JOIN publication u ON u.id = lately.publication_id GROUP BY u.account_id
)
SELECT a.id, a.platform, coalesce(a.label, nullif(a.name, ''), a.platform) AS account, a.status, pace.gap, pace.next_at,
    circuit.open_until AS circuit_until, usual.took
FROM account a LEFT JOIN usual ON usual.account_id = a.id
LEFT JOIN pace ON pace.key = 'account:' || a.id
LEFT JOIN circuit ON circuit.key = 'account:' || a.id
WHERE a.owner = $1 AND a.deleted_at IS NULL ORDER BY account, a.id

-- name: simulate_batches
-- The batches of a person that are not over: their interval, and when the next one gets its turn if nobody has it.
SELECT b.id, b.every, t.at AS turn_at FROM batch b LEFT JOIN batch_turn t ON t.batch_id = b.id
WHERE b.owner = $1 AND b.deleted_at IS NULL
  AND EXISTS (SELECT FROM publication u WHERE u.batch_id = b.id AND u.turn = 'behind')

-- name: simulate_planned
-- Everything of a person that has not come to its end, and how many files are still to be uploaded for each.
WITH open AS MATERIALIZED (
    SELECT u.id, u.post_id, p.title, u.account_id, u.file_id, u.status, u.due_at,
        coalesce(u.scheduled_at + make_interval(secs => u.jitter_seconds), u.due_at) AS not_before,
        nullif(u.held_until, 'infinity') AS held_until, u.held_why, u.look_at, u.attempts,
        u.left_at IS NOT NULL AS left, p.late_policy, p.late_hours, u.batch_id, u.batch_place, u.turn, u.paused,
        p.revision
    FROM publication u JOIN post p ON p.id = u.post_id
    WHERE (u.status = 'pending' OR u.status = 'running' OR u.status = 'unknown') AND p.owner = $1
), files AS (
    SELECT f.post_id, count(*) AS number FROM post_file f
    WHERE f.deleted_at IS NULL AND f.post_id IN (SELECT post_id FROM open) GROUP BY f.post_id
), uploaded AS (
    SELECT open.id, count(*) AS number FROM open JOIN remote_file r ON r.publication_id = open.id
      AND r.revision = open.revision GROUP BY open.id
)
SELECT open.id, open.post_id, open.title, open.account_id, open.status, open.due_at, open.not_before, open.held_until,
    open.held_why, open.look_at, open.attempts, open.left, open.late_policy, open.late_hours, open.batch_id,
    open.batch_place, open.turn, open.paused,
    (CASE WHEN open.file_id IS NULL THEN coalesce(files.number, 0) ELSE 1 END)::integer AS files,
    coalesce(uploaded.number, 0)::integer AS uploaded
FROM open LEFT JOIN files ON files.post_id = open.post_id LEFT JOIN uploaded ON uploaded.id = open.id
