-- name: calendar_span
-- What of a person goes or went out in a span of time, the earliest first, a page at a time: only what a calendar shows.
SELECT u.id, u.post_id, p.title, p.kind, u.account_id, coalesce(a.label, nullif(a.name, ''), a.platform) AS account,
    a.platform, u.due_at, u.status,
    u.status = 'pending' AND u.due_at < imprint_now() - interval '1 min' AND NOT u.paused
        AND u.turn IS DISTINCT FROM 'behind' AS late,
    u.status = 'failed' OR u.status = 'unknown' AND u.look_at IS NULL
        OR u.status = 'pending' AND a.status <> 'connected' AS needs_person,
    u.status = 'pending' AND u.left_at IS NULL AS movable
FROM account a
JOIN publication u ON u.account_id = a.id AND u.due_at >= $2::timestamptz AND u.due_at < $3::timestamptz
    AND u.deleted_at IS NULL AND u.status <> 'cancelled'
JOIN post p ON p.id = u.post_id AND p.owner = $1 AND p.deleted_at IS NULL
WHERE a.owner = $1 AND (u.due_at, u.id) > ($4::timestamptz, $5::uuid)
ORDER BY u.due_at, u.id LIMIT $6
