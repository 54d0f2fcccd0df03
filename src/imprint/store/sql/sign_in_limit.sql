-- name: sign_in_limit_try
-- Counts a try before it is made, in windows of one length, and says how many there were and how long this one lasts.
INSERT INTO sign_in_limit AS l (kind, key) VALUES ($1, $2)
ON CONFLICT (kind, key) DO UPDATE SET
    tries = CASE WHEN l.began_at <= imprint_now() - $3::interval THEN 1 ELSE least(l.tries + 1, 1000000) END,
    began_at = CASE WHEN l.began_at <= imprint_now() - $3::interval THEN imprint_now() ELSE l.began_at END
RETURNING tries, began_at + $3::interval - imprint_now() AS lasts

-- name: sign_in_limit_clear
-- Forgets the tries of one who has come in.
DELETE FROM sign_in_limit WHERE kind = $1 AND key = $2

-- name: sign_in_limit_forget
-- Forgets windows that are over.
DELETE FROM sign_in_limit WHERE began_at < imprint_now() - $1::interval
