-- name: batch_create
-- Makes a batch.
INSERT INTO batch (owner, every, starts_at, zone) VALUES ($1, $2, $3, $4) RETURNING id

-- name: batch_enrol
-- Gives publications their places in a batch, in this order; all of them are behind.
UPDATE publication u SET batch_id = $1, batch_place = given.place, turn = 'behind', held_why = 'batch'
FROM unnest($2::uuid[]) WITH ORDINALITY AS given (id, place)
WHERE u.id = given.id AND u.status = 'pending' RETURNING u.id

-- name: batch_begin
-- Says when the first of a batch gets its turn.
INSERT INTO batch_turn (batch_id, at) VALUES ($1, $2)

-- name: batch_alone
-- Keeps the clock from taking back leases until the transaction ends: both take many posts, and would do so crosswise.
SELECT FROM pg_advisory_xact_lock(hashtext('publication_expire'))

-- name: batch_take_turns
-- Takes a person's turn on many posts, in the order of their ids.
SELECT FROM (SELECT DISTINCT id FROM unnest($1::uuid[]) AS given (id) ORDER BY id) AS post,
    LATERAL pg_advisory_xact_lock(hashtextextended('post_schedule', 0) # hashtextextended(post.id::text, 0))

-- name: batch_hold_publications
-- Keeps the publications of many posts as they are until the transaction ends; always taken before the posts.
SELECT id FROM publication WHERE post_id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE

-- name: batch_hold_posts
-- Keeps many posts as they are until the transaction ends.
SELECT id FROM post WHERE id = ANY ($1::uuid[]) ORDER BY id FOR NO KEY UPDATE

-- name: batch_lock
-- A batch that is not deleted, kept until the transaction ends; nobody who publishes waits for it.
SELECT id FROM batch WHERE id = $1 AND owner = $2 AND deleted_at IS NULL FOR NO KEY UPDATE

-- name: batch_rows
-- The posts and accounts of a batch.
SELECT DISTINCT post_id, account_id FROM publication WHERE batch_id = $1

-- name: batch_found
-- Batches of a person whose id begins with these letters, six at most; they are told apart by when they were made.
SELECT id, to_char(created_at, 'YYYY-MM-DD HH24:MI') AS name, $1::uuid = $2::uuid AS exact FROM batch
WHERE id BETWEEN $1 AND $2 AND owner = $3 AND deleted_at IS NULL ORDER BY id LIMIT 6

-- name: batch_list
-- The batches of a person, or one of them, the newest first, a page at a time: what has become of theirs, and when
-- the next one goes.
SELECT b.id, b.every, b.starts_at, b.zone, b.created_at, coalesce(bool_or(u.paused), false) AS paused,
    coalesce(bool_or(u.fence > 0), false) AS begun, count(u.id) AS publications,
    count(*) FILTER (WHERE u.status = 'pending') AS waiting,
    count(*) FILTER (WHERE u.status = 'running') AS running,
    count(*) FILTER (WHERE u.status = 'unknown') AS unknown,
    count(*) FILTER (WHERE u.status = 'success') AS out,
    count(*) FILTER (WHERE u.status = 'failed') AS failed,
    count(*) FILTER (WHERE u.status = 'cancelled') AS cancelled,
    CASE WHEN bool_or(u.turn = 'behind') THEN greatest(imprint_now(), min(t.at)) END AS next_at
FROM (
    SELECT * FROM batch WHERE owner = $1 AND deleted_at IS NULL AND ($2::uuid IS NULL OR id = $2)
      AND (created_at, id) < ($3::timestamptz, $4::uuid)
    ORDER BY created_at DESC, id DESC LIMIT $5
) b LEFT JOIN publication u ON u.batch_id = b.id LEFT JOIN batch_turn t ON t.batch_id = b.id
GROUP BY b.id, b.every, b.starts_at, b.zone, b.created_at ORDER BY b.created_at DESC, b.id DESC

-- name: batch_members
-- The publications of a batch in their order, and when each went or goes; for those behind as far as one can tell now.
SELECT u.id, u.batch_place AS place, u.post_id, p.title, u.account_id, a.platform, a.label, a.name, u.file_id, u.status,
    u.turn, u.attempts, u.held_why, u.error_code, u.url,
    CASE WHEN u.turn = 'behind'
             THEN next.at + (row_number() OVER (PARTITION BY u.turn ORDER BY u.batch_place) - 1) * b.every
         WHEN u.status = 'success' THEN coalesce(u.published_at, u.status_at)
         WHEN u.status = 'running' THEN u.status_at
         WHEN u.status = 'pending' THEN greatest(u.due_at, nullif(u.held_until, 'infinity')) END AS goes_at,
    u.turn = 'behind' AS estimated
FROM batch b JOIN publication u ON u.batch_id = b.id
JOIN post p ON p.id = u.post_id JOIN account a ON a.id = u.account_id
CROSS JOIN LATERAL (
    SELECT greatest(imprint_now(), t.at, CASE WHEN t.at IS NULL THEN b.every + greatest(imprint_now(),
        CASE f.status WHEN 'pending' THEN greatest(f.due_at, nullif(f.held_until, 'infinity')) END) END) AS at
    FROM (SELECT) AS one LEFT JOIN batch_turn t ON t.batch_id = b.id
    LEFT JOIN publication f ON f.batch_id = b.id AND f.turn = 'front'
) AS next
WHERE b.id = $1 ORDER BY u.batch_place

-- name: batch_expect
-- Writes down when those behind will probably go, for whoever looks at one of them alone.
UPDATE publication u
SET due_at = greatest(given.at, u.scheduled_at + make_interval(secs => u.jitter_seconds)), held_why = 'batch'
FROM unnest($2::uuid[], $3::timestamptz[]) AS given (id, at)
WHERE u.id = given.id AND u.batch_id = $1 AND u.turn = 'behind' RETURNING u.id

-- name: batch_pause
-- Lets no publication of a batch go until it is resumed; what a worker has in its hands goes on.
WITH held AS (
    UPDATE batch_turn SET paused = true WHERE batch_id = $1
)
UPDATE publication SET paused = true WHERE batch_id = $1 AND NOT paused RETURNING id

-- name: batch_resume
-- Lets a batch go on: each at its time, or now if that is over.
WITH released AS (
    UPDATE batch_turn SET paused = false WHERE batch_id = $1
)
UPDATE publication SET paused = false,
    due_at = CASE WHEN status = 'pending' AND turn <> 'behind' THEN greatest(due_at, imprint_now()) ELSE due_at END
WHERE batch_id = $1 AND paused RETURNING id

-- name: batch_stop
-- Cancels what waits and what runs without an intent; the fence grows, so that the worker's word no longer counts.
UPDATE publication SET status = 'cancelled', error_code = 'cancelled_by_hand', phase = NULL, lease_until = NULL,
    fence = fence + CASE status WHEN 'running' THEN 1 ELSE 0 END
WHERE batch_id = $1 AND left_at IS NULL AND (status = 'pending' OR (status = 'running' AND intent_at IS NULL))
RETURNING id, account_id, due_at

-- name: batch_arrange
-- Puts those behind on other places of a batch.
UPDATE publication u SET batch_place = given.place FROM unnest($2::uuid[], $3::integer[]) AS given (id, place)
WHERE u.id = given.id AND u.batch_id = $1 AND u.turn = 'behind' RETURNING u.id

-- name: batch_delete
-- Deletes a batch, softly.
UPDATE batch SET deleted_at = imprint_now() WHERE id = $1 AND deleted_at IS NULL RETURNING id
