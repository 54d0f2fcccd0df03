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
    SELECT 'source_due', (SELECT wake_at FROM source WHERE lease_until IS NULL ORDER BY wake_at LIMIT 1)
    WHERE 'source_due' = ANY ($1::text[])
    UNION ALL
    SELECT 'source_lost', (SELECT wake_at FROM source WHERE lease_until IS NOT NULL ORDER BY wake_at LIMIT 1)
    WHERE 'source_lost' = ANY ($1::text[])
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
    SELECT id, account_id, wake_at FROM publication
    WHERE status = 'pending' AND wake_at <= imprint_now()
      AND NOT EXISTS (SELECT FROM incarnation WHERE held_since IS NOT NULL)
    ORDER BY wake_at LIMIT $1 FOR UPDATE SKIP LOCKED
), asked AS (
    SELECT due.id, due.wake_at,
           account.status <> 'connected' OR account.deleted_at IS NOT NULL AS away,
           circuit.open_until,
           row_number() OVER (PARTITION BY due.account_id ORDER BY due.wake_at, due.id) > 1
               OR EXISTS (SELECT FROM publication r WHERE r.account_id = due.account_id AND r.status = 'running') AS busy
    FROM due JOIN account ON account.id = due.account_id
    LEFT JOIN circuit ON circuit.key = 'account:' || due.account_id AND circuit.open_until > imprint_now()
)
UPDATE publication p SET held_until = CASE
    WHEN asked.away THEN 'infinity'
    WHEN asked.open_until IS NOT NULL THEN asked.open_until
    WHEN asked.busy THEN imprint_now() + interval '30 s'
    ELSE imprint_now() + interval '60 s' END
FROM asked WHERE p.id = asked.id
RETURNING p.id::text AS key, 0 AS priority, NOT (asked.away OR asked.open_until IS NOT NULL OR asked.busy) AS go

-- name: clock_source_due
-- Hands over the sources whose next check is due.
WITH due AS (
    SELECT id FROM source WHERE lease_until IS NULL AND wake_at <= imprint_now()
    ORDER BY wake_at LIMIT $1 FOR UPDATE SKIP LOCKED
)
UPDATE source s SET held_until = imprint_now() + interval '60 s' FROM due WHERE s.id = due.id
RETURNING s.id::text AS key, 0 AS priority, true AS go

-- name: clock_chore_due
-- Hands over the chores that are due and sets their next time.
WITH due AS (
    SELECT name FROM chore WHERE wake_at <= imprint_now() ORDER BY wake_at LIMIT $1 FOR UPDATE SKIP LOCKED
)
UPDATE chore c SET next_at = imprint_now() + c.every FROM due WHERE c.name = due.name
RETURNING c.name AS key, 0 AS priority, true AS go
