-- name: webhook_add
-- Adds a webhook of a person.
INSERT INTO target (id, person, label, service, key_id, nonce, sealed, kind, tells)
VALUES ($1, $2, $3, $4, $5, $6, $7, 'webhook', $8)
RETURNING id

-- name: webhook_list
-- Webhooks of a person, by name; each with what waits for it and what never arrived.
SELECT t.id, t.label, t.service AS host, t.tells AS events, t.muted AS disabled, t.last_error, t.last_error_at,
    t.last_sent_at, t.created_at,
    (SELECT count(*) FROM delivery d WHERE d.target_id = t.id AND d.ended_at IS NULL AND d.failed_at IS NULL) AS waiting,
    (SELECT count(*) FROM delivery d WHERE d.target_id = t.id AND d.ended_at IS NULL AND d.failed_at IS NOT NULL) AS failed,
    (SELECT c.open_until FROM circuit c WHERE c.key = 'target:' || t.id AND c.open_until > imprint_now()) AS resting_until
FROM target t WHERE t.person = $1 AND t.kind = 'webhook' AND t.deleted_at IS NULL ORDER BY t.label

-- name: webhook_change
-- Lets a webhook hear of other events.
UPDATE target SET tells = $3 WHERE id = $1 AND person = $2 AND kind = 'webhook' AND deleted_at IS NULL RETURNING id

-- name: webhook_hold
-- Holds a webhook while its secret is changed, and says until when the old one signs as well.
SELECT imprint_now() AS now, imprint_now() + $3::interval AS until FROM target
WHERE id = $1 AND person = $2 AND kind = 'webhook' AND deleted_at IS NULL FOR UPDATE

-- name: webhook_gone
-- Keeps a webhook from being called again: its receiver says that it is gone for good.
UPDATE target SET muted = true WHERE id = $1
