-- name: credential_writing
-- Says that a sign-in is about to be sealed; until the transaction ends nobody takes keys off the ring.
SELECT pg_advisory_xact_lock_shared(7600005)::text AS locked

-- name: credential_rotating
-- Lets one process at a time change the keys, while nobody seals anything; ends with the transaction.
SELECT pg_advisory_xact_lock(7600005)::text AS locked

-- name: credential_put
-- Keeps what an account signs in with now; whoever was renewing the one before finds a newer version.
INSERT INTO credential AS c (account_id, key_id, nonce, sealed, expires_at, renewable_until)
VALUES ($1, $2, $3, $4, imprint_now() + $5::interval, imprint_now() + $6::interval)
ON CONFLICT (account_id) DO UPDATE SET key_id = excluded.key_id, nonce = excluded.nonce, sealed = excluded.sealed,
    expires_at = excluded.expires_at, renewable_until = excluded.renewable_until, version = c.version + 1,
    renewal = NULL, renewal_until = NULL, changed_at = imprint_now()
RETURNING version

-- name: credential_get
-- What an account signs in with, how long it is good, and whether somebody is renewing it.
SELECT c.account_id, a.platform, a.name, a.label, a.status, a.trouble, c.key_id, c.nonce, c.sealed, c.version,
    c.expires_at - imprint_now() AS lasts, coalesce(c.renewal_until > imprint_now(), false) AS renewing,
    c.renewal IS NOT NULL AND c.renewal_until <= imprint_now() AS abandoned
FROM credential c JOIN account a ON a.id = c.account_id WHERE c.account_id = $1 AND a.deleted_at IS NULL

-- name: credential_renewal_begin
-- Says that the refresh token is about to be used; no row means that somebody else is at it or was faster.
UPDATE credential SET renewal = $3, renewal_until = imprint_now() + $4::interval
WHERE account_id = $1 AND version = $2 AND (renewal IS NULL OR renewal_until <= imprint_now())
RETURNING version

-- name: credential_renewal_done
-- Keeps what a renewal gave, before it is used; no row means that this renewal is no longer wanted.
UPDATE credential SET key_id = $3, nonce = $4, sealed = $5, expires_at = imprint_now() + $6::interval,
    renewable_until = imprint_now() + $7::interval, version = version + 1, renewal = NULL, renewal_until = NULL,
    changed_at = imprint_now()
WHERE account_id = $1 AND renewal = $2 RETURNING version

-- name: credential_renewal_end
-- Ends a renewal of which nothing came.
UPDATE credential SET renewal = NULL, renewal_until = NULL WHERE account_id = $1 AND renewal = $2 RETURNING version

-- name: credential_sealed_otherwise
-- Sign-ins that are not sealed with this key.
SELECT account_id, key_id, nonce, sealed FROM credential WHERE key_id <> $1 ORDER BY account_id FOR UPDATE

-- name: credential_reseal
-- Keeps the same sign-in, sealed with another key.
UPDATE credential SET key_id = $2, nonce = $3, sealed = $4 WHERE account_id = $1

-- name: credential_drop
-- Forgets what an account signs in with.
DELETE FROM credential WHERE account_id = $1

-- name: credential_keys
-- The keys with which something is sealed.
SELECT key_id FROM credential UNION SELECT key_id FROM errand
UNION SELECT key_id FROM target WHERE deleted_at IS NULL ORDER BY key_id
