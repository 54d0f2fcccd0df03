-- name: demo_begin
-- A post, an account, and nothing decided yet.
WITH a AS (INSERT INTO account (platform, name) VALUES ('demo', 'my gallery') RETURNING id),
     p AS (INSERT INTO post (title) VALUES ('A lighthouse at dusk') RETURNING id)
SELECT p.id AS post, a.id AS account FROM a, p

-- name: demo_move_post
-- Asks for any status at all; PostgreSQL decides.
UPDATE post SET status = $2 WHERE id = $1 RETURNING status

-- name: demo_schedule
-- Schedules the post on the account, a moment from now.
INSERT INTO publication (post_id, account_id, due_at) VALUES ($1, $2, imprint_now() + $3::interval) RETURNING id, due_at

-- name: demo_intend
-- Says that the request that publishes is about to leave, under the fence.
UPDATE publication SET phase = 'publishing', intent_at = imprint_now() WHERE id = $1 AND fence = $2 RETURNING id, due_at

-- name: demo_succeed
-- Records what the platform said, under the fence.
UPDATE publication SET status = 'success', remote_id = $3, phase = NULL, lease_until = NULL
WHERE id = $1 AND fence = $2 RETURNING id, due_at

-- name: demo_late
-- How late the publication was taken, in milliseconds.
SELECT extract(epoch FROM a.at - p.due_at)::float8 * 1000 AS ms
FROM publication p JOIN audit a ON a.row_id = p.id AND a.move = 'claim' WHERE p.id = $1

-- name: demo_story
-- Everything that happened to the post and its publications, in order.
SELECT at, lifecycle, move, source, target, actor, reason FROM audit
WHERE row_id = $1 OR row_id IN (SELECT id FROM publication WHERE post_id = $1) ORDER BY id
