-- name: account_add
-- Adds an account that is signed in; the first one of a person is the default.
INSERT INTO account (platform, name, owner, label, is_default)
VALUES ($1, $2, $3, $4, NOT EXISTS (SELECT FROM account WHERE owner = $3 AND is_default))
RETURNING id

-- name: account_revive
-- Takes an account of the same login back that was removed: what is out there is remembered, and does not go out again.
UPDATE account SET deleted_at = NULL, label = $4, status = 'connected', trouble = NULL, trouble_code = NULL
WHERE id = (SELECT id FROM account
            WHERE platform = $1 AND name = $2 AND owner = $3 AND name <> '' AND deleted_at IS NOT NULL
            ORDER BY created_at DESC, id LIMIT 1)
  AND NOT EXISTS (SELECT FROM account WHERE platform = $1 AND name = $2 AND owner = $3 AND deleted_at IS NULL)
RETURNING id

-- name: account_list
-- The accounts of a person that are not removed, each with how long its sign-in lasts and how much waits for it.
SELECT a.id, a.platform, a.name, a.label, a.status, a.status_at, a.is_default, a.trouble_code, a.trouble, a.created_at,
    c.expires_at, c.renewable_until,
    (SELECT count(*) FROM publication u WHERE u.account_id = a.id AND u.status = 'pending') AS waiting
FROM account a LEFT JOIN credential c ON c.account_id = a.id
WHERE a.owner = $1 AND a.deleted_at IS NULL AND ($2::uuid IS NULL OR a.id = $2) ORDER BY a.label, a.created_at, a.id

-- name: account_manners
-- How each account of a person is called now: its pace, its circuit, and until when the host behind it is left alone.
SELECT a.id, imprint_now() AS now, p.gap, p.next_at, coalesce(c.errors + c.rate_limits, 0) AS failures, c.open_until,
    c.last_error AS why,
    (SELECT max(u.held_until) FROM publication u WHERE u.account_id = a.id AND u.status = 'pending'
       AND u.held_why = 'circuit' AND u.held_until < 'infinity') AS held_until
FROM account a LEFT JOIN pace p ON p.key = 'account:' || a.id LEFT JOIN circuit c ON c.key = 'account:' || a.id
WHERE a.owner = $1 AND a.deleted_at IS NULL

-- name: account_found
-- Accounts of a person with this name, or with an id that begins so.
SELECT id, coalesce(label, name) AS name, coalesce(label = $2, id::text = $2, false) AS exact FROM account
WHERE owner = $1 AND deleted_at IS NULL AND (label = $2 OR starts_with(id::text, lower($2))) ORDER BY exact DESC, id LIMIT 6

-- name: account_lock
-- An account of a person, kept as it is until the transaction ends.
SELECT id, platform, name, label, status, trouble_code FROM account
WHERE id = $1 AND owner = $2 AND deleted_at IS NULL FOR NO KEY UPDATE

-- name: account_undefault
-- No account of a person is the default.
UPDATE account SET is_default = false WHERE owner = $1 AND is_default

-- name: account_default
-- This account is the default.
UPDATE account SET is_default = true WHERE id = $1 AND deleted_at IS NULL RETURNING id

-- name: account_disable
-- A person does not want an account used; why it was unwell is kept.
UPDATE account SET status = 'disabled' WHERE id = $1 AND status IN ('connected', 'reconnect') RETURNING id

-- name: account_enable
-- A person wants an account used again; one that was unwell before still is.
UPDATE account SET status = CASE WHEN trouble_code IS NULL THEN 'connected' ELSE 'reconnect' END
WHERE id = $1 AND status = 'disabled' RETURNING id

-- name: account_expire
-- The platform wants the person to sign in again; only if nobody has done so since this version of the sign-in.
UPDATE account a SET status = 'reconnect', trouble_code = $3, trouble = $4
FROM credential c WHERE a.id = $1 AND c.account_id = a.id AND c.version = $2 AND a.status = 'connected'
RETURNING a.id

-- name: account_mend
-- A person has signed in again, so that nothing is wrong with an account any more.
UPDATE account SET trouble_code = NULL, trouble = NULL,
    status = CASE status WHEN 'disabled' THEN 'disabled' ELSE 'connected' END,
    name = CASE name WHEN '' THEN $2 ELSE name END
WHERE id = $1 AND deleted_at IS NULL RETURNING id

-- name: account_remove
-- Removes an account, softly; the trigger refuses while something waits for it.
UPDATE account SET deleted_at = imprint_now(), is_default = false WHERE id = $1 AND deleted_at IS NULL RETURNING id

-- name: account_ending
-- Accounts whose sign-in ends within this time for good, the soonest first.
SELECT a.id, a.platform, a.name, a.label, c.renewable_until
FROM account a JOIN credential c ON c.account_id = a.id
WHERE a.deleted_at IS NULL AND a.status = 'connected' AND c.renewable_until < imprint_now() + $1::interval
ORDER BY c.renewable_until

-- name: account_unwell
-- Accounts that want to be signed in again, and how much waits for each.
SELECT a.id, a.platform, a.name, a.label, a.trouble,
    (SELECT count(*) FROM publication u WHERE u.account_id = a.id AND u.status = 'pending') AS waiting
FROM account a WHERE a.deleted_at IS NULL AND a.status = 'reconnect' ORDER BY a.label, a.id

-- name: account_free_held
-- Wakes what waits for an account that is connected: a clock and a person can miss each other by a moment.
UPDATE publication u SET held_until = NULL, held_why = NULL FROM account a
WHERE u.held_until = 'infinity' AND u.status IN ('pending', 'unknown') AND a.id = u.account_id
  AND a.status = 'connected' AND a.deleted_at IS NULL
RETURNING u.id
