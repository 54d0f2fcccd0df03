-- name: errand_begin
-- Remembers, sealed, why a person was sent to a platform.
INSERT INTO errand (id, state_sha256, owner, platform, label, account_id, key_id, nonce, sealed, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, imprint_now() + $10::interval) RETURNING expires_at

-- name: errand_end
-- Takes an errand whose person has come back; each can be taken once.
DELETE FROM errand WHERE state_sha256 = $1 AND owner = $2 AND expires_at > imprint_now()
RETURNING id, platform, label, account_id, key_id, nonce, sealed

-- name: errand_forget
-- Forgets errands from which nobody came back in time.
DELETE FROM errand WHERE expires_at <= imprint_now()

-- name: errand_sealed_otherwise
-- Errands that are not sealed with this key.
SELECT id, key_id, nonce, sealed FROM errand WHERE key_id <> $1 ORDER BY id FOR UPDATE

-- name: errand_reseal
-- Keeps the same errand, sealed with another key.
UPDATE errand SET key_id = $2, nonce = $3, sealed = $4 WHERE id = $1
