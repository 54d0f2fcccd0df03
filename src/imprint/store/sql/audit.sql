-- name: audit_list
-- Lines of the audit, the newest first, a page at a time; of one row, or of all.
SELECT id, at, lifecycle, row_id, move, source, target, actor, reason FROM audit
WHERE id < $1 AND ($2::uuid IS NULL OR row_id = $2) ORDER BY id DESC LIMIT $3

-- name: audit_chained
-- Lines of the audit, row by row and each row's in order, with their hashes, a page at a time.
SELECT id, extract(epoch FROM at)::text AS epoch, lifecycle, row_id, move, source, target, actor, reason, sha256 FROM audit
WHERE (row_id, id) > ($1::uuid, $2::bigint) ORDER BY row_id, id LIMIT $3

-- name: audit_numbered
-- Numbers and hashes of the lines up to one, in order, a page at a time.
SELECT id, sha256 FROM audit WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3

-- name: audit_disagree
-- Rows that are not where the last line about them says.
SELECT lifecycle, row_id, status, told FROM audit_disagreements() LIMIT $1

-- name: audit_turn
-- Lets one at a time make seals; the turn ends with the transaction.
SELECT pg_try_advisory_xact_lock(hashtextextended('audit_seal', 0)) AS mine

-- name: audit_seals
-- Every seal, in order.
SELECT number, upto, lines, sha256 FROM audit_seal WHERE sha256 IS NOT NULL ORDER BY number

-- name: audit_last_seal
-- The newest seal that is whole.
SELECT number, upto, lines, sha256 FROM audit_seal WHERE sha256 IS NOT NULL ORDER BY number DESC LIMIT 1

-- name: audit_seal_open
-- The seal that is being made, and whether every transaction has ended that it waits for.
SELECT number, upto, pg_snapshot_xmin(pg_current_snapshot()) >= after_all AS ready,
    made_at < imprint_now() - interval '1 day' AS old
FROM audit_seal WHERE sha256 IS NULL

-- name: audit_seal_begin
-- Begins a seal over every line there is by now; no row: there is nothing new.
INSERT INTO audit_seal (number, upto, after_all)
SELECT $1, max(id), pg_current_xact_id() FROM audit HAVING max(id) > $2
RETURNING number

-- name: audit_seal_anew
-- Lets a seal wait for the transactions of today: those it waited for were of another server.
UPDATE audit_seal SET after_all = pg_current_xact_id(), made_at = imprint_now()
WHERE number = $1 AND sha256 IS NULL

-- name: audit_seal_end
-- The seal is whole.
UPDATE audit_seal SET lines = $2, sha256 = $3, made_at = imprint_now() WHERE number = $1 AND sha256 IS NULL
RETURNING number
