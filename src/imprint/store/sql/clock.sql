-- name: clock_plan
-- For each timer that is asked for, how long until its earliest row must be looked at.
WITH plan AS MATERIALIZED (
    SELECT 'publication_due' AS timer, (
        SELECT wake_at FROM publication WHERE status = 'pending' ORDER BY wake_at LIMIT 1) AS wake_at
    WHERE 'publication_due' = ANY ($1::text[]) AND NOT EXISTS (SELECT FROM incarnation WHERE held_since IS NOT NULL)
    UNION ALL
    SELECT 'publication_lost', (SELECT wake_at FROM publication WHERE status = 'running' ORDER BY wake_at LIMIT 1)
    WHERE 'publication_lost' = ANY ($1::text[])
    UNION ALL
    SELECT 'publication_unknown', (SELECT wake_at FROM publication WHERE status = 'unknown' ORDER BY wake_at LIMIT 1)
    WHERE 'publication_unknown' = ANY ($1::text[])
    UNION ALL
    SELECT 'source_due', (SELECT wake_at FROM source WHERE lease_until IS NULL ORDER BY wake_at LIMIT 1)
    WHERE 'source_due' = ANY ($1::text[])
    UNION ALL
    SELECT 'source_lost', (SELECT wake_at FROM source WHERE lease_until IS NOT NULL ORDER BY wake_at LIMIT 1)
    WHERE 'source_lost' = ANY ($1::text[])
    UNION ALL
    SELECT 'delivery_due', (
        SELECT wake_at FROM delivery WHERE ended_at IS NULL AND failed_at IS NULL ORDER BY wake_at LIMIT 1)
    WHERE 'delivery_due' = ANY ($1::text[]) AND NOT EXISTS (SELECT FROM incarnation WHERE held_since IS NOT NULL)
    UNION ALL
    SELECT 'turn_due', (SELECT wake_at FROM batch_turn ORDER BY wake_at LIMIT 1)
    WHERE 'turn_due' = ANY ($1::text[]) AND NOT EXISTS (SELECT FROM incarnation WHERE held_since IS NOT NULL)
    UNION ALL
    SELECT 'chore_due', (SELECT wake_at FROM chore ORDER BY wake_at LIMIT 1)
    WHERE 'chore_due' = ANY ($1::text[])
)
SELECT timer, extract(epoch FROM wake_at)::float8 AS wake_at,
       extract(epoch FROM wake_at - imprint_now())::float8 AS wake_in
FROM plan WHERE wake_at < 'infinity' ORDER BY wake_at

-- name: clock_publication_due
-- Hands over the first due publication of every account that is free; the others are looked at again when theirs
-- is: after the circuit's time, when the account is back, or when the one before has ended (30 s at the latest).
WITH due AS (
    SELECT id, account_id, due_at FROM publication
    WHERE status = 'pending' AND wake_at <= imprint_now()
      AND NOT EXISTS (SELECT FROM incarnation WHERE held_since IS NOT NULL)
    ORDER BY wake_at LIMIT $1 FOR UPDATE SKIP LOCKED
), asked AS (
    SELECT due.id,
           account.status <> 'connected' OR account.deleted_at IS NOT NULL AS away,
           circuit.open_until,
           -- By what was planned, not by when it was looked at: two that waited for the same moment keep their order.
           row_number() OVER (PARTITION BY due.account_id ORDER BY due.due_at, due.id) > 1
               OR EXISTS (SELECT FROM publication r WHERE r.account_id = due.account_id AND r.status = 'running') AS busy
    FROM due JOIN account ON account.id = due.account_id
    LEFT JOIN circuit ON circuit.key = 'account:' || due.account_id AND circuit.open_until > imprint_now()
)
UPDATE publication p SET held_until = CASE
    WHEN asked.away THEN 'infinity'
    WHEN asked.open_until IS NOT NULL THEN asked.open_until
    WHEN asked.busy THEN imprint_now() + interval '30 s'
    ELSE imprint_now() + interval '60 s' END,
    held_why = CASE WHEN asked.away THEN 'account' WHEN asked.open_until IS NOT NULL THEN 'circuit'
                    WHEN asked.busy THEN 'busy' ELSE 'queue' END
FROM asked WHERE p.id = asked.id
RETURNING p.id::text AS key, 0 AS priority, NOT (asked.away OR asked.open_until IS NOT NULL OR asked.busy) AS go

-- name: clock_publication_unknown
-- Hands over the unknown publications whose next look is due; also while sends are held, since a look sends nothing.
WITH due AS (
    SELECT id FROM publication WHERE status = 'unknown' AND wake_at <= imprint_now()
    ORDER BY wake_at LIMIT $1 FOR UPDATE SKIP LOCKED
)
UPDATE publication p SET held_until = imprint_now() + interval '60 s', held_why = 'queue' FROM due WHERE p.id = due.id
RETURNING p.id::text AS key, 0 AS priority, true AS go

-- name: clock_publication_soon
-- Looks again in a moment at publications whose last job has not left the queue yet, since no second one was taken.
UPDATE publication SET held_until = imprint_now() + interval '0.5 s' FROM pgqueuer q
WHERE q.dedupe_key = ANY (SELECT $1::text || ':' || key FROM unnest($2::text[]) AS key) AND q.status = 'picked'
  AND publication.id = convert_from(q.payload, 'UTF8')::uuid AND publication.status IN ('pending', 'unknown')

-- name: clock_source_due
-- Hands over the first due source of every host that is free and that may be asked by now; the others of a host wait
-- until the one before has ended (15 s at the latest).
WITH due AS (
    SELECT id, host, priority, wake_at, next_check_at FROM source WHERE lease_until IS NULL AND wake_at <= imprint_now()
    ORDER BY wake_at LIMIT $1 FOR UPDATE SKIP LOCKED
), asked AS (
    SELECT due.id, pace.next_at,
           due.host IS NOT NULL AND (row_number() OVER (PARTITION BY due.host ORDER BY due.next_check_at
                   + CASE due.priority WHEN 'HOT' THEN interval '0' WHEN 'WARM' THEN interval '1 hour'
                                       ELSE interval '6 hours' END) > 1
               OR EXISTS (SELECT FROM source r WHERE r.host = due.host AND r.lease_until IS NOT NULL)) AS busy
    FROM due LEFT JOIN pace ON pace.key = 'host:' || due.host AND pace.next_at > imprint_now()
)
UPDATE source s SET held_until = CASE
    WHEN asked.busy THEN imprint_now() + interval '15 s'
    WHEN asked.next_at IS NOT NULL THEN asked.next_at
    ELSE imprint_now() + interval '60 s' END
FROM asked WHERE s.id = asked.id
RETURNING s.id::text AS key, CASE s.priority WHEN 'HOT' THEN 2 WHEN 'WARM' THEN 1 ELSE 0 END AS priority,
    NOT asked.busy AND asked.next_at IS NULL AS go

-- name: clock_delivery_due
-- Hands over the messages that are due, and those whose sender died; what is for a target that rests waits with it.
WITH due AS (
    SELECT id, target_id FROM delivery
    WHERE ended_at IS NULL AND failed_at IS NULL AND wake_at <= imprint_now()
      AND NOT EXISTS (SELECT FROM incarnation WHERE held_since IS NOT NULL)
    ORDER BY wake_at LIMIT $1 FOR UPDATE SKIP LOCKED
), asked AS (
    SELECT due.id, circuit.open_until FROM due
    LEFT JOIN circuit ON circuit.key = 'target:' || due.target_id AND circuit.open_until > imprint_now()
)
UPDATE delivery d SET held_until = coalesce(asked.open_until, imprint_now() + interval '60 s')
FROM asked WHERE d.id = asked.id
RETURNING d.id::text AS key, 0 AS priority, asked.open_until IS NULL AS go

-- name: clock_turn_due
-- Gives the next of each batch its turn: the first behind whose account can be used. When there is none, or somebody
-- has that one in hand, it is looked at again soon.
WITH due AS (
    SELECT batch_id FROM batch_turn
    WHERE wake_at <= imprint_now() AND NOT EXISTS (SELECT FROM incarnation WHERE held_since IS NOT NULL)
    ORDER BY wake_at LIMIT $1 FOR UPDATE SKIP LOCKED
), asked AS (
    SELECT batch_id, EXISTS (SELECT FROM publication p WHERE p.batch_id = due.batch_id AND p.turn = 'behind') AS more,
           (SELECT p.id FROM publication p JOIN account a ON a.id = p.account_id
            WHERE p.batch_id = due.batch_id AND p.turn = 'behind' AND a.status = 'connected' AND a.deleted_at IS NULL
            ORDER BY p.batch_place LIMIT 1) AS id
    FROM due
), free AS (
    SELECT id FROM publication WHERE id IN (SELECT id FROM asked) AND turn = 'behind' FOR UPDATE SKIP LOCKED
), given AS (
    UPDATE publication p SET turn = 'front', held_until = NULL, held_why = NULL,
        due_at = greatest(imprint_now(), p.scheduled_at + make_interval(secs => p.jitter_seconds))
    FROM free WHERE p.id = free.id RETURNING p.batch_id
), done AS (
    DELETE FROM batch_turn t USING asked
    WHERE t.batch_id = asked.batch_id AND (NOT asked.more OR t.batch_id IN (SELECT batch_id FROM given))
), later AS (
    UPDATE batch_turn t
    SET at = imprint_now() + CASE WHEN asked.id IS NULL THEN interval '1 min' ELSE interval '1 s' END
    FROM asked WHERE t.batch_id = asked.batch_id AND asked.more AND t.batch_id NOT IN (SELECT batch_id FROM given)
)
SELECT batch_id::text AS key, 0 AS priority, false AS go FROM asked

-- name: clock_source_soon
-- Looks again in a moment at sources whose last job has not left the queue yet, since no second one was taken.
UPDATE source SET held_until = imprint_now() + interval '0.5 s' FROM pgqueuer q
WHERE q.dedupe_key = ANY (SELECT $1::text || ':' || key FROM unnest($2::text[]) AS key) AND q.status = 'picked'
  AND source.id = convert_from(q.payload, 'UTF8')::uuid AND source.lease_until IS NULL

-- name: clock_chore_due
-- Hands over the chores that are due and sets their next time.
WITH due AS (
    SELECT name FROM chore WHERE wake_at <= imprint_now() ORDER BY wake_at LIMIT $1 FOR UPDATE SKIP LOCKED
)
UPDATE chore c SET next_at = imprint_now() + c.every FROM due WHERE c.name = due.name
RETURNING c.name AS key, 0 AS priority, true AS go
