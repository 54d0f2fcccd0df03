-- name: rule_add
-- Makes a rule.
INSERT INTO rule (owner, series_id, title, body, tags, delay, zone)
SELECT $1, s.id, $3, $4, $5, $6, $7 FROM series s WHERE s.id = $2 AND s.owner = $1 AND s.deleted_at IS NULL
FOR SHARE OF s  -- not while chapters come in: whoever takes them in must know whether there are rules
RETURNING id

-- name: rule_add_accounts
-- Says where the posts of a rule go; an account that is not the owner's, or is gone, is left out.
WITH added AS (
    INSERT INTO rule_account (rule_id, account_id)
    SELECT $1, a.id FROM account a WHERE a.id = ANY ($2::uuid[]) AND a.owner = $3 AND a.deleted_at IS NULL
    RETURNING account_id
)
SELECT a.id, a.platform FROM added JOIN account a ON a.id = added.account_id

-- name: rule_list
-- The rules of a person, in the order in which they were made; of one series, or of all.
SELECT r.id, r.series_id, s.title AS series, r.title, r.body, r.tags, r.delay, r.zone, r.enabled, r.since, r.created_at,
    array(SELECT coalesce(a.label, nullif(a.name, ''), a.platform) FROM rule_account ra JOIN account a ON a.id = ra.account_id
          WHERE ra.rule_id = r.id ORDER BY 1)::text[] AS accounts,
    (SELECT count(*) FROM announcement n WHERE n.rule_id = r.id) AS posts,
    array(SELECT ra.account_id FROM rule_account ra WHERE ra.rule_id = r.id ORDER BY 1)::uuid[] AS account_ids
FROM rule r JOIN series s ON s.id = r.series_id
WHERE r.owner = $1 AND r.deleted_at IS NULL AND ($2::uuid IS NULL OR r.series_id = $2) ORDER BY r.created_at, r.id

-- name: rule_enable
-- Turns a rule on again, for what is found from now on.
UPDATE rule r SET enabled = true, since = imprint_now()
FROM (SELECT s.id FROM rule o JOIN series s ON s.id = o.series_id WHERE o.id = $1 FOR SHARE OF s) AS kept
WHERE r.id = $1 AND r.series_id = kept.id AND r.owner = $2 AND r.deleted_at IS NULL AND NOT r.enabled RETURNING r.id

-- name: rule_disable
-- Turns a rule off.
UPDATE rule SET enabled = false WHERE id = $1 AND owner = $2 AND deleted_at IS NULL AND enabled RETURNING id

-- name: rule_remove
-- Removes a rule; the posts it has made stay.
UPDATE rule SET deleted_at = imprint_now(), enabled = false
WHERE id = $1 AND owner = $2 AND deleted_at IS NULL RETURNING id

-- name: rule_waiting
-- The chapters of a series that its rules have not made a post of yet, the first first.
SELECT r.id AS rule_id, c.id AS chapter_id FROM rule r
JOIN chapter c ON c.series_id = r.series_id AND NOT c.silent AND c.first_seen_at > r.since
WHERE r.series_id = $1 AND r.enabled AND r.deleted_at IS NULL
  AND NOT EXISTS (SELECT FROM announcement n WHERE n.rule_id = r.id AND n.chapter_id = c.id)
ORDER BY r.created_at, r.id, c.season NULLS FIRST, c.number NULLS LAST, c.id

-- name: rule_take
-- Keeps a rule for one announcement at a time and says what its posts are to be; no row when it is off.
SELECT r.owner, r.title, r.body, r.tags, r.delay, r.zone,
    -- An account that is gone or not wanted does not keep the post from the others.
    array(SELECT a.id FROM rule_account ra JOIN account a ON a.id = ra.account_id
          WHERE ra.rule_id = r.id AND a.deleted_at IS NULL AND a.status <> 'disabled' ORDER BY a.id)::uuid[] AS accounts
FROM rule r WHERE r.id = $1 AND r.enabled AND r.deleted_at IS NULL FOR NO KEY UPDATE

-- name: rule_chapter
-- A chapter as a rule tells of it, unless the rule has done so already.
SELECT s.title AS series, c.kind, c.slug, c.number, c.number_end, c.title, r.url
FROM chapter c JOIN series s ON s.id = c.series_id AND s.deleted_at IS NULL
LEFT JOIN LATERAL (
    SELECT url FROM release WHERE release.chapter_id = c.id AND url IS NOT NULL AND gone_at IS NULL
    ORDER BY first_seen_at, source_id, own_id LIMIT 1
) r ON true
WHERE c.id = $2 AND NOT EXISTS (SELECT FROM announcement n WHERE n.rule_id = $1 AND n.chapter_id = c.id)

-- name: rule_announced
-- Notes which post a rule has made of a chapter.
INSERT INTO announcement (rule_id, chapter_id, post_id) VALUES ($1, $2, $3)

-- name: rule_forgotten
-- Series with chapters that a rule has made no post of and nobody will: their job came while another was just ending.
-- One whose job has failed for good is a dead letter, and a person's to decide.
SELECT DISTINCT r.series_id AS id FROM rule r
JOIN chapter c ON c.series_id = r.series_id AND NOT c.silent AND c.first_seen_at > r.since
WHERE r.enabled AND r.deleted_at IS NULL AND c.first_seen_at < imprint_now() - interval '30 s'
  AND NOT EXISTS (SELECT FROM announcement n WHERE n.rule_id = r.id AND n.chapter_id = c.id)
  AND NOT EXISTS (SELECT FROM pgqueuer q WHERE q.entrypoint = 'announce' AND q.status = 'failed'
                    AND q.payload = convert_to(r.series_id::text, 'UTF8'))
