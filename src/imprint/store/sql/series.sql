-- name: series_add
-- Adds a series.
INSERT INTO series (owner, title, title_given) VALUES ($1, $2, $3) RETURNING id

-- name: series_place_lock
-- Lets one at a time add a place, so that the same one is not added twice.
SELECT pg_advisory_xact_lock(hashtextextended($1, 7)) IS NULL AS locked

-- name: series_at
-- The series of a person that is carried at a place already.
SELECT r.id, r.title FROM source s JOIN series r ON r.id = s.series_id
WHERE s.kind = $2 AND md5(s.ref) = md5($3) AND s.deleted_at IS NULL AND r.owner = $1 AND r.deleted_at IS NULL LIMIT 1

-- name: series_list
-- The series of a person: all or one, or those that a person follows, each with how much of it there is to read.
SELECT r.id, r.title, r.latest_chapter, r.latest_at, r.created_at, f.person IS NOT NULL AS followed,
    coalesce(f.notify, false) AS notify, f.preferred_source,
    (SELECT count(*) FROM chapter c WHERE c.series_id = r.id) AS chapters,
    (SELECT count(*) FROM chapter c WHERE c.series_id = r.id AND c.kind <> 'notice'
       AND NOT EXISTS (SELECT FROM chapter_read d WHERE d.person = $2 AND d.chapter_id = c.id)) AS unread,
    (SELECT count(*) FROM source s WHERE s.series_id = r.id AND s.deleted_at IS NULL) AS sources,
    (SELECT count(*) FROM source s WHERE s.series_id = r.id AND s.deleted_at IS NULL AND s.error IS NOT NULL) AS failing,
    r.owner = $1 AS mine
FROM series r LEFT JOIN follow f ON f.series_id = r.id AND f.person = $2
WHERE (r.owner = $1 OR f.person IS NOT NULL) AND r.deleted_at IS NULL AND ($3::uuid IS NULL OR r.id = $3)
  AND ($4::boolean IS NOT TRUE OR f.person IS NOT NULL)
ORDER BY r.title, r.created_at, r.id

-- name: series_page
-- The series of a person and those they follow, the newest first, a page at a time; with these words in their title.
SELECT r.id, r.title, r.latest_chapter, r.latest_at, r.created_at, f.person IS NOT NULL AS followed,
    coalesce(f.notify, false) AS notify, f.preferred_source,
    (SELECT count(*) FROM chapter c WHERE c.series_id = r.id) AS chapters,
    (SELECT count(*) FROM chapter c WHERE c.series_id = r.id AND c.kind <> 'notice'
       AND NOT EXISTS (SELECT FROM chapter_read d WHERE d.person = $1 AND d.chapter_id = c.id)) AS unread,
    (SELECT count(*) FROM source s WHERE s.series_id = r.id AND s.deleted_at IS NULL) AS sources,
    (SELECT count(*) FROM source s WHERE s.series_id = r.id AND s.deleted_at IS NULL AND s.error IS NOT NULL) AS failing,
    r.owner = $1 AS mine
FROM series r LEFT JOIN follow f ON f.series_id = r.id AND f.person = $1
WHERE r.id IN (SELECT id FROM series WHERE owner = $1 UNION SELECT series_id FROM follow WHERE person = $1)
  AND r.deleted_at IS NULL AND (NOT $2::boolean OR f.person IS NOT NULL)
  AND ($3::text IS NULL OR strpos(lower(r.title), lower($3)) > 0) AND (r.created_at, r.id) < ($4::timestamptz, $5::uuid)
ORDER BY r.created_at DESC, r.id DESC LIMIT $6

-- name: series_found
-- Series of a person with this title, or with an id that begins so.
SELECT r.id, r.title AS name, lower(r.title) = lower($2) OR r.id::text = $2 AS exact FROM series r
WHERE (r.owner = $1 OR EXISTS (SELECT FROM follow f WHERE f.series_id = r.id AND f.person = $1)) AND r.deleted_at IS NULL
  AND (lower(r.title) = lower($2) OR starts_with(r.id::text, lower($2))) ORDER BY exact DESC, r.created_at, r.id LIMIT 6

-- name: series_chapters
-- The chapters of a series that a person has or follows, the latest first, a page at a time: those that come after a
-- chapter, or one, each with where it can be read and whether the person has read it.
SELECT c.id, c.slug, c.kind, c.number, c.number_end, c.volume, c.season, c.version, c.title, c.first_seen_at,
    c.silent, d.read_at,
    (SELECT count(*) FROM release r WHERE r.chapter_id = c.id AND r.gone_at IS NULL) AS releases,
    (SELECT r.url FROM release r WHERE r.chapter_id = c.id AND r.url IS NOT NULL
     ORDER BY r.gone_at IS NOT NULL, r.source_id IS DISTINCT FROM f.preferred_source, r.first_seen_at, r.own_id LIMIT 1) AS url
FROM chapter c LEFT JOIN chapter_read d ON d.person = $2 AND d.chapter_id = c.id
LEFT JOIN follow f ON f.series_id = c.series_id AND f.person = $2
WHERE c.series_id = $1 AND ($5::bigint IS NULL OR c.id = $5)
  AND EXISTS (SELECT FROM series s WHERE s.id = $1 AND s.deleted_at IS NULL AND (s.owner = $2 OR f.person IS NOT NULL))
  AND ($4::bigint IS NULL OR (coalesce(c.season, -1), coalesce(c.number, -1), c.id) < (
      SELECT coalesce(o.season, -1), coalesce(o.number, -1), o.id FROM chapter o WHERE o.id = $4 AND o.series_id = $1))
ORDER BY coalesce(c.season, -1) DESC, coalesce(c.number, -1) DESC, c.id DESC LIMIT $3

-- name: series_releases
-- Where chapters can be read: their releases that are still there, each with its source.
SELECT e.chapter_id, e.source_id, s.name AS source, s.kind, e.url, e.title, e.language, e.group_name, e.external,
    e.published_at, e.first_seen_at
FROM release e JOIN source s ON s.id = e.source_id
WHERE e.chapter_id = ANY ($1::bigint[]) AND e.gone_at IS NULL ORDER BY e.chapter_id, e.first_seen_at, s.name, e.own_id

-- name: series_lock
-- A series of a person, kept as it is until the transaction ends.
SELECT id, title FROM series WHERE id = $1 AND owner = $2 AND deleted_at IS NULL FOR NO KEY UPDATE

-- name: series_rename
-- Gives a series the title that a person chose.
UPDATE series SET title = $2, title_given = true WHERE id = $1 AND deleted_at IS NULL RETURNING id

-- name: series_remove
-- Removes a series with its sources, softly; who asks one of them at this moment has lost it.
WITH gone AS (
    UPDATE series SET deleted_at = imprint_now() WHERE id = $1 AND deleted_at IS NULL RETURNING id
), silenced AS (
    UPDATE source SET deleted_at = imprint_now(), lease_until = NULL, fence = fence + 1
    FROM gone WHERE series_id = gone.id AND source.deleted_at IS NULL
)
SELECT id FROM gone

-- name: series_follow
-- Puts a series of a person into their library, or changes how it stands there; one of somebody else is changed only.
INSERT INTO follow (person, series_id, notify, preferred_source)
SELECT $1, s.id, coalesce($3::boolean, true), $4::uuid FROM series s WHERE s.id = $2 AND s.deleted_at IS NULL
  AND (s.owner = $1 OR EXISTS (SELECT FROM follow f WHERE f.series_id = s.id AND f.person = $1))
ON CONFLICT (person, series_id) DO UPDATE SET notify = coalesce($3, follow.notify),
    preferred_source = coalesce($4, follow.preferred_source)
RETURNING series_id AS id

-- name: series_unfollow
-- Takes a series out of a person's library; what was read stays known.
DELETE FROM follow WHERE person = $1 AND series_id = $2 RETURNING series_id AS id

-- name: series_seen
-- A series that a person has or follows.
SELECT s.id FROM series s WHERE s.id = $1 AND s.deleted_at IS NULL
  AND (s.owner = $2 OR EXISTS (SELECT FROM follow f WHERE f.series_id = s.id AND f.person = $2))

-- name: series_read
-- A person has read chapters: of these slugs, or up to a number, or all there are.
INSERT INTO chapter_read (person, chapter_id)
SELECT $1, id FROM chapter
WHERE series_id = $2 AND ($3::text[] IS NULL OR slug = ANY ($3)) AND ($4::numeric IS NULL OR coalesce(number_end, number) <= $4)
ON CONFLICT (person, chapter_id) DO NOTHING
RETURNING chapter_id AS id

-- name: series_unread
-- A person has not read chapters after all: of these slugs, or all there are.
DELETE FROM chapter_read d USING chapter c
WHERE d.person = $1 AND c.id = d.chapter_id AND c.series_id = $2 AND ($3::text[] IS NULL OR c.slug = ANY ($3))
RETURNING d.chapter_id AS id

-- name: series_notices_read
-- The notices of chapters that a person has read need no longer be looked at.
UPDATE notice n SET read_at = imprint_now() FROM chapter_read d
WHERE n.person = $1 AND n.series_id = $2 AND n.read_at IS NULL AND d.person = n.person AND d.chapter_id = n.chapter_id
