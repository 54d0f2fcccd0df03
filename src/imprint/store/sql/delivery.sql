-- name: delivery_gather
-- Puts the notices of a series' new chapters into the messages of those who have targets: into the one that gathers, or
-- into a new one that waits for its window, for the full hour or for the hour of the day.
WITH news AS (
    UPDATE chapter SET told = true WHERE series_id = $1 AND NOT silent AND NOT told RETURNING id
), wanted AS (
    SELECT t.id AS target_id, n.id AS notice_id, CASE t.digest WHEN 'off' THEN $1::uuid END AS series_id,
           CASE t.digest
               WHEN 'off' THEN imprint_now() + $2::interval
               WHEN 'hourly' THEN date_trunc('hour', imprint_now()) + interval '1 hour'
               ELSE (date_trunc('day', wall.now - make_interval(hours => $4)) + interval '1 day'
                     + make_interval(hours => $4)) AT TIME ZONE $3 END AS next_at
    FROM news CROSS JOIN (SELECT imprint_now() AT TIME ZONE $3::text AS now) AS wall
    JOIN follow f ON f.series_id = $1 AND f.notify
    JOIN target t ON t.person = f.person AND t.deleted_at IS NULL AND NOT t.muted AND 'chapter' = ANY (t.tells)
    JOIN notice n ON n.person = f.person AND n.chapter_id = news.id AND n.created_at >= t.created_at
), opened AS (
    INSERT INTO delivery AS d (target_id, series_id, next_at)
    SELECT DISTINCT target_id, series_id, next_at FROM wanted ORDER BY target_id
    -- Nothing is changed; the row is held so that nobody begins to send it before the notices are in it.
    ON CONFLICT (target_id, coalesce(series_id, target_id)) WHERE closed_at IS NULL DO UPDATE SET next_at = d.next_at
    RETURNING d.id, d.target_id
)
INSERT INTO delivery_notice (target_id, notice_id, delivery_id)
SELECT w.target_id, w.notice_id, o.id FROM wanted w JOIN opened o ON o.target_id = w.target_id
ON CONFLICT (target_id, notice_id) DO NOTHING

-- name: delivery_claim
-- Takes a delivery that is due: it is closed, the attempt is counted before anything is sent, and the fence grows.
WITH found AS (
    SELECT id, lease_until IS NOT NULL AS orphan FROM delivery WHERE id = $1 FOR UPDATE
)
UPDATE delivery d SET closed_at = coalesce(closed_at, imprint_now()), attempts = attempts + 1, fence = fence + 1,
    lost = lost + found.orphan::integer, lease_until = imprint_now() + $2::interval, held_until = NULL
FROM found
WHERE d.id = found.id AND ended_at IS NULL AND failed_at IS NULL AND next_at <= imprint_now()
  AND coalesce(lease_until <= imprint_now(), true)
  AND NOT EXISTS (SELECT FROM incarnation WHERE held_since IS NOT NULL)
RETURNING d.id, target_id, attempts, lost, fence, found.orphan, d.key, d.news

-- name: delivery_notices
-- What a delivery tells: the chapters that its person still wants to hear of, each with where it can be read.
SELECT s.title AS series, c.kind, c.slug, c.number, c.number_end, c.volume, c.season, c.version, c.title, r.url
FROM delivery_notice dn JOIN target t ON t.id = dn.target_id
JOIN notice n ON n.id = dn.notice_id AND (n.read_at IS NULL OR t.kind = 'webhook')  -- programs do not read
JOIN chapter c ON c.id = n.chapter_id
JOIN series s ON s.id = n.series_id AND s.deleted_at IS NULL
JOIN follow f ON f.person = n.person AND f.series_id = n.series_id AND f.notify
LEFT JOIN LATERAL (
    SELECT url FROM release WHERE release.chapter_id = c.id AND url IS NOT NULL AND gone_at IS NULL
    ORDER BY source_id = f.preferred_source DESC NULLS LAST, first_seen_at, source_id, own_id LIMIT 1
) r ON true
WHERE dn.delivery_id = $1
ORDER BY s.title, s.id, c.season NULLS FIRST, c.number NULLS LAST, c.id

-- name: delivery_tidings
-- What a delivery tells of a publication or of an account.
SELECT d.news, d.created_at AS happened_at, p.id AS publication_id, o.id AS post_id, o.title, a.id AS account_id, a.platform,
    coalesce(a.label, a.name) AS account, p.url, p.error_code AS code,
    CASE d.news WHEN 'reconnect' THEN a.trouble ELSE (
        SELECT line FROM publication_log l WHERE l.publication_id = p.id ORDER BY l.id DESC LIMIT 1) END AS why
FROM delivery d
LEFT JOIN publication p ON p.id = d.row_id AND d.news <> 'reconnect'
LEFT JOIN post o ON o.id = p.post_id
JOIN account a ON a.id = coalesce(p.account_id, d.row_id)
WHERE d.id = $1

-- name: delivery_written
-- Writes down what a receiver is sent, once: each attempt sends the same.
UPDATE delivery SET body = coalesce(body, $2) WHERE id = $1 RETURNING body

-- name: delivery_put_off
-- Gives a delivery back unsent, its attempt not counted, because its target rests until then.
UPDATE delivery SET attempts = attempts - 1, lease_until = NULL, held_until = $3
WHERE id = $1 AND fence = $2 AND lease_until IS NOT NULL AND ended_at IS NULL

-- name: delivery_end
-- Ends a delivery: it arrived, or nobody wants it any more. Evidence that it arrived counts whoever brings it.
UPDATE delivery SET ended_at = imprint_now(), outcome = $2, lease_until = NULL, failed_at = NULL, error = NULL
WHERE id = $1 AND ended_at IS NULL RETURNING id

-- name: delivery_forget_attempts
-- Forgets the failed attempts of a delivery.
DELETE FROM delivery_attempt WHERE delivery_id = $1

-- name: delivery_failed
-- Writes down a failed attempt; it is tried again after a pause, or is a dead letter when it was the last one.
UPDATE delivery SET lease_until = NULL, error = $3, next_at = imprint_now() + $4::interval,
    failed_at = CASE WHEN $5 THEN imprint_now() END
WHERE id = $1 AND fence = $2 AND lease_until IS NOT NULL AND ended_at IS NULL RETURNING id

-- name: delivery_attempted
-- Adds a failed attempt to the history of a delivery.
INSERT INTO delivery_attempt (delivery_id, error) VALUES ($1, $2)

-- name: delivery_forgotten
-- Series with news that nobody was told of and nobody will be: their job came while another was just ending. One whose
-- job has failed for good is a dead letter, and a person's to decide.
SELECT DISTINCT c.series_id AS id FROM chapter c
WHERE NOT c.silent AND NOT c.told AND c.first_seen_at < imprint_now() - interval '30 s'
  AND NOT EXISTS (SELECT FROM pgqueuer q WHERE q.entrypoint = 'notify' AND q.status = 'failed'
                    AND q.payload = convert_to(c.series_id::text, 'UTF8'))
