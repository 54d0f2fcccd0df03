-- The seven things that have a lifecycle. Later migrations add what each use case needs.

CREATE TABLE post (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    title text NOT NULL DEFAULT '',
    status text NOT NULL,
    status_at timestamptz NOT NULL DEFAULT imprint_now(),
    created_at timestamptz NOT NULL DEFAULT imprint_now(),
    deleted_at timestamptz
);

CREATE TABLE account (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    platform text NOT NULL,
    name text NOT NULL,
    status text NOT NULL,
    status_at timestamptz NOT NULL DEFAULT imprint_now(),
    created_at timestamptz NOT NULL DEFAULT imprint_now(),
    deleted_at timestamptz
);

-- held_until: the clock leaves a pending or unknown row alone until then, because it is in the queue, its circuit is
-- open or its account is busy. look_at: when somebody looks whether an unknown one is out; NULL when only a person can
-- tell. wake_at: when the clock must look at the row; made by the database, so it cannot disagree with the columns it
-- comes from.
CREATE TABLE publication (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    post_id uuid NOT NULL REFERENCES post,
    account_id uuid NOT NULL REFERENCES account,
    status text NOT NULL,
    status_at timestamptz NOT NULL DEFAULT imprint_now(),
    due_at timestamptz NOT NULL,
    held_until timestamptz,
    phase text CHECK (phase IN ('uploading', 'publishing')),
    fence bigint NOT NULL DEFAULT 0,
    lease_until timestamptz,
    crashes integer NOT NULL DEFAULT 0,
    intent_at timestamptz,
    look_at timestamptz,
    remote_id text,
    error_code text,
    created_at timestamptz NOT NULL DEFAULT imprint_now(),
    wake_at timestamptz GENERATED ALWAYS AS (
        CASE WHEN status = 'pending' THEN greatest(due_at, held_until)
             WHEN status = 'running' THEN lease_until
             WHEN status = 'unknown' AND look_at IS NOT NULL THEN greatest(look_at, held_until) END
    ) STORED,
    -- The publishing phase begins with the intent: what is in it can no longer be cancelled.
    CONSTRAINT publication_publishing_needs_intent CHECK (phase <> 'publishing' OR intent_at IS NOT NULL)
);
CREATE INDEX publication_of_post ON publication (post_id);
CREATE INDEX publication_due ON publication (wake_at) WHERE status = 'pending';
CREATE INDEX publication_due_on_account ON publication (account_id, due_at) WHERE status = 'pending';
CREATE INDEX publication_leased ON publication (wake_at) WHERE status = 'running';
CREATE INDEX publication_unknown ON publication (wake_at) WHERE status = 'unknown';
-- One at a time per account, whatever the code does.
CREATE UNIQUE INDEX publication_running_on_account ON publication (account_id) WHERE status = 'running';

CREATE TABLE content (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    name text NOT NULL DEFAULT '',
    status text NOT NULL,
    status_at timestamptz NOT NULL DEFAULT imprint_now(),
    error_code text,
    created_at timestamptz NOT NULL DEFAULT imprint_now(),
    deleted_at timestamptz
);

CREATE TABLE object (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    content_id uuid NOT NULL REFERENCES content,
    status text NOT NULL,
    status_at timestamptz NOT NULL DEFAULT imprint_now(),
    error_code text,
    created_at timestamptz NOT NULL DEFAULT imprint_now(),
    deleted_at timestamptz
);
CREATE INDEX object_of_content ON object (content_id);

CREATE TABLE derivation (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    parent_id uuid NOT NULL REFERENCES content,
    variant text NOT NULL,
    recipe_version integer NOT NULL,
    status text NOT NULL,
    status_at timestamptz NOT NULL DEFAULT imprint_now(),
    error_code text,
    created_at timestamptz NOT NULL DEFAULT imprint_now(),
    UNIQUE (parent_id, variant, recipe_version)
);

CREATE TABLE source (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    name text NOT NULL,
    status text NOT NULL,
    status_at timestamptz NOT NULL DEFAULT imprint_now(),
    next_check_at timestamptz NOT NULL DEFAULT imprint_now(),
    held_until timestamptz,
    fence bigint NOT NULL DEFAULT 0,
    lease_until timestamptz,
    crashes integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT imprint_now(),
    deleted_at timestamptz,
    wake_at timestamptz GENERATED ALWAYS AS (
        CASE WHEN lease_until IS NOT NULL THEN lease_until
             WHEN status <> 'disabled' AND deleted_at IS NULL THEN greatest(next_check_at, held_until) END
    ) STORED
);
CREATE INDEX source_due ON source (wake_at) WHERE lease_until IS NULL;
CREATE INDEX source_leased ON source (wake_at) WHERE lease_until IS NOT NULL;

-- What its publications make of a post; NULL when it has none.
CREATE FUNCTION post_projection(of_post uuid) RETURNS text LANGUAGE plpgsql STABLE SET search_path = public, pg_temp AS $$
BEGIN
    RETURN (SELECT CASE WHEN bool_or(status = 'running' AND phase = 'publishing') THEN 'publishing'
                        WHEN bool_or(status = 'running') THEN 'uploading'
                        WHEN bool_or(status = 'pending') THEN 'scheduled'
                        WHEN bool_or(status IN ('failed', 'unknown')) THEN 'failed'
                        WHEN bool_or(status = 'success') THEN 'published'
                        WHEN count(*) > 0 THEN 'draft' END
            FROM publication WHERE post_id = of_post);
END $$;

-- The post follows its publications, in the same transaction. The post's row is locked before its
-- publications are counted, so that two that end at the same moment cannot both look past each other.
-- Locked for no key update: an insert of a publication already shares the post's key with other inserts,
-- and two of them that each wanted more than that would wait for each other.
CREATE FUNCTION post_follow() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
    followed uuid := coalesce(NEW.post_id, OLD.post_id);
    now_is text;
    shall_be text;
BEGIN
    SELECT status INTO now_is FROM post WHERE id = followed FOR NO KEY UPDATE;
    -- Asked in a statement of its own, which sees what others have committed while this one waited for the lock.
    SELECT coalesce(post_projection(followed), 'draft') INTO shall_be;
    -- A post that a person took back stays with the person until something of it is to go out again.
    IF shall_be = now_is OR (now_is IN ('review', 'draft') AND shall_be IN ('failed', 'published', 'draft')) THEN
        RETURN NULL;
    END IF;
    -- A running publication can be cancelled when another is out already; the post then stops uploading
    -- and is published, two moves that both exist.
    IF now_is = 'uploading' AND shall_be = 'published' THEN
        UPDATE post SET status = 'scheduled' WHERE id = followed;
    END IF;
    UPDATE post SET status = shall_be WHERE id = followed;
    RETURN NULL;
END $$;
CREATE TRIGGER post_follow_begin AFTER INSERT OR DELETE ON publication
    FOR EACH ROW EXECUTE FUNCTION post_follow();
CREATE TRIGGER post_follow_move AFTER UPDATE ON publication
    FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status OR OLD.phase IS DISTINCT FROM NEW.phase)
    EXECUTE FUNCTION post_follow();

-- Nobody moves a post past its publications: by hand it goes where they say, or, once nothing of it is waiting,
-- under way or unknown, back to its author. What may be out must not be changed and sent again.
CREATE FUNCTION post_agrees() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
    said text := post_projection(NEW.id);
BEGIN
    IF said IS NULL OR NEW.status = said OR NEW.status IN ('review', 'draft') AND NOT EXISTS (
        SELECT FROM publication WHERE post_id = NEW.id AND status IN ('pending', 'running', 'unknown')) THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'a post whose publications make it % cannot be made %', said, NEW.status
        USING ERRCODE = 'check_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'post_agrees';
END $$;
CREATE TRIGGER post_agrees AFTER UPDATE ON post FOR EACH ROW
    WHEN (OLD.status IS DISTINCT FROM NEW.status AND pg_trigger_depth() = 0) EXECUTE FUNCTION post_agrees();

-- A publication is one post on one account: it does not change sides, or one of two posts would not notice.
CREATE FUNCTION publication_stays() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'a publication belongs to one post on one account for good'
        USING ERRCODE = 'check_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'publication_stays';
END $$;
CREATE TRIGGER publication_stays BEFORE UPDATE OF post_id, account_id ON publication FOR EACH ROW
    WHEN (OLD.post_id <> NEW.post_id OR OLD.account_id <> NEW.account_id) EXECUTE FUNCTION publication_stays();

-- As the lifecycles' own: no session setting turns them off.
ALTER TABLE publication ENABLE ALWAYS TRIGGER post_follow_begin;
ALTER TABLE publication ENABLE ALWAYS TRIGGER post_follow_move;
ALTER TABLE publication ENABLE ALWAYS TRIGGER publication_stays;
ALTER TABLE post ENABLE ALWAYS TRIGGER post_agrees;

-- What may have left cannot be called back, and a fence never falls; a CHECK sees only the new row, this sees both.
CREATE FUNCTION publication_refuse() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'a publication that may have left cannot be cancelled, forgotten or deleted, and its fence never falls'
        USING ERRCODE = 'check_violation', TABLE = 'publication', CONSTRAINT = 'publication_refuse';
END $$;
CREATE TRIGGER publication_intent_stays BEFORE UPDATE ON publication
    FOR EACH ROW WHEN (NEW.fence < OLD.fence OR (OLD.intent_at IS NOT NULL AND NEW.intent_at IS NULL
        AND OLD.status = 'running' AND NEW.status IN ('running', 'cancelled')))
    EXECUTE FUNCTION publication_refuse();
CREATE TRIGGER publication_not_deleted BEFORE DELETE ON publication
    FOR EACH ROW WHEN (OLD.status IN ('running', 'unknown')) EXECUTE FUNCTION publication_refuse();
ALTER TABLE publication ENABLE ALWAYS TRIGGER publication_intent_stays;
ALTER TABLE publication ENABLE ALWAYS TRIGGER publication_not_deleted;

-- Times that a program can hold; only a pause may last for ever.
ALTER TABLE publication
    ADD CONSTRAINT publication_due_in_time CHECK (due_at BETWEEN '1970-01-01' AND '9999-01-01'),
    ADD CONSTRAINT publication_leased_in_time CHECK (lease_until BETWEEN '1970-01-01' AND '9999-01-01'),
    ADD CONSTRAINT publication_looked_in_time CHECK (look_at BETWEEN '1970-01-01' AND '9999-01-01'),
    ADD CONSTRAINT publication_held_in_time
        CHECK (held_until BETWEEN '1970-01-01' AND '9999-01-01' OR held_until = 'infinity');
ALTER TABLE source
    ADD CONSTRAINT source_due_in_time CHECK (next_check_at BETWEEN '1970-01-01' AND '9999-01-01'),
    ADD CONSTRAINT source_leased_in_time CHECK (lease_until BETWEEN '1970-01-01' AND '9999-01-01'),
    ADD CONSTRAINT source_held_in_time
        CHECK (held_until BETWEEN '1970-01-01' AND '9999-01-01' OR held_until = 'infinity');
