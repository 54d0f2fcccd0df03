-- name: source_add
-- Adds a source to a series, to be asked at once.
INSERT INTO source (name, series_id, kind, ref, host, languages, priority, priority_fixed)
VALUES ($1, $2, $3, $4, $5, $6::text[], coalesce($7::text, 'HOT'), $7 IS NOT NULL) RETURNING id

-- name: source_list
-- The sources of a person's series, all, one, or those of a series, each with its last error and its next try.
SELECT s.id, s.name, s.series_id, r.title AS series, s.kind, s.ref, s.host, s.languages, s.status, s.status_at, s.priority,
    s.priority_before, s.priority_fixed, greatest(s.next_check_at, c.open_until) AS next_check_at,
    s.lease_until IS NOT NULL AS polling, s.every, s.rhythm, s.last_polled_at, s.last_worked_at, s.last_news_at,
    s.failures, s.error_code, s.error, s.gap_from, s.gap_to,
    (SELECT count(*) FROM release e WHERE e.source_id = s.id AND e.gone_at IS NULL) AS releases,
    (SELECT count(*) FROM set_aside a WHERE a.source_id = s.id AND a.discarded_at IS NULL) AS set_aside, s.created_at
FROM source s JOIN series r ON r.id = s.series_id LEFT JOIN circuit c ON c.key = 'source:' || s.id
WHERE r.owner = $1 AND s.deleted_at IS NULL AND r.deleted_at IS NULL AND ($2::uuid IS NULL OR s.id = $2)
  AND ($3::uuid IS NULL OR s.series_id = $3)
ORDER BY r.title, s.name, s.created_at, s.id

-- name: source_page
-- The sources of a person's series, the newest first, a page at a time: all, those of a series, or those that fail.
SELECT s.id, s.name, s.series_id, r.title AS series, s.kind, s.ref, s.host, s.languages, s.status, s.status_at, s.priority,
    s.priority_before, s.priority_fixed, greatest(s.next_check_at, c.open_until) AS next_check_at,
    s.lease_until IS NOT NULL AS polling, s.every, s.rhythm, s.last_polled_at, s.last_worked_at, s.last_news_at,
    s.failures, s.error_code, s.error, s.gap_from, s.gap_to,
    (SELECT count(*) FROM release e WHERE e.source_id = s.id AND e.gone_at IS NULL) AS releases,
    (SELECT count(*) FROM set_aside a WHERE a.source_id = s.id AND a.discarded_at IS NULL) AS set_aside, s.created_at
FROM source s JOIN series r ON r.id = s.series_id LEFT JOIN circuit c ON c.key = 'source:' || s.id
WHERE r.owner = $1 AND s.deleted_at IS NULL AND r.deleted_at IS NULL AND ($2::uuid IS NULL OR s.series_id = $2)
  AND (NOT $3::boolean OR s.error IS NOT NULL) AND (s.created_at, s.id) < ($4::timestamptz, $5::uuid)
ORDER BY s.created_at DESC, s.id DESC LIMIT $6

-- name: source_found
-- Sources of a person with this name, or with an id that begins so.
SELECT s.id, s.name || ' of ' || r.title AS name, lower(s.name) = lower($2) OR s.id::text = $2 AS exact
FROM source s JOIN series r ON r.id = s.series_id
WHERE r.owner = $1 AND s.deleted_at IS NULL AND r.deleted_at IS NULL
  AND (lower(s.name) = lower($2) OR starts_with(s.id::text, lower($2))) ORDER BY exact DESC, s.created_at, s.id LIMIT 6

-- name: source_disable
-- A person does not want a source asked.
UPDATE source SET status = 'disabled' WHERE id = $1 AND status <> 'disabled' AND deleted_at IS NULL RETURNING id

-- name: source_enable
-- A person wants a source asked again, from the beginning and at once.
UPDATE source SET status = 'active', failures = 0, crashes = 0, error_code = NULL, error = NULL, held_until = NULL,
    next_check_at = imprint_now(), priority = coalesce(priority_before, priority), priority_before = NULL
WHERE id = $1 AND status = 'disabled' AND deleted_at IS NULL RETURNING id

-- name: source_hasten
-- Makes a source due because a person wants it asked now; one that is disabled is not asked.
UPDATE source SET next_check_at = imprint_now(), held_until = NULL
WHERE id = $1 AND status <> 'disabled' AND deleted_at IS NULL RETURNING id

-- name: source_priority
-- Sets how urgently a source is asked, for good; without one it follows from its news again.
UPDATE source SET priority = CASE WHEN status = 'resting' THEN priority ELSE coalesce($2::text, priority) END,
    priority_before = CASE WHEN status = 'resting' THEN coalesce($2, priority_before) ELSE priority_before END,
    priority_fixed = $2 IS NOT NULL
WHERE id = $1 AND deleted_at IS NULL RETURNING id

-- name: source_remove
-- Removes a source, softly; who asks it at this moment has lost it. What it has brought stays.
UPDATE source SET deleted_at = imprint_now(), lease_until = NULL, fence = fence + 1
WHERE id = $1 AND deleted_at IS NULL RETURNING id
