-- Posts as people write them, their files, their schedules; accounts and what they sign in with.

-- late_hours: how late `publish` still publishes; NULL is what the settings say. zone: in which the person thinks.
-- revision grows with every change of what would be sent, so that what was made of an older one can be told apart.
ALTER TABLE post
    ADD COLUMN owner text NOT NULL DEFAULT 'operator' CHECK (length(owner) BETWEEN 1 AND 200),
    ADD COLUMN kind text NOT NULL DEFAULT 'artwork' CHECK (kind IN ('artwork', 'article')),
    ADD COLUMN description text NOT NULL DEFAULT '' CHECK (length(description) <= 200000),
    ADD COLUMN body text NOT NULL DEFAULT '' CHECK (length(body) <= 1000000),
    ADD COLUMN tags text[] NOT NULL DEFAULT '{}',
    ADD COLUMN category_path text CHECK (length(category_path) BETWEEN 1 AND 500),
    ADD COLUMN is_mature boolean NOT NULL DEFAULT false,
    ADD COLUMN mature_level text CHECK (mature_level IN ('strict', 'moderate')),
    ADD COLUMN mature_classification text[] NOT NULL DEFAULT '{}',
    ADD COLUMN gallery_ids text[] NOT NULL DEFAULT '{}',
    ADD COLUMN allow_comments boolean NOT NULL DEFAULT true,
    ADD COLUMN allow_free_download boolean NOT NULL DEFAULT false,
    ADD COLUMN is_ai_generated boolean NOT NULL DEFAULT false,
    ADD COLUMN no_ai boolean NOT NULL DEFAULT false,
    ADD COLUMN display_resolution smallint NOT NULL DEFAULT 0 CHECK (display_resolution BETWEEN 0 AND 8),
    ADD COLUMN upload_mode text NOT NULL DEFAULT 'single' CHECK (upload_mode IN ('single', 'multiple')),
    ADD COLUMN overrides jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(overrides) = 'object'),
    ADD COLUMN late_policy text NOT NULL DEFAULT 'publish' CHECK (late_policy IN ('publish', 'skip', 'ask')),
    ADD COLUMN late_hours integer CHECK (late_hours BETWEEN 0 AND 8784),
    ADD COLUMN zone text NOT NULL DEFAULT 'UTC' CHECK (length(zone) BETWEEN 1 AND 64),
    ADD COLUMN revision integer NOT NULL DEFAULT 1,
    ADD COLUMN edited_at timestamptz NOT NULL DEFAULT imprint_now(),
    ADD CONSTRAINT post_title_is_short CHECK (length(title) <= 500),
    ADD CONSTRAINT post_tags_are_words
        CHECK (cardinality(tags) <= 100 AND array_position(tags, '') IS NULL AND array_position(tags, NULL) IS NULL),
    ADD CONSTRAINT post_galleries_are_named CHECK (cardinality(gallery_ids) <= 100
        AND array_position(gallery_ids, '') IS NULL AND array_position(gallery_ids, NULL) IS NULL),
    ADD CONSTRAINT post_classification_is_known
        CHECK (mature_classification <@ ARRAY['nudity', 'sexual', 'gore', 'language', 'ideology']),
    ADD CONSTRAINT post_mature_or_not
        CHECK (is_mature OR (mature_level IS NULL AND cardinality(mature_classification) = 0));
CREATE INDEX post_by_time ON post (owner, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX post_by_status ON post (owner, status, created_at, id) WHERE deleted_at IS NULL;

-- The files of a post, in order. A file that was taken off stays as a row: a publication may have been of it.
CREATE TABLE post_file (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    post_id uuid NOT NULL REFERENCES post,
    content_id uuid NOT NULL REFERENCES content,
    position integer NOT NULL CHECK (position >= 0),
    alt text NOT NULL DEFAULT '' CHECK (length(alt) <= 5000),
    created_at timestamptz NOT NULL DEFAULT imprint_now(),
    deleted_at timestamptz,
    UNIQUE (id, post_id),
    -- Deferred: while files change places two may stand on the same one.
    CONSTRAINT post_file_place EXCLUDE USING btree (post_id WITH =, position WITH =) WHERE (deleted_at IS NULL)
        DEFERRABLE INITIALLY DEFERRED
);
CREATE UNIQUE INDEX post_file_once ON post_file (post_id, content_id) WHERE deleted_at IS NULL;
CREATE INDEX post_file_of_content ON post_file (content_id);

-- scheduled_at, zone, jitter_seconds: what the person asked for and what chance added; due_at is never before both.
-- file_id: which file, when a post is published one file at a time. deleted_at: it failed, and nobody wants it any more.
-- snapshot: exactly what was about to be sent when the intent was made, as canonical JSON, and its hash.
ALTER TABLE publication
    ADD COLUMN file_id uuid,
    ADD COLUMN scheduled_at timestamptz,
    ADD COLUMN zone text CHECK (length(zone) BETWEEN 1 AND 64),
    ADD COLUMN jitter_seconds integer NOT NULL DEFAULT 0 CHECK (jitter_seconds BETWEEN 0 AND 86400),
    ADD COLUMN deleted_at timestamptz,
    ADD COLUMN snapshot text,
    ADD COLUMN snapshot_sha256 text,
    ADD CONSTRAINT publication_file_of_its_post FOREIGN KEY (file_id, post_id) REFERENCES post_file (id, post_id),
    ADD CONSTRAINT publication_never_early
        CHECK (scheduled_at IS NULL OR due_at >= scheduled_at + make_interval(secs => jitter_seconds)),
    ADD CONSTRAINT publication_deleted_when_over CHECK (deleted_at IS NULL OR status IN ('failed', 'cancelled')),
    ADD CONSTRAINT publication_snapshot_is_whole CHECK ((snapshot IS NULL) = (snapshot_sha256 IS NULL)
        AND (snapshot IS NULL OR snapshot_sha256 = encode(sha256(convert_to(snapshot, 'UTF8')), 'hex')));
-- Once: whatever the code does, a post, or one file of it, has one publication on an account that is out or may come out.
CREATE UNIQUE INDEX publication_once ON publication (post_id, account_id, coalesce(file_id, post_id))
    WHERE status <> 'cancelled' AND deleted_at IS NULL;

-- As before, but what nobody wants any more is not counted.
CREATE OR REPLACE FUNCTION post_projection(of_post uuid) RETURNS text LANGUAGE plpgsql STABLE SET search_path = public, pg_temp AS $$
BEGIN
    RETURN (SELECT CASE WHEN bool_or(status = 'running' AND phase = 'publishing') THEN 'publishing'
                        WHEN bool_or(status = 'running') THEN 'uploading'
                        WHEN bool_or(status = 'pending') THEN 'scheduled'
                        WHEN bool_or(status IN ('failed', 'unknown')) THEN 'failed'
                        WHEN bool_or(status = 'success') THEN 'published'
                        WHEN count(*) > 0 THEN 'draft' END
            FROM publication WHERE post_id = of_post AND deleted_at IS NULL);
END $$;
CREATE TRIGGER post_follow_dismissal AFTER UPDATE ON publication
    FOR EACH ROW WHEN (OLD.deleted_at IS DISTINCT FROM NEW.deleted_at) EXECUTE FUNCTION post_follow();
ALTER TABLE publication ENABLE ALWAYS TRIGGER post_follow_dismissal;

-- What is out stays as it is, and so does what a worker has in its hands or what may be out: nobody could say
-- otherwise what was sent. The post's row is locked before it is asked, and an intent locks it too.
CREATE FUNCTION post_refuse_frozen(of_post uuid) RETURNS void LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
    stands text;
BEGIN
    SELECT status INTO stands FROM post WHERE id = of_post FOR NO KEY UPDATE;
    IF stands = 'published' OR EXISTS (
        SELECT FROM publication WHERE post_id = of_post AND status IN ('running', 'unknown')) THEN
        RAISE EXCEPTION 'a post that is out, on its way or unknown cannot be changed'
            USING ERRCODE = 'check_violation', TABLE = 'post', CONSTRAINT = 'post_frozen';
    END IF;
END $$;
CREATE FUNCTION post_changed() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM post_refuse_frozen(NEW.id);
    NEW.revision := OLD.revision + 1;
    NEW.edited_at := imprint_now();
    RETURN NEW;
END $$;
CREATE TRIGGER post_changed BEFORE UPDATE ON post FOR EACH ROW
    WHEN ((OLD.kind, OLD.title, OLD.description, OLD.body, OLD.tags, OLD.category_path, OLD.is_mature, OLD.mature_level,
           OLD.mature_classification, OLD.gallery_ids, OLD.allow_comments, OLD.allow_free_download, OLD.is_ai_generated,
           OLD.no_ai, OLD.display_resolution, OLD.upload_mode, OLD.overrides)
        IS DISTINCT FROM
          (NEW.kind, NEW.title, NEW.description, NEW.body, NEW.tags, NEW.category_path, NEW.is_mature, NEW.mature_level,
           NEW.mature_classification, NEW.gallery_ids, NEW.allow_comments, NEW.allow_free_download, NEW.is_ai_generated,
           NEW.no_ai, NEW.display_resolution, NEW.upload_mode, NEW.overrides))
    EXECUTE FUNCTION post_changed();
CREATE FUNCTION post_file_changed() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'a file is taken off a post, its row is not deleted'
            USING ERRCODE = 'check_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'post_file_stays';
    END IF;
    IF TG_OP = 'UPDATE' AND (OLD.post_id <> NEW.post_id OR OLD.content_id <> NEW.content_id) THEN
        RAISE EXCEPTION 'a file of a post belongs to that post for good'
            USING ERRCODE = 'check_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'post_file_stays';
    END IF;
    PERFORM post_refuse_frozen(NEW.post_id);
    UPDATE post SET revision = revision + 1, edited_at = imprint_now() WHERE id = NEW.post_id;
    RETURN NEW;
END $$;
CREATE TRIGGER post_file_changed BEFORE INSERT OR UPDATE OR DELETE ON post_file
    FOR EACH ROW EXECUTE FUNCTION post_file_changed();

-- A deleted post has nothing on its way, and nothing new is planned for it.
CREATE FUNCTION post_gone() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM publication WHERE post_id = NEW.id AND status IN ('pending', 'running', 'unknown')) THEN
        RAISE EXCEPTION 'a post of which something waits, runs or is unknown cannot be deleted'
            USING ERRCODE = 'check_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'post_gone';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER post_gone AFTER UPDATE ON post FOR EACH ROW
    WHEN (OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL) EXECUTE FUNCTION post_gone();
-- After post_follow_…, by its name: the post's row is locked by then, so that this look is the last word.
CREATE FUNCTION publication_of_live_post() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    IF (SELECT deleted_at FROM post WHERE id = NEW.post_id) IS NOT NULL THEN
        RAISE EXCEPTION 'a deleted post cannot be scheduled'
            USING ERRCODE = 'check_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'publication_of_live_post';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER publication_of_live_post_begin AFTER INSERT ON publication
    FOR EACH ROW EXECUTE FUNCTION publication_of_live_post();
CREATE TRIGGER publication_of_live_post_again AFTER UPDATE ON publication FOR EACH ROW
    WHEN (NEW.status = 'pending' AND OLD.status IN ('failed', 'unknown')) EXECUTE FUNCTION publication_of_live_post();

-- What was about to be sent is written down once for each intent and not touched again.
CREATE FUNCTION publication_snapshot_stays() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'what was sent cannot be written anew'
        USING ERRCODE = 'check_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'publication_snapshot_stays';
END $$;
CREATE TRIGGER publication_snapshot_stays BEFORE UPDATE ON publication FOR EACH ROW
    WHEN (OLD.intent_at IS NOT NULL AND OLD.intent_at = NEW.intent_at
          AND OLD.snapshot_sha256 IS DISTINCT FROM NEW.snapshot_sha256 AND OLD.snapshot_sha256 IS NOT NULL)
    EXECUTE FUNCTION publication_snapshot_stays();

-- label: what the person calls it. trouble: why it wants to be signed in again, in a sentence; empty when it is well.
ALTER TABLE account
    ADD COLUMN owner text NOT NULL DEFAULT 'operator' CHECK (length(owner) BETWEEN 1 AND 200),
    ADD COLUMN label text CHECK (length(label) BETWEEN 1 AND 100),
    ADD COLUMN is_default boolean NOT NULL DEFAULT false,
    ADD COLUMN trouble_code text CHECK (length(trouble_code) <= 100),
    ADD COLUMN trouble text CHECK (length(trouble) <= 1000),
    ADD CONSTRAINT account_default_is_there CHECK (NOT is_default OR deleted_at IS NULL),
    ADD CONSTRAINT account_connected_is_well CHECK (status <> 'connected' OR (trouble IS NULL AND trouble_code IS NULL));
CREATE UNIQUE INDEX account_label ON account (owner, label) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX account_default ON account (owner) WHERE is_default;
-- The same login twice would let one post go out twice on it.
CREATE UNIQUE INDEX account_once ON account (owner, platform, name) WHERE deleted_at IS NULL AND label IS NOT NULL;

-- An account that something still waits for is not removed.
CREATE FUNCTION account_gone() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM publication WHERE account_id = NEW.id AND status IN ('pending', 'running', 'unknown')) THEN
        RAISE EXCEPTION 'an account of which something waits, runs or is unknown cannot be removed'
            USING ERRCODE = 'check_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'account_gone';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER account_gone AFTER UPDATE ON account FOR EACH ROW
    WHEN (OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL) EXECUTE FUNCTION account_gone();

-- What an account signs in with, sealed with a key that is not in the database. version grows with each sign-in and
-- each renewal. renewal, renewal_until: somebody is about to use the refresh token; whoever dies in between leaves the
-- mark behind, and the next one knows that the token may be used up.
CREATE TABLE credential (
    account_id uuid PRIMARY KEY REFERENCES account,
    key_id text NOT NULL CHECK (key_id ~ '^[0-9a-f]{16}$'),
    nonce bytea NOT NULL CHECK (length(nonce) = 12),
    sealed bytea NOT NULL CHECK (length(sealed) >= 16),
    expires_at timestamptz,
    renewable_until timestamptz,
    version bigint NOT NULL DEFAULT 1,
    renewal uuid,
    renewal_until timestamptz,
    changed_at timestamptz NOT NULL DEFAULT imprint_now(),
    CONSTRAINT credential_renewal_ends CHECK ((renewal IS NULL) = (renewal_until IS NULL))
);
CREATE INDEX credential_by_key ON credential (key_id, account_id);

-- A person who was sent to a platform and has not come back yet; found by the hash of the state in the address.
CREATE TABLE errand (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    state_sha256 text NOT NULL UNIQUE CHECK (state_sha256 ~ '^[0-9a-f]{64}$'),
    owner text NOT NULL CHECK (length(owner) BETWEEN 1 AND 200),
    platform text NOT NULL,
    label text CHECK (length(label) BETWEEN 1 AND 100),
    account_id uuid REFERENCES account,
    key_id text NOT NULL CHECK (key_id ~ '^[0-9a-f]{16}$'),
    nonce bytea NOT NULL CHECK (length(nonce) = 12),
    sealed bytea NOT NULL CHECK (length(sealed) >= 16),
    expires_at timestamptz NOT NULL
);

-- Sign-ins that would end because nothing was published for long are renewed in time.
INSERT INTO chore (name, every) VALUES ('sign-ins', interval '6 hours');

ALTER TABLE post ENABLE ALWAYS TRIGGER post_changed;
ALTER TABLE post ENABLE ALWAYS TRIGGER post_gone;
ALTER TABLE post_file ENABLE ALWAYS TRIGGER post_file_changed;
ALTER TABLE publication ENABLE ALWAYS TRIGGER publication_of_live_post_begin;
ALTER TABLE publication ENABLE ALWAYS TRIGGER publication_of_live_post_again;
ALTER TABLE publication ENABLE ALWAYS TRIGGER publication_snapshot_stays;
ALTER TABLE account ENABLE ALWAYS TRIGGER account_gone;
