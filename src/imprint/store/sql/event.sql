-- name: event_read
-- What happened in these spans of numbers, of everybody, in order; each row says besides which is the oldest transaction
-- that still runs.
SELECT pg_snapshot_xmin(now)::text::bigint AS oldest, line.id,
    coalesce(line.at < imprint_now() - interval '23 hours', false) AS old, line.lifecycle, line.row_id, line.move, line.status,
    publication.post_id,
    CASE line.lifecycle
        WHEN 'post' THEN (SELECT owner FROM post WHERE id = line.row_id)
        WHEN 'publication' THEN publication.owner
        WHEN 'content' THEN (SELECT owner FROM content WHERE id = line.row_id)
        WHEN 'account' THEN (SELECT owner FROM account WHERE id = line.row_id)
        WHEN 'source' THEN (SELECT series.owner FROM source JOIN series ON series.id = source.series_id
                            WHERE source.id = line.row_id)
        WHEN 'notice' THEN coalesce(line.owner, told.person)
        ELSE line.owner END AS owner
FROM pg_current_snapshot() AS now
LEFT JOIN (
    SELECT found.* FROM unnest($1::bigint[], $2::bigint[]) AS span (first, last) CROSS JOIN LATERAL (
        SELECT * FROM (
            SELECT id, at, lifecycle, row_id, move, target AS status, NULL AS owner FROM audit
            UNION ALL
            SELECT id, at, lifecycle, row_id, move, status, owner FROM event
        ) AS told WHERE id BETWEEN span.first AND span.last ORDER BY id LIMIT $3
    ) AS found
) AS line ON true
LEFT JOIN LATERAL (
    SELECT p.post_id, post.owner FROM publication p JOIN post ON post.id = p.post_id
    WHERE line.lifecycle = 'publication' AND p.id = line.row_id
) AS publication ON true
LEFT JOIN LATERAL (
    SELECT person FROM follow WHERE line.lifecycle = 'notice' AND line.owner IS NULL
      AND series_id = line.row_id AND person = ANY ($4::text[]) AND notify
) AS told ON true
ORDER BY line.id

-- name: event_listen
-- Says that somebody watches in this process for so long from now: from then on it is rung for. Those who died without
-- saying so are forgotten.
WITH dead AS (DELETE FROM listener WHERE id <> $1 AND until < imprint_now())
INSERT INTO listener (id, until) VALUES ($1, imprint_now() + $2::interval)
ON CONFLICT (id) DO UPDATE SET until = excluded.until

-- name: event_unlisten
-- Says that nobody watches in this process any more.
DELETE FROM listener WHERE id = $1

-- name: event_begin
-- How far the numbers have come, and a transaction that began after all that could still be writing smaller ones.
SELECT greatest((SELECT max(id) FROM audit), (SELECT max(id) FROM event), 0) AS newest,
    pg_current_xact_id()::text::bigint AS following,
    left(md5(server.system_identifier || ':' || database.oid), 8) AS place
FROM pg_control_system() AS server, pg_database AS database
WHERE database.datname = current_database()

-- name: event_bound
-- A transaction that begins now: after all that have drawn a number so far. The end of a snapshot does not say that, it
-- is only beyond the newest that has ended.
SELECT pg_current_xact_id()::text::bigint AS following

-- name: event_forget
-- Drops what is older than that, but the newest of it: so that whoever comes back later sees that something is missing.
DELETE FROM event WHERE at < imprint_now() - $1::interval
  AND id < (SELECT max(id) FROM event WHERE at < imprint_now() - $1::interval)
