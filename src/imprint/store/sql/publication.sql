-- name: publication_page
-- The publications of a person, those due last first, a page at a time; of each account no more is read than a page.
SELECT u.id, u.post_id, p.title, u.account_id, coalesce(a.label, nullif(a.name, ''), a.platform) AS account, a.platform,
    u.file_id, u.status, u.status_at, u.phase, u.scheduled_at, u.zone, u.due_at, u.published_at, u.remote_id, u.url,
    u.error_code, u.attempts, u.crashes, u.held_why, nullif(u.held_until, 'infinity') AS held_until, u.look_at, u.batch_id,
    u.intent_at IS NOT NULL OR u.left_at IS NOT NULL AS left, u.deleted_at IS NOT NULL AS dismissed, u.late, u.needs_person
FROM account a
CROSS JOIN LATERAL (
    SELECT u.*,
        u.status = 'pending' AND u.due_at < imprint_now() - interval '1 min' AND NOT u.paused
            AND u.turn IS DISTINCT FROM 'behind' AS late,
        asks.person AS needs_person
    FROM publication u CROSS JOIN LATERAL (
        SELECT u.deleted_at IS NULL AND (u.status = 'failed' OR u.status = 'unknown' AND u.look_at IS NULL
            OR u.status = 'pending' AND a.status <> 'connected') AS person) asks
    WHERE u.account_id = a.id AND ($2::text IS NULL OR u.status = $2) AND ($3::uuid IS NULL OR u.post_id = $3)
      AND u.due_at >= $6::timestamptz AND u.due_at < $7::timestamptz AND ($8::boolean IS NULL OR asks.person = $8)
      AND (u.due_at, u.id) < ($9::timestamptz, $10::uuid)
    ORDER BY u.due_at DESC, u.id DESC LIMIT $11
) u
JOIN post p ON p.id = u.post_id AND p.owner = $1
WHERE a.owner = $1 AND ($4::uuid IS NULL OR a.id = $4) AND ($5::text IS NULL OR a.platform = $5)
ORDER BY u.due_at DESC, u.id DESC LIMIT $11

-- name: publication_show
-- One publication of a person.
SELECT u.id, u.post_id, p.title, u.account_id, coalesce(a.label, nullif(a.name, ''), a.platform) AS account, a.platform,
    u.file_id, u.status, u.status_at, u.phase, u.scheduled_at, u.zone, u.due_at, u.published_at, u.remote_id, u.url,
    u.error_code, u.attempts, u.crashes, u.held_why, nullif(u.held_until, 'infinity') AS held_until, u.look_at, u.batch_id,
    u.intent_at IS NOT NULL OR u.left_at IS NOT NULL AS left, u.deleted_at IS NOT NULL AS dismissed,
    u.status = 'pending' AND u.due_at < imprint_now() - interval '1 min' AND NOT u.paused
        AND u.turn IS DISTINCT FROM 'behind' AS late,
    u.deleted_at IS NULL AND (u.status = 'failed' OR u.status = 'unknown' AND u.look_at IS NULL
        OR u.status = 'pending' AND a.status <> 'connected') AS needs_person
FROM publication u JOIN post p ON p.id = u.post_id JOIN account a ON a.id = u.account_id
WHERE u.id = $1 AND p.owner = $2

-- name: publication_attempts
-- What was tried of a publication, in order.
SELECT a.fence AS number, a.worker, a.began_at, extract(epoch FROM a.drift)::float8 AS drift_seconds, a.intent_at, a.deadline,
    a.request_sha256, a.ended_at, a.outcome, a.code, a.sentence, a.stage, a.http_status, a.remote_id, a.url
FROM attempt a WHERE a.publication_id = $1 ORDER BY a.fence
