-- name: lease_claim_publication
-- Takes the lease of a due publication of a free account and begins an attempt; the fence grows, so an older holder's
-- word no longer counts.
WITH claimed AS (
    UPDATE publication SET fence = fence + 1, lease_until = imprint_now() + $2::interval, held_until = NULL,
        held_why = NULL, status = 'running', phase = 'uploading', made_at = coalesce(made_at, imprint_now())
    WHERE id = $1 AND status = 'pending' AND due_at <= imprint_now() AND NOT paused AND turn IS DISTINCT FROM 'behind'
      -- The unique index alone holds the rule of one per account; this look keeps a claim from waiting in it, its own
      -- row locked, for one who finishes and wants to wake that very row.
      AND NOT EXISTS (SELECT FROM publication AS running
                      WHERE running.account_id = publication.account_id AND running.status = 'running')
      AND EXISTS (SELECT FROM account WHERE account.id = publication.account_id AND account.status = 'connected'
                    AND account.deleted_at IS NULL)
      AND NOT EXISTS (SELECT FROM incarnation WHERE held_since IS NOT NULL)
    RETURNING id, fence, lease_until AS until, crashes, due_at
), began AS (
    INSERT INTO attempt (publication_id, fence, worker, drift)
    SELECT id, fence, nullif(current_setting('imprint.actor', true), ''), imprint_now() - due_at FROM claimed
)
SELECT id, fence, until, crashes FROM claimed

-- name: lease_renew_publication
-- Keeps a lease that has not ended, never for less long than it has; no row means it is lost.
UPDATE publication SET lease_until = greatest(lease_until, imprint_now() + $3::interval)
WHERE id = $1 AND fence = $2 AND lease_until > imprint_now()
RETURNING id, fence, lease_until AS until, crashes

-- name: lease_release_publication
-- Gives a publication of which nothing has left back, and forgets the crashes before: this holder lived.
WITH released AS (
    UPDATE publication SET lease_until = NULL, crashes = 0, status = 'pending', phase = NULL
    WHERE id = $1 AND fence = $2 AND status = 'running' AND intent_at IS NULL
    RETURNING id
), ended AS (
    UPDATE attempt SET ended_at = imprint_now(), outcome = 'stopped'
    FROM released WHERE publication_id = released.id AND fence = $2 AND ended_at IS NULL
)
SELECT id FROM released

-- name: lease_expire_publication
-- Takes back the leases whose holders died: unknown when something may have left, since nobody can tell; otherwise
-- pending again, or set aside after too many crashes. Looked for after a quiet period: the sender's deadline is over.
WITH lost AS (
    -- One clock at a time: the triggers lock what the rows belong to, and two with many rows would do so crosswise.
    SELECT id, fence, crashes + 1 >= $2 AS deadly,
           intent_at IS NOT NULL OR (left_at IS NOT NULL AND crashes + 1 >= $2) AS may_be_out
    FROM publication
    WHERE (SELECT pg_try_advisory_xact_lock(hashtext('publication_expire')))
      AND status = 'running' AND wake_at <= imprint_now()
    ORDER BY wake_at LIMIT $1 FOR UPDATE SKIP LOCKED
), ended AS (
    UPDATE attempt a SET ended_at = imprint_now(), outcome = 'died', code = 'worker.died',
        sentence = 'The worker died, or could no longer reach the database.'
    FROM lost WHERE a.publication_id = lost.id AND a.fence = lost.fence AND a.ended_at IS NULL
), told AS (
    INSERT INTO publication_log (publication_id, kind, line)
    SELECT id, CASE WHEN may_be_out THEN 'unknown' WHEN deadly THEN 'failed' ELSE 'recovered' END,
           CASE WHEN may_be_out THEN 'The worker died after it may have sent; a look will tell.'
                WHEN deadly THEN 'Workers died over this again and again; it is set aside until a person looks at it.'
                ELSE 'The worker died before anything left; another one goes on.' END
    FROM lost ORDER BY id
)
UPDATE publication p SET lease_until = NULL, fence = p.fence + 1, crashes = p.crashes + 1, phase = NULL,
    status = CASE WHEN lost.may_be_out THEN 'unknown' WHEN lost.deadly THEN 'failed' ELSE 'pending' END,
    intent_at = CASE WHEN lost.may_be_out THEN coalesce(p.intent_at, p.left_at) END,
    deadline = CASE WHEN lost.may_be_out AND p.intent_at IS NOT NULL THEN p.deadline END,
    left_at = CASE WHEN lost.may_be_out THEN coalesce(p.left_at, p.intent_at) ELSE p.left_at END,
    attempts = p.attempts + lost.may_be_out::integer,
    look_at = CASE WHEN lost.may_be_out THEN greatest(imprint_now(), p.deadline) + interval '1 minute' END,
    error_code = CASE WHEN lost.deadly AND NOT lost.may_be_out THEN 'quarantined' ELSE p.error_code END
FROM lost WHERE p.id = lost.id
RETURNING p.id, p.fence, p.crashes, p.status

-- name: lease_claim_source
-- Takes the lease of a source that is due and whose host nobody else is asking.
UPDATE source SET fence = fence + 1, lease_until = imprint_now() + $2::interval, held_until = NULL
WHERE id = $1 AND lease_until IS NULL AND status <> 'disabled' AND deleted_at IS NULL AND next_check_at <= imprint_now()
  AND NOT EXISTS (SELECT FROM source AS asked WHERE asked.host = source.host AND asked.lease_until IS NOT NULL)
RETURNING id, fence, lease_until AS until, crashes

-- name: lease_renew_source
-- Keeps a lease that has not ended; no row means it is lost.
UPDATE source SET lease_until = imprint_now() + $3::interval
WHERE id = $1 AND fence = $2 AND lease_until > imprint_now()
RETURNING id, fence, lease_until AS until, crashes

-- name: lease_release_source
-- Gives a source back with nothing done, and forgets the crashes before: this holder lived.
UPDATE source SET lease_until = NULL, crashes = 0
WHERE id = $1 AND fence = $2 AND lease_until IS NOT NULL
RETURNING id

-- name: lease_expire_source
-- Takes back the leases whose holders died and counts the crash; after too many of them the source rests for a day.
WITH lost AS (
    SELECT id FROM source
    WHERE (SELECT pg_try_advisory_xact_lock(hashtext('source_expire')))
      AND lease_until IS NOT NULL AND wake_at <= imprint_now()
    ORDER BY wake_at LIMIT $1 FOR UPDATE SKIP LOCKED
)
UPDATE source s SET lease_until = NULL, fence = s.fence + 1, crashes = s.crashes + 1,
    status = CASE WHEN s.status = 'active' AND s.crashes + 1 >= $2 THEN 'resting' ELSE s.status END,
    priority_before = CASE WHEN s.status = 'active' AND s.crashes + 1 >= $2 THEN s.priority ELSE s.priority_before END,
    priority = CASE WHEN s.status = 'active' AND s.crashes + 1 >= $2 THEN 'COLD' ELSE s.priority END,
    error_code = CASE WHEN s.crashes + 1 >= $2 THEN 'quarantined' ELSE s.error_code END,
    error = CASE WHEN s.crashes + 1 >= $2 THEN 'Workers died over this again and again; it rests for a day.'
                 ELSE s.error END,
    next_check_at = CASE WHEN s.crashes + 1 >= $2 THEN greatest(s.next_check_at, imprint_now() + interval '24 hours')
                         ELSE s.next_check_at END
FROM lost WHERE s.id = lost.id
RETURNING s.id, s.fence, s.crashes, s.status
