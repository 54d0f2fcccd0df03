-- name: poll_read
-- What a poll must know of a source; trusted: its person looks after this machine, and may reach its network.
SELECT s.id, s.series_id, r.title, s.kind, s.ref, s.host, s.languages, s.status, s.priority, s.priority_before,
    s.priority_fixed, s.etag, s.last_modified, s.cursor, s.rhythm, s.last_worked_at, s.last_news_at, s.caught_up_at,
    s.read_all_at, s.failures, s.gap_from, s.gap_to, imprint_now() AS now,
    coalesce((SELECT p.role = 'administrator' FROM person p WHERE p.id = r.owner), r.owner = 'operator') AS trusted
FROM source s JOIN series r ON r.id = s.series_id
WHERE s.id = $1 AND s.deleted_at IS NULL AND r.deleted_at IS NULL

-- name: poll_claim_now
-- Takes the lease of a source because a person wants it asked now, due or not.
UPDATE source SET fence = fence + 1, lease_until = imprint_now() + $2::interval, held_until = NULL
WHERE id = $1 AND lease_until IS NULL AND status <> 'disabled' AND deleted_at IS NULL
  AND NOT EXISTS (SELECT FROM source AS asked WHERE asked.host = source.host AND asked.lease_until IS NOT NULL)
RETURNING id, fence, lease_until AS until, crashes

-- name: poll_worked
-- Records a poll that worked, under its fence; a source that rested is itself again. No row: the lease is lost.
UPDATE source SET lease_until = NULL, crashes = 0, failures = 0, error_code = NULL, error = NULL, held_until = NULL,
    status = CASE status WHEN 'resting' THEN 'active' ELSE status END, priority = $3, priority_before = NULL,
    etag = $4, last_modified = $5, cursor = $6, rhythm = $7, every = $8, next_check_at = $9, last_news_at = $10,
    last_polled_at = imprint_now(), last_worked_at = imprint_now(),
    caught_up_at = CASE WHEN $11::boolean THEN coalesce(caught_up_at, imprint_now()) ELSE caught_up_at END,
    read_all_at = $12, gap_from = $13, gap_to = $14, host = $15,
    ref = CASE WHEN NOT EXISTS (SELECT FROM source o WHERE o.series_id = source.series_id AND o.kind = source.kind
                                  AND md5(o.ref) = md5($16::text) AND o.deleted_at IS NULL) THEN $16 ELSE ref END
WHERE id = $1 AND fence = $2 AND lease_until IS NOT NULL AND deleted_at IS NULL
RETURNING id, status, priority, next_check_at

-- name: poll_watched
-- A series is watched from when one of its sources was first read to its end; a title nobody chose is the source's.
UPDATE series SET watched_since = CASE WHEN $2::boolean THEN coalesce(watched_since, imprint_now()) ELSE watched_since END,
    title = CASE WHEN title_given THEN title ELSE coalesce($3::text, title) END,
    title_given = title_given OR $3::text IS NOT NULL
WHERE id = $1 AND (watched_since IS NULL AND $2 OR NOT title_given AND $3::text IS NOT NULL)

-- name: poll_failed
-- Records a poll that failed, under its fence; one too many lets the source rest. No row: the lease is lost.
UPDATE source SET lease_until = NULL, crashes = 0, failures = failures + 1, error_code = $3, error = $4,
    held_until = NULL, last_polled_at = imprint_now(),
    next_check_at = greatest(imprint_now() + $5::interval, $6::timestamptz),
    status = CASE WHEN $7::boolean AND status = 'active' THEN 'resting' ELSE status END,
    priority_before = CASE WHEN $7 AND status = 'active' THEN priority ELSE priority_before END,
    priority = CASE WHEN $7 AND status = 'active' THEN 'COLD' ELSE priority END
WHERE id = $1 AND fence = $2 AND lease_until IS NOT NULL AND deleted_at IS NULL
RETURNING id, status, priority, next_check_at

-- name: poll_put_off
-- Gives a source back that was not asked, until its host or its circuit lets it be asked.
UPDATE source SET lease_until = NULL, crashes = 0, held_until = imprint_now() + $3::interval
WHERE id = $1 AND fence = $2 AND lease_until IS NOT NULL
RETURNING id, status, priority, greatest(next_check_at, held_until) AS next_check_at

-- name: poll_gap
-- Counts the whole numbers of a series between two that have a chapter by now.
SELECT count(DISTINCT floor(number)) AS there FROM chapter
WHERE series_id = $1 AND number >= $2::numeric AND number < $3::numeric + 1
