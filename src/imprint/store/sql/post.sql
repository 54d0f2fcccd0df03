-- name: post_create
-- Makes a post, in review.
INSERT INTO post (owner, kind, title, description, body, tags, category_path, is_mature, mature_level,
    mature_classification, gallery_ids, allow_comments, allow_free_download, is_ai_generated, no_ai, display_resolution,
    upload_mode, overrides, late_policy, late_hours, zone)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18::text::jsonb, $19, $20, $21)
RETURNING id

-- name: post_show
-- One post that is not deleted.
SELECT id, owner, kind, title, description, body, tags, category_path, is_mature, mature_level, mature_classification,
    gallery_ids, allow_comments, allow_free_download, is_ai_generated, no_ai, display_resolution, upload_mode,
    overrides::text AS overrides, late_policy, late_hours, zone, revision, status, status_at, created_at, edited_at
FROM post WHERE id = $1 AND owner = $2 AND deleted_at IS NULL

-- name: post_lock
-- One post that is not deleted, kept as it is until the transaction ends.
SELECT id, owner, kind, title, description, body, tags, category_path, is_mature, mature_level, mature_classification,
    gallery_ids, allow_comments, allow_free_download, is_ai_generated, no_ai, display_resolution, upload_mode,
    overrides::text AS overrides, late_policy, late_hours, zone, revision, status, status_at, created_at, edited_at
FROM post WHERE id = $1 AND owner = $2 AND deleted_at IS NULL FOR NO KEY UPDATE

-- name: post_found
-- Posts of a person whose id begins with these letters, six at most.
SELECT id, title AS name, $1::uuid = $2::uuid AS exact FROM post
WHERE id BETWEEN $1 AND $2 AND owner = $3 AND deleted_at IS NULL ORDER BY id LIMIT 6

-- name: post_list
-- Posts of a person, the newest first, a page at a time; of one state, or of all; each with its files and next time.
SELECT p.id, p.kind, p.title, p.status, p.status_at, p.created_at, p.zone,
    (SELECT count(*) FROM post_file f WHERE f.post_id = p.id AND f.deleted_at IS NULL) AS files,
    (SELECT count(*) FROM publication u WHERE u.post_id = p.id AND u.status = 'success') AS out,
    (SELECT min(u.due_at) FROM publication u WHERE u.post_id = p.id AND u.status = 'pending') AS next_at
FROM post p
WHERE p.owner = $1 AND p.deleted_at IS NULL AND ($2::text IS NULL OR p.status = $2)
  AND ($3::timestamptz IS NULL OR (p.created_at, p.id) < ($3, $4::uuid))
ORDER BY p.created_at DESC, p.id DESC LIMIT $5

-- name: post_counts
-- How many posts of a person there are in each state.
SELECT status, count(*) AS posts FROM post WHERE owner = $1 AND deleted_at IS NULL GROUP BY status ORDER BY status

-- name: post_edit
-- Writes what a person changed; the trigger refuses what is frozen.
UPDATE post SET kind = $3, title = $4, description = $5, body = $6, tags = $7, category_path = $8, is_mature = $9,
    mature_level = $10, mature_classification = $11, gallery_ids = $12, allow_comments = $13, allow_free_download = $14,
    is_ai_generated = $15, no_ai = $16, display_resolution = $17, upload_mode = $18, overrides = $19::text::jsonb,
    late_policy = $20, late_hours = $21, zone = $22
WHERE id = $1 AND owner = $2 AND deleted_at IS NULL
RETURNING id

-- name: post_files
-- The files of a post in their order, each with what is known of its bytes.
SELECT f.id, f.content_id, f.position, f.alt, c.name, o.store, o.key, o.size, o.sha256, o.content_type, o.width, o.height,
    -- A picture that no decoder can read is none to publish.
    c.deleted_at IS NULL AND o.sha256 IS NOT NULL AND o.purged_at IS NULL
        AND NOT (c.status = 'failed' AND coalesce(c.error_code, '') LIKE 'image.%') AS confirmed
FROM post_file f JOIN content c ON c.id = f.content_id
LEFT JOIN LATERAL (
    SELECT store, key, size, sha256, content_type, width, height, purged_at FROM object
    WHERE object.content_id = c.id AND object.variant IS NULL AND object.deleted_at IS NULL
    ORDER BY object.sha256 IS NULL, object.version DESC LIMIT 1
) o ON true
WHERE f.post_id = $1 AND f.deleted_at IS NULL ORDER BY f.position

-- name: post_publications
-- The publications of a post and the accounts they are on, the earliest first; those nobody wants any more left out.
SELECT u.id, u.account_id, a.platform, a.label, a.name, u.file_id, u.status, u.status_at, u.phase, u.scheduled_at, u.zone,
    u.jitter_seconds, u.due_at, coalesce(u.held_until = 'infinity', false) AS held, u.crashes, u.remote_id, u.error_code,
    u.url, u.published_at, u.attempts, u.held_why, nullif(u.held_until, 'infinity') AS held_until, u.look_at
FROM publication u JOIN account a ON a.id = u.account_id
WHERE u.post_id = $1 AND u.deleted_at IS NULL ORDER BY u.created_at, u.due_at, u.id

-- name: post_approve
-- A post in review is ready.
UPDATE post SET status = 'draft' WHERE id = $1 AND status = 'review' AND deleted_at IS NULL RETURNING id

-- name: post_reopen
-- A draft goes back into review.
UPDATE post SET status = 'review' WHERE id = $1 AND status = 'draft' AND deleted_at IS NULL RETURNING id

-- name: post_rework
-- A person takes a post that failed back, to change it.
UPDATE post SET status = 'draft' WHERE id = $1 AND status = 'failed' AND deleted_at IS NULL RETURNING id

-- name: post_copy
-- Makes another post of the same words, in review.
INSERT INTO post (owner, kind, title, description, body, tags, category_path, is_mature, mature_level,
    mature_classification, gallery_ids, allow_comments, allow_free_download, is_ai_generated, no_ai, display_resolution,
    upload_mode, overrides, late_policy, late_hours, zone)
SELECT owner, kind, title, description, body, tags, category_path, is_mature, mature_level,
    mature_classification, gallery_ids, allow_comments, allow_free_download, is_ai_generated, no_ai, display_resolution,
    upload_mode, overrides, late_policy, late_hours, zone
FROM post WHERE id = $1 AND owner = $2 AND deleted_at IS NULL
RETURNING id

-- name: post_copy_files
-- Gives a post the files of another one that are still there.
INSERT INTO post_file (post_id, content_id, position, alt)
SELECT $2, f.content_id, row_number() OVER (ORDER BY f.position) - 1, f.alt
FROM post_file f JOIN content c ON c.id = f.content_id AND c.deleted_at IS NULL
WHERE f.post_id = $1 AND f.deleted_at IS NULL

-- name: post_delete
-- Deletes a post, softly.
UPDATE post SET deleted_at = imprint_now() WHERE id = $1 AND deleted_at IS NULL RETURNING id

-- name: post_attach
-- Puts content of the same person at the end of a post's files; no row means that there is no such content.
INSERT INTO post_file (post_id, content_id, position, alt)
SELECT $1, c.id, (SELECT coalesce(max(position) + 1, 0) FROM post_file WHERE post_id = $1 AND deleted_at IS NULL), $4
FROM content c WHERE c.id = $2 AND c.owner = $3 AND c.deleted_at IS NULL
RETURNING id

-- name: post_detach
-- Takes a file off a post.
UPDATE post_file SET deleted_at = imprint_now() WHERE id = $1 AND post_id = $2 AND deleted_at IS NULL RETURNING id

-- name: post_place
-- Gives the files of a post the places they have in this list.
UPDATE post_file f SET position = wanted.place - 1
FROM unnest($2::uuid[]) WITH ORDINALITY AS wanted (id, place)
WHERE f.id = wanted.id AND f.post_id = $1 AND f.deleted_at IS NULL AND f.position <> wanted.place - 1
RETURNING f.id

-- name: post_describe
-- Says what can be seen in a file, for those who cannot see it.
UPDATE post_file SET alt = $3 WHERE id = $1 AND post_id = $2 AND deleted_at IS NULL RETURNING id

-- name: post_of_publication
-- What a publication would send now: the post, the account, and which file when it is one of several.
SELECT u.id AS publication_id, u.post_id, p.owner, u.account_id, a.platform, u.file_id
FROM publication u JOIN post p ON p.id = u.post_id JOIN account a ON a.id = u.account_id WHERE u.id = $1

-- name: post_pictures
-- The files of a post in their order: how far the content of each is, and whether its thumbnail can be shown.
SELECT f.id, c.status, c.error_code, c.status IN ('uploaded', 'processed', 'archived') AND c.deleted_at IS NULL
    AND EXISTS (SELECT FROM derivation d JOIN object o ON o.id = d.object_id WHERE d.parent_id = c.id
        AND d.variant = 'thumbnail' AND d.status = 'processed' AND d.deleted_at IS NULL AND o.purged_at IS NULL) AS thumbnail
FROM post_file f JOIN content c ON c.id = f.content_id
WHERE f.post_id = $1 AND f.deleted_at IS NULL ORDER BY f.position
