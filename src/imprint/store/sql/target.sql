-- name: target_add
-- Adds where a person is told.
INSERT INTO target (id, person, label, service, key_id, nonce, sealed, digest) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
RETURNING id

-- name: target_list
-- Where a person is told, by name; each with what waits for it and what never arrived.
SELECT t.id, t.label, t.service, t.digest, t.muted, t.last_error, t.last_error_at, t.last_sent_at, t.created_at,
    (SELECT count(*) FROM delivery d WHERE d.target_id = t.id AND d.ended_at IS NULL AND d.failed_at IS NULL) AS waiting,
    (SELECT count(*) FROM delivery d WHERE d.target_id = t.id AND d.ended_at IS NULL AND d.failed_at IS NOT NULL) AS failed,
    (SELECT c.open_until FROM circuit c WHERE c.key = 'target:' || t.id AND c.open_until > imprint_now()) AS resting_until
FROM target t WHERE t.person = $1 AND t.kind = 'message' AND t.deleted_at IS NULL ORDER BY t.label

-- name: target_get
-- One target as it lies in the database; trusted: its person looks after this machine, and may reach its network.
SELECT id, person, label, service, key_id, nonce, sealed, digest, muted, kind,
    coalesce((SELECT p.role = 'administrator' FROM person p WHERE p.id = target.person), person = 'operator') AS trusted,
    imprint_now() AS now
FROM target WHERE id = $1 AND deleted_at IS NULL

-- name: target_digest
-- Lets a target hear at once, or everything together.
UPDATE target SET digest = $3 WHERE id = $1 AND person = $2 AND deleted_at IS NULL RETURNING id

-- name: target_mute
-- Keeps a target from hearing anything for now, or lets it hear again.
UPDATE target SET muted = $3 WHERE id = $1 AND person = $2 AND deleted_at IS NULL RETURNING id

-- name: target_remove
-- Removes a target and forgets its address.
UPDATE target SET deleted_at = imprint_now(), key_id = NULL, nonce = NULL, sealed = NULL
WHERE id = $1 AND person = $2 AND deleted_at IS NULL RETURNING id

-- name: target_withdraw
-- Ends what still waits for a target that is gone; what somebody is sending at this moment ends by itself.
UPDATE delivery SET ended_at = imprint_now(), outcome = 'moot', closed_at = coalesce(closed_at, imprint_now())
WHERE target_id = $1 AND ended_at IS NULL AND lease_until IS NULL

-- name: target_worked
-- Notes that a target was reached.
UPDATE target SET last_sent_at = imprint_now(), last_error = NULL, last_error_at = NULL WHERE id = $1

-- name: target_failed
-- Notes why a target was not reached.
UPDATE target SET last_error = $2, last_error_at = imprint_now() WHERE id = $1

-- name: target_sealed_otherwise
-- Targets that are not sealed with this key.
SELECT id, key_id, nonce, sealed FROM target WHERE deleted_at IS NULL AND key_id <> $1 ORDER BY id FOR UPDATE

-- name: target_reseal
-- Keeps the same address, sealed with another key.
UPDATE target SET key_id = $2, nonce = $3, sealed = $4 WHERE id = $1 AND deleted_at IS NULL
