-- name: notice_list
-- Notices of a person, the newest first, a page at a time: all, those not seen yet, or one.
SELECT n.id, n.series_id, s.title AS series, n.chapter_id, c.kind, c.slug, c.number, c.number_end, c.volume, c.season,
    c.version, c.title, r.url, n.created_at, n.read_at
FROM notice n JOIN chapter c ON c.id = n.chapter_id JOIN series s ON s.id = n.series_id
LEFT JOIN follow f ON f.person = n.person AND f.series_id = n.series_id
LEFT JOIN LATERAL (
    SELECT url FROM release WHERE release.chapter_id = c.id AND url IS NOT NULL AND gone_at IS NULL
    ORDER BY source_id = f.preferred_source DESC NULLS LAST, first_seen_at, source_id, own_id LIMIT 1
) r ON true
WHERE n.person = $1 AND (NOT $2 OR n.read_at IS NULL) AND ($3::bigint IS NULL OR n.chapter_id < $3)
  AND ($5::bigint IS NULL OR n.id = $5)
ORDER BY n.chapter_id DESC LIMIT $4

-- name: notice_read
-- Notes that a person has seen these notices, or all of them.
UPDATE notice SET read_at = imprint_now()
WHERE person = $1 AND read_at IS NULL AND ($2::bigint[] IS NULL OR id = ANY ($2)) RETURNING id

-- name: notice_known
-- Which of these notices are a person's.
SELECT id FROM notice WHERE person = $1 AND id = ANY ($2::bigint[])

-- name: notice_counts
-- How many notices a person has, and how many of them are not seen yet.
SELECT count(*) AS notices, count(*) FILTER (WHERE read_at IS NULL) AS unread FROM notice WHERE person = $1

-- name: notice_mute
-- A person is told no more of the series that a notice is about; they still follow it.
UPDATE follow f SET notify = false FROM notice n
WHERE n.id = $2 AND n.person = $1 AND f.person = n.person AND f.series_id = n.series_id RETURNING n.id
