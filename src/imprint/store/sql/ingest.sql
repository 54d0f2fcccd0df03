-- name: ingest_begin
-- Keeps a series for one ingestion at a time and says where it stands; what follows is planned once, for any size.
SELECT id, latest_chapter, imprint_now() AS now, set_config('plan_cache_mode', 'force_generic_plan', true) AS plans,
    set_config('enable_nestloop', 'off', true) AS loops, set_config('enable_seqscan', 'off', true) AS scans,
    set_config('jit', 'off', true) AS jit
FROM series WHERE id = $1 AND deleted_at IS NULL FOR NO KEY UPDATE

-- name: ingest_chapters
-- Takes in any number of releases: their chapters, what is new of them, the latest number, the followers' notices. The
-- inserts themselves decide what is new; what was set aside of them before is forgotten.
WITH given AS MATERIALIZED (
    SELECT * FROM unnest($4::text[], $5::text[], $6::text[], $7::numeric[], $8::numeric[], $9::numeric[], $10::integer[],
        $11::integer[], $12::text[], $13::text[], $14::text[], $15::text[], $16::boolean[], $17::timestamptz[])
        AS g (own_id, slug, kind, number, number_end, volume, season, version, title, url, language, group_name, external,
              published_at)
), known AS MATERIALIZED (
    SELECT own_id FROM release WHERE source_id = $2 AND own_id = ANY ($4)
), had AS MATERIALIZED (
    SELECT id, slug FROM chapter WHERE series_id = $1 AND slug = ANY ($5)
), fresh AS (
    INSERT INTO chapter (series_id, slug, kind, number, number_end, volume, season, version, title, silent)
    SELECT DISTINCT ON (g.slug) $1, g.slug, g.kind, g.number, g.number_end, g.volume, g.season, g.version, g.title,
           -- Nothing to read; or an upload that was there before got another name; or a source is read for the first
           -- time, and this is not something that came out since the series is watched.
           g.kind = 'notice'
           OR NOT bool_or(known.own_id IS NULL) OVER same
           OR ($3 AND NOT coalesce(max(g.published_at) OVER same > series.watched_since
                                   AND g.number > series.latest_chapter, false))
    FROM given g JOIN series ON series.id = $1 LEFT JOIN known ON known.own_id = g.own_id
    WINDOW same AS (PARTITION BY g.slug)
    ORDER BY g.slug, g.title IS NULL, g.own_id
    ON CONFLICT (series_id, slug) DO NOTHING
    RETURNING id, slug, number, number_end, silent
), carried AS (
    INSERT INTO release AS r (source_id, own_id, chapter_id, url, title, language, group_name, external, published_at)
    SELECT $2, g.own_id, c.id, g.url, g.title, g.language, g.group_name, g.external, g.published_at
    FROM given g JOIN (SELECT id, slug FROM fresh UNION ALL SELECT id, slug FROM had) AS c ON c.slug = g.slug
    ON CONFLICT (source_id, own_id) DO UPDATE SET seen_at = imprint_now(), gone_at = NULL, chapter_id = excluded.chapter_id,
        url = excluded.url, title = excluded.title, language = excluded.language, group_name = excluded.group_name,
        external = excluded.external, published_at = coalesce(excluded.published_at, r.published_at)
    RETURNING r.xmax = 0 AS new
), told AS (
    INSERT INTO notice (person, series_id, chapter_id)
    SELECT follow.person, $1, fresh.id FROM fresh JOIN follow ON follow.series_id = $1 AND follow.notify
    WHERE NOT fresh.silent
    ON CONFLICT (person, chapter_id) DO NOTHING
    RETURNING id
), risen AS (
    UPDATE series SET latest_chapter = top.number, latest_at = imprint_now()
    FROM (SELECT max(coalesce(number_end, number)) AS number FROM fresh) AS top
    WHERE series.id = $1 AND top.number > coalesce(series.latest_chapter, -1)
), mended AS (
    DELETE FROM set_aside WHERE source_id = $2 AND item = ANY ($4)
)
SELECT (SELECT count(*) FROM fresh) AS chapters, (SELECT count(*) FROM fresh WHERE NOT silent) AS announced,
       (SELECT count(*) FROM carried WHERE new) AS releases, (SELECT count(*) FROM carried) AS carried,
       (SELECT count(*) FROM told) AS notices,
       (SELECT count(*) FROM rule WHERE series_id = $1 AND enabled AND deleted_at IS NULL) AS rules

-- name: ingest_complete
-- Fills in what is known of chapters only now: a volume, a title.
UPDATE chapter c SET volume = coalesce(c.volume, g.volume), title = coalesce(c.title, g.title)
FROM (SELECT slug, max(volume) AS volume, max(title) AS title
      FROM unnest($2::text[], $3::numeric[], $4::text[]) AS g (slug, volume, title) GROUP BY slug) AS g
WHERE c.series_id = $1 AND c.slug = ANY ($2) AND c.slug = g.slug
  AND (c.volume IS NULL AND g.volume IS NOT NULL OR c.title IS NULL AND g.title IS NOT NULL)

-- name: ingest_gone
-- Marks the releases that a source which lists everything no longer lists.
UPDATE release SET gone_at = imprint_now()
WHERE source_id = $1 AND gone_at IS NULL AND seen_at < $2 AND NOT own_id = ANY ($3::text[])

-- name: ingest_set_aside
-- Sets items aside that could not be taken in; the same again only counts, and there is an end to how many.
INSERT INTO set_aside AS s (source_id, item, data, error_code, error)
SELECT $1, g.item, g.data::jsonb, g.error_code, g.error
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[]) AS g (item, data, error_code, error)
WHERE (SELECT count(*) FROM set_aside WHERE source_id = $1) < 1000
ON CONFLICT (source_id, item) DO UPDATE SET seen_at = imprint_now(), times = s.times + 1, data = excluded.data,
    error_code = excluded.error_code, error = excluded.error
