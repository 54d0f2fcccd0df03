-- name: explain_found
-- Posts and publications of a person whose id begins with these letters, deleted ones too, six at most.
SELECT p.id AS post, NULL::uuid AS publication, p.title, p.status, p.deleted_at IS NOT NULL AS deleted
FROM post p WHERE p.id BETWEEN $1::uuid AND $2::uuid AND p.owner = $3
UNION ALL
SELECT p.id, u.id, p.title, p.status, p.deleted_at IS NOT NULL
FROM publication u JOIN post p ON p.id = u.post_id WHERE u.id BETWEEN $1 AND $2 AND p.owner = $3
ORDER BY post, publication LIMIT 6

-- name: explain_standing
-- Where the publications of a post stand, or one of them: with whatever they may be waiting for.
SELECT u.id, u.post_id, a.platform, coalesce(a.label, a.name) AS account, a.status AS account_status, a.trouble,
    (SELECT f.position + 1 FROM post_file f WHERE f.id = u.file_id) AS file,
    u.status, u.status_at, u.phase, u.scheduled_at, u.due_at, imprint_now() AS now,
    nullif(u.held_until, 'infinity') AS held_until, u.held_why, u.look_at, u.looks, u.lease_until, u.deadline,
    u.attempts, u.crashes, u.left_at IS NOT NULL AS left, u.error_code, u.remote_id, u.url, u.published_at,
    u.deleted_at IS NOT NULL AS dismissed, p.late_policy, p.late_hours,
    open.key AS circuit, open.open_until AS circuit_until, open.last_error AS circuit_why,
    (SELECT other.title FROM publication r JOIN post other ON other.id = r.post_id
     WHERE r.account_id = u.account_id AND r.status = 'running' AND r.id <> u.id) AS busy_with,
    (SELECT i.held_why FROM incarnation i WHERE i.held_since IS NOT NULL) AS sends_held,
    EXISTS (SELECT FROM worker w WHERE w.seen_at > imprint_now() - interval '30 s') AS worker_alive,
    progress.name AS uploading, progress.sent, progress.size, u.batch_id AS batch, u.paused,
    CASE WHEN u.turn = 'behind' THEN (
        SELECT count(*) FROM publication b WHERE b.batch_id = u.batch_id
          AND (b.turn = 'front' OR b.turn = 'behind' AND b.batch_place < u.batch_place)) END AS before_it,
    (SELECT t.at FROM batch_turn t WHERE t.batch_id = u.batch_id AND u.turn = 'behind') AS turn_at
FROM publication u JOIN post p ON p.id = u.post_id JOIN account a ON a.id = u.account_id
LEFT JOIN LATERAL (
    -- A host's circuit is known by its moment: the host is a secret of the sign-in.
    SELECT c.key, greatest(c.open_until, c.probe_until) AS open_until, c.last_error FROM circuit c
    WHERE greatest(c.open_until, c.probe_until) > imprint_now()
      AND (c.key = 'account:' || u.account_id
           OR u.held_why = 'circuit' AND c.key LIKE 'host:%' AND greatest(c.open_until, c.probe_until) = u.held_until)
    ORDER BY c.open_until DESC LIMIT 1
) open ON true
LEFT JOIN progress ON progress.publication_id = u.id AND progress.fence = u.fence AND u.status = 'running'
WHERE u.post_id = $1 AND ($2::uuid IS NULL OR u.id = $2)
ORDER BY u.created_at, u.due_at, u.id

-- name: explain_story
-- Everything that happened to a post and its publications, in order: moves, intents, how attempts ended, log lines.
SELECT of, at, kind, name, source, target, actor, text, code, stage, http_status, until FROM (
    SELECT CASE WHEN lifecycle = 'publication' THEN row_id END AS of, at, 'move' AS kind, move AS name, source, target,
           actor, reason AS text, NULL AS code, NULL AS stage, NULL::integer AS http_status, NULL::timestamptz AS until,
           2 AS rank, id AS number
    FROM audit WHERE row_id = ANY ($1::uuid[])
    UNION ALL
    SELECT publication_id, intent_at, 'intent', 'intend', NULL, NULL, worker, request_sha256, NULL, NULL, NULL, deadline,
           0, fence
    FROM attempt WHERE publication_id = ANY ($1) AND intent_at IS NOT NULL
    UNION ALL
    SELECT publication_id, ended_at, 'ended', outcome, NULL, NULL, worker, sentence, code, stage, http_status, NULL,
           1, fence
    FROM attempt WHERE publication_id = ANY ($1) AND ended_at IS NOT NULL
    UNION ALL
    SELECT publication_id, at, 'log', kind, NULL, NULL, NULL, line, data ->> 'code', NULL, NULL, NULL, 3, id
    FROM publication_log WHERE publication_id = ANY ($1)
) AS happened ORDER BY at, rank, number
