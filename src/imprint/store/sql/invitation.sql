-- name: invitation_add
-- Invites somebody; only by a person who may come in themselves.
INSERT INTO invitation (sha256, role, invited_by, label, expires_at)
SELECT $1, $2, id, $4, imprint_now() + $5::interval FROM person WHERE id = $3 AND disabled_at IS NULL
RETURNING id, expires_at

-- name: invitation_list
-- Invitations that are still open, of one person or of all, the newest first.
SELECT id, role, invited_by, label, created_at, expires_at FROM invitation
WHERE used_at IS NULL AND withdrawn_at IS NULL AND expires_at > imprint_now()
  AND ($1::text IS NULL OR invited_by = $1)
ORDER BY created_at DESC, id

-- name: invitation_lock
-- An open invitation by its hash, kept as it is until the transaction ends.
SELECT i.id, i.role, i.invited_by FROM invitation i JOIN person p ON p.id = i.invited_by AND p.disabled_at IS NULL
WHERE i.sha256 = $1 AND i.used_at IS NULL AND i.withdrawn_at IS NULL AND i.expires_at > imprint_now() FOR UPDATE OF i

-- name: invitation_use
-- An invitation was taken up.
UPDATE invitation SET used_at = imprint_now(), used_by = $2 WHERE id = $1 AND used_at IS NULL RETURNING id

-- name: invitation_withdraw
-- Takes an invitation back that nobody has taken up; one of one's own, or anybody's.
UPDATE invitation SET withdrawn_at = imprint_now()
WHERE id = $1 AND ($2::text IS NULL OR invited_by = $2) AND used_at IS NULL AND withdrawn_at IS NULL RETURNING id
