-- name: lease_claim_publication
-- Takes the lease of a due publication of a free account; the fence grows, so an older holder's word no longer counts.
UPDATE publication SET fence = fence + 1, lease_until = imprint_now() + $2::interval, held_until = NULL,
    status = 'running', phase = 'uploading'
WHERE id = $1 AND status = 'pending' AND due_at <= imprint_now()
  -- The unique index alone holds the rule of one per account; this look keeps a claim from waiting in it, its own row
  -- locked, for one who finishes and wants to wake that very row.
  AND NOT EXISTS (SELECT FROM publication AS running
                  WHERE running.account_id = publication.account_id AND running.status = 'running')
  AND NOT EXISTS (SELECT FROM incarnation WHERE held_since IS NOT NULL)
RETURNING id, fence, lease_until AS until, crashes

-- name: lease_renew_publication
-- Keeps a lease that has not ended; no row means it is lost.
UPDATE publication SET lease_until = imprint_now() + $3::interval
WHERE id = $1 AND fence = $2 AND lease_until > imprint_now()
RETURNING id, fence, lease_until AS until, crashes

-- name: lease_release_publication
-- Gives a publication of which nothing has left back, and forgets the crashes before: this holder lived.
UPDATE publication SET lease_until = NULL, crashes = 0, status = 'pending', phase = NULL
WHERE id = $1 AND fence = $2 AND status = 'running' AND intent_at IS NULL
RETURNING id

-- name: lease_expire_publication
-- Takes back the leases whose holders died: unknown after the intent, since nobody can tell whether the request left;
-- before it pending again, or set aside after too many crashes.
WITH lost AS (
    -- One clock at a time: the triggers lock what the rows belong to, and two with many rows would do so crosswise.
    SELECT id FROM publication
    WHERE (SELECT pg_try_advisory_xact_lock(hashtext('publication_expire')))
      AND status = 'running' AND wake_at <= imprint_now()
    ORDER BY wake_at LIMIT $1 FOR UPDATE SKIP LOCKED
)
UPDATE publication p SET lease_until = NULL, fence = p.fence + 1, crashes = p.crashes + 1, phase = NULL,
    status = CASE WHEN p.intent_at IS NOT NULL THEN 'unknown' WHEN p.crashes + 1 >= $2 THEN 'failed' ELSE 'pending' END,
    error_code = CASE WHEN p.intent_at IS NULL AND p.crashes + 1 >= $2 THEN 'quarantined' ELSE p.error_code END
FROM lost WHERE p.id = lost.id
RETURNING p.id, p.fence, p.crashes, p.status

-- name: lease_claim_source
-- Takes the lease of a source that is due.
UPDATE source SET fence = fence + 1, lease_until = imprint_now() + $2::interval, held_until = NULL
WHERE id = $1 AND lease_until IS NULL AND status <> 'disabled' AND deleted_at IS NULL AND next_check_at <= imprint_now()
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
    next_check_at = CASE WHEN s.crashes + 1 >= $2 THEN greatest(s.next_check_at, imprint_now() + interval '24 hours')
                         ELSE s.next_check_at END
FROM lost WHERE s.id = lost.id
RETURNING s.id, s.fence, s.crashes, s.status
