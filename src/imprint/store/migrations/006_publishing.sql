-- Publishing: what each publication has been through, and what a worker needs to go on where another one stopped.

-- attempts: that counted, since a person last asked for it. left_at: when it first left without a trustworthy answer,
-- as long as nobody has shown that it is not out. made_at: the moment a platform is told; fixed for good.
-- looks: that found nothing. held_why: what it waits for, in one word. deadline: when its sender gives up at the latest.
ALTER TABLE publication
    ADD COLUMN attempts integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    ADD COLUMN left_at timestamptz,
    ADD COLUMN made_at timestamptz,
    ADD COLUMN looks integer NOT NULL DEFAULT 0 CHECK (looks >= 0),
    ADD COLUMN held_why text CHECK (length(held_why) <= 500),
    ADD COLUMN deadline timestamptz,
    ADD COLUMN url text CHECK (length(url) <= 5000),
    ADD COLUMN published_at timestamptz,
    ADD CONSTRAINT publication_intent_has_a_deadline CHECK (deadline IS NULL OR intent_at IS NOT NULL),
    ADD CONSTRAINT publication_published_when_out CHECK (published_at IS NULL OR status = 'success'),
    ADD CONSTRAINT publication_looked_for_when_unknown CHECK (look_at IS NULL OR status = 'unknown');
-- What an account has out: to tell one's own publications from each other when looking.
CREATE INDEX publication_out_on_account ON publication (account_id, published_at) WHERE status = 'success';

-- What may be out must not change, whatever state it waits in.
CREATE OR REPLACE FUNCTION post_refuse_frozen(of_post uuid) RETURNS void LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
    stands text;
BEGIN
    SELECT status INTO stands FROM post WHERE id = of_post FOR NO KEY UPDATE;
    IF stands = 'published' OR EXISTS (
        SELECT FROM publication WHERE post_id = of_post
          AND (status IN ('running', 'unknown') OR status = 'pending' AND left_at IS NOT NULL)) THEN
        RAISE EXCEPTION 'a post that is out, on its way or unknown cannot be changed'
            USING ERRCODE = 'check_violation', TABLE = 'post', CONSTRAINT = 'post_frozen';
    END IF;
END $$;

-- One try of one worker; the fence names it. What it was about to send is the publication's snapshot, here its hash.
-- drift: how long after its time it was begun.
CREATE TABLE attempt (
    publication_id uuid NOT NULL REFERENCES publication ON DELETE CASCADE,
    fence bigint NOT NULL,
    worker text,
    began_at timestamptz NOT NULL DEFAULT imprint_now(),
    drift interval,
    intent_at timestamptz,
    deadline timestamptz,
    request_sha256 text,
    ended_at timestamptz,
    outcome text CHECK (outcome IN ('published', 'refused', 'sign_in_again', 'not_yet', 'rate_limited', 'no_answer',
                                    'died', 'stopped')),
    code text CHECK (length(code) <= 200),
    sentence text CHECK (length(sentence) <= 2000),
    stage text,
    http_status integer,
    remote_id text,
    url text CHECK (length(url) <= 5000),
    PRIMARY KEY (publication_id, fence),
    CONSTRAINT attempt_ended_somehow CHECK ((ended_at IS NULL) = (outcome IS NULL)),
    CONSTRAINT attempt_published_has_an_id CHECK (outcome <> 'published' OR remote_id IS NOT NULL)
);
-- For the figures: how many ended how, how long they took, and how late they began.
CREATE INDEX attempt_ended ON attempt (ended_at) INCLUDE (outcome, began_at) WHERE ended_at IS NOT NULL;
CREATE INDEX attempt_began ON attempt (began_at) INCLUDE (drift);

-- A file that a platform has taken, so that the next try does not upload it again. What was uploaded for an older
-- revision of the post is not used for a newer one: platforms keep title and tags with the upload.
CREATE TABLE remote_file (
    publication_id uuid NOT NULL REFERENCES publication ON DELETE CASCADE,
    revision integer NOT NULL,
    sha256 text NOT NULL CHECK (sha256 ~ '^[0-9a-f]{64}$'),
    remote_id text NOT NULL,
    data text NOT NULL DEFAULT '',
    fence bigint NOT NULL,
    uploaded_at timestamptz NOT NULL DEFAULT imprint_now(),
    PRIMARY KEY (publication_id, revision, sha256)
);

-- The log of a publication: lines for people, with data for programs.
CREATE TABLE publication_log (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    publication_id uuid NOT NULL REFERENCES publication ON DELETE CASCADE,
    at timestamptz NOT NULL DEFAULT imprint_now(),
    kind text NOT NULL CHECK (length(kind) BETWEEN 1 AND 40),
    line text NOT NULL CHECK (length(line) <= 2000),
    data jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(data) = 'object')
);
CREATE INDEX publication_log_of ON publication_log (publication_id, id);
CREATE INDEX publication_log_alarms ON publication_log (at) WHERE kind = 'duplicate';

-- How far an upload has come; worth nothing after a crash, so it is not written to the disk.
CREATE UNLOGGED TABLE progress (
    publication_id uuid PRIMARY KEY,
    fence bigint NOT NULL,
    sha256 text NOT NULL,
    name text NOT NULL,
    sent bigint NOT NULL,
    size bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT imprint_now()
);

-- What waits for its account until a person has connected it again; looked through for what was missed by a moment.
CREATE INDEX publication_held_for_ever ON publication (account_id) WHERE held_until = 'infinity';
INSERT INTO chore (name, every) VALUES ('holds', interval '1 min');

-- A file that is out stays with its post, and so does the way in which its files go out: by another row, or by another
-- way, the same file could go out again.
CREATE FUNCTION post_file_out_stays() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM publication WHERE file_id = OLD.id AND status = 'success') THEN
        RAISE EXCEPTION 'a file that is out stays with its post'
            USING ERRCODE = 'check_violation', TABLE = 'post', CONSTRAINT = 'post_frozen';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER post_file_out_stays BEFORE UPDATE ON post_file FOR EACH ROW
    WHEN (OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL) EXECUTE FUNCTION post_file_out_stays();
ALTER TABLE post_file ENABLE ALWAYS TRIGGER post_file_out_stays;
CREATE FUNCTION post_mode_stays() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM publication WHERE post_id = OLD.id AND status = 'success') THEN
        RAISE EXCEPTION 'how the files of a post go out cannot change when something of it is out'
            USING ERRCODE = 'check_violation', TABLE = 'post', CONSTRAINT = 'post_frozen';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER post_mode_stays BEFORE UPDATE OF upload_mode ON post FOR EACH ROW
    WHEN (OLD.upload_mode <> NEW.upload_mode) EXECUTE FUNCTION post_mode_stays();
ALTER TABLE post ENABLE ALWAYS TRIGGER post_mode_stays;
CREATE INDEX publication_of_file ON publication (file_id) WHERE file_id IS NOT NULL;
CREATE INDEX publication_failed ON publication (status_at) WHERE status = 'failed' AND deleted_at IS NULL;
