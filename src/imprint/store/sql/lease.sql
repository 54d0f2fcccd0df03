-- name: lease_claim
-- Takes the lease of a row that nobody holds; the fence grows, so an older holder's word no longer counts.
UPDATE {table} SET fence = fence + 1, lease_until = imprint_now() + $2::interval, held_until = NULL{claim}
WHERE id = $1 AND lease_until IS NULL AND {claimable}
RETURNING id, fence, lease_until AS until, crashes

-- name: lease_renew
-- Keeps a lease that has not ended; no row means it is lost.
UPDATE {table} SET lease_until = imprint_now() + $3::interval
WHERE id = $1 AND fence = $2 AND lease_until > imprint_now()
RETURNING id, fence, lease_until AS until, crashes

-- name: lease_release
-- Gives a row back with nothing done, and forgets the crashes before: this holder lived.
UPDATE {table} SET lease_until = NULL, crashes = 0{release}
WHERE id = $1 AND fence = $2 AND lease_until IS NOT NULL AND {releasable}
RETURNING id

-- name: lease_expire
-- Takes back the leases whose holders died, counts the crash, and sets aside a row that crashes too often.
WITH lost AS (
    -- One clock at a time: the triggers lock what the rows belong to, and two with many rows each would do so crosswise.
    SELECT t.id FROM {table} t
    WHERE (SELECT pg_try_advisory_xact_lock(hashtext('lease_expire {table}'))) AND {leased} AND t.wake_at <= imprint_now()
    ORDER BY t.wake_at LIMIT $1 FOR UPDATE SKIP LOCKED
)
UPDATE {table} t SET lease_until = NULL, fence = t.fence + 1, crashes = t.crashes + 1, {expire}
FROM lost WHERE t.id = lost.id
RETURNING t.id, t.fence, t.crashes, t.status
