-- Series, what their sources carry, who follows them, what was read, and what could not be taken in.

-- title_given: a person chose the title; else a source may say it. latest_chapter: the highest number that was ever
-- seen. watched_since: when one of its sources was first read to its end; what came out later is news, what was there
-- already is not.
CREATE TABLE series (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    owner text NOT NULL DEFAULT 'operator' CHECK (length(owner) BETWEEN 1 AND 200),
    title text NOT NULL CHECK (length(title) BETWEEN 1 AND 500),
    title_given boolean NOT NULL DEFAULT true,
    latest_chapter numeric CHECK (latest_chapter BETWEEN 0 AND 999999999),
    latest_at timestamptz,
    watched_since timestamptz,
    created_at timestamptz NOT NULL DEFAULT imprint_now(),
    deleted_at timestamptz
);
CREATE INDEX series_by_time ON series (owner, created_at, id) WHERE deleted_at IS NULL;

-- What was announced cannot be taken back: the number rises or stays.
CREATE FUNCTION series_latest_stays() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'the latest chapter of a series never falls'
        USING ERRCODE = 'check_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'series_latest_stays';
END $$;
CREATE TRIGGER series_latest_stays BEFORE UPDATE ON series FOR EACH ROW
    WHEN (OLD.latest_chapter IS NOT NULL AND coalesce(NEW.latest_chapter < OLD.latest_chapter, true))
    EXECUTE FUNCTION series_latest_stays();
ALTER TABLE series ENABLE ALWAYS TRIGGER series_latest_stays;

-- kind: the name in the registry of sources; ref: the series' id there, or a feed's URL; host: who is asked.
-- priority_before: what to go back to after a rest. priority_fixed: a person chose it, so that nothing changes it.
-- etag, last_modified, cursor: what the next request goes on from. rhythm: how far apart its news usually are; every:
-- how long the last wait was meant to be. caught_up_at: when it was first read to its end; until then nothing of it is
-- news. read_all_at: when all of it was last read, not only what is new. gap_from, gap_to: numbers between which
-- something was missing when it was last asked once more for that.
ALTER TABLE source
    ADD COLUMN series_id uuid REFERENCES series,
    ADD COLUMN kind text CHECK (length(kind) BETWEEN 1 AND 50),
    ADD COLUMN ref text CHECK (length(ref) BETWEEN 1 AND 2000),
    ADD COLUMN host text CHECK (length(host) BETWEEN 1 AND 300),
    ADD COLUMN languages text[] NOT NULL DEFAULT '{}' CHECK (cardinality(languages) <= 50),
    ADD COLUMN priority text NOT NULL DEFAULT 'HOT' CHECK (priority IN ('HOT', 'WARM', 'COLD')),
    ADD COLUMN priority_before text CHECK (priority_before IN ('HOT', 'WARM', 'COLD')),
    ADD COLUMN priority_fixed boolean NOT NULL DEFAULT false,
    ADD COLUMN etag text CHECK (length(etag) <= 500),
    ADD COLUMN last_modified text CHECK (length(last_modified) <= 500),
    ADD COLUMN cursor text CHECK (length(cursor) <= 500),
    ADD COLUMN rhythm interval CHECK (rhythm > interval '0'),
    ADD COLUMN every interval CHECK (every > interval '0'),
    ADD COLUMN last_polled_at timestamptz,
    ADD COLUMN last_worked_at timestamptz,
    ADD COLUMN last_news_at timestamptz,
    ADD COLUMN caught_up_at timestamptz,
    ADD COLUMN read_all_at timestamptz,
    ADD COLUMN failures integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
    ADD COLUMN error_code text CHECK (length(error_code) <= 100),
    ADD COLUMN error text CHECK (length(error) <= 1000),
    ADD COLUMN gap_from numeric,
    ADD COLUMN gap_to numeric,
    ADD CONSTRAINT source_of_series_is_whole
        CHECK (series_id IS NULL OR (kind IS NOT NULL AND ref IS NOT NULL AND host IS NOT NULL)),
    ADD CONSTRAINT source_error_is_whole CHECK ((error_code IS NULL) = (error IS NULL)),
    ADD CONSTRAINT source_in_series UNIQUE (id, series_id);
CREATE UNIQUE INDEX source_once ON source (series_id, kind, md5(ref)) WHERE deleted_at IS NULL;
CREATE INDEX source_by_place ON source (kind, md5(ref)) WHERE deleted_at IS NULL;
-- One at a time of a host, whatever the code does and however many workers there are.
CREATE UNIQUE INDEX source_polled_on_host ON source (host) WHERE lease_until IS NOT NULL;
CREATE INDEX source_waiting_on_host ON source (host, priority, next_check_at)
    WHERE lease_until IS NULL AND status <> 'disabled' AND deleted_at IS NULL;

-- When a host becomes free the next source that is due there need not wait any longer than the host's pace asks for.
-- A lower priority gives way for a while, not for ever.
CREATE FUNCTION source_next() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE source SET held_until = (SELECT next_at FROM pace WHERE key = 'host:' || NEW.host AND next_at > imprint_now())
    WHERE id = (SELECT first.id
                FROM (VALUES ('HOT', interval '0'), ('WARM', interval '1 hour'), ('COLD', interval '6 hours')) AS class (priority, patience),
                LATERAL (SELECT id, next_check_at FROM source
                         WHERE host = NEW.host AND priority = class.priority AND lease_until IS NULL
                           AND status <> 'disabled' AND deleted_at IS NULL AND next_check_at <= imprint_now() AND id <> NEW.id
                         ORDER BY next_check_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED) AS first
                ORDER BY first.next_check_at + class.patience LIMIT 1)
      AND held_until IS NOT NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER source_next AFTER UPDATE ON source
    FOR EACH ROW WHEN (OLD.lease_until IS NOT NULL AND NEW.lease_until IS NULL AND NEW.host IS NOT NULL)
    EXECUTE FUNCTION source_next();

-- Series, chapters and the sources of series stay: what people were told of them would be lost. So a reference to one
-- that holds once holds for ever, and where thousands of rows come at once it is checked once for all of them, by the
-- triggers below; a foreign key would lock the same row for each, which costs more than all else together.
CREATE FUNCTION serial_stays() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'what was told of a % would be lost: it stays', TG_TABLE_NAME
        USING ERRCODE = 'check_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'serial_stays';
END $$;
CREATE FUNCTION serial_refers() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
    series_ids uuid[];
    source_ids uuid[];
    chapter_ids bigint[];
    there boolean;
BEGIN
    CASE TG_TABLE_NAME
        WHEN 'chapter' THEN
            SELECT array_agg(DISTINCT series_id) INTO series_ids FROM changed;
            there := (SELECT count(*) FROM series WHERE id = ANY (series_ids)) = cardinality(series_ids);
        WHEN 'release' THEN
            SELECT array_agg(DISTINCT source_id), array_agg(DISTINCT chapter_id) INTO source_ids, chapter_ids FROM changed;
            there := (SELECT count(*) FROM source WHERE id = ANY (source_ids)) = cardinality(source_ids)
                 AND (SELECT count(*) FROM chapter WHERE id = ANY (chapter_ids)) = cardinality(chapter_ids);
        ELSE
            SELECT array_agg(chapter_id), array_agg(series_id) INTO chapter_ids, series_ids
            FROM (SELECT DISTINCT chapter_id, series_id FROM changed) AS named;
            there := (SELECT count(*) FROM unnest(chapter_ids, series_ids) AS named (id, series_id)
                      WHERE (SELECT c.series_id FROM chapter c WHERE c.id = named.id) = named.series_id)
                     = cardinality(chapter_ids);
    END CASE;
    IF NOT there THEN
        RAISE EXCEPTION 'a % refers to something that is not there', TG_TABLE_NAME
            USING ERRCODE = 'foreign_key_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'serial_refers';
    END IF;
    RETURN NULL;
END $$;

-- A logical chapter: the same one wherever it is read; slug is what decisions/chapter_number makes of its name.
-- silent: it was there before anybody could be told, or there is nothing to read; it makes no notice and no post.
CREATE TABLE chapter (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    series_id uuid NOT NULL,
    slug text NOT NULL CHECK (length(slug) BETWEEN 1 AND 300),
    kind text NOT NULL CHECK (kind IN ('chapter', 'extra', 'special', 'notice')),
    number numeric CHECK (number BETWEEN 0 AND 999999999 AND scale(number) <= 12),
    number_end numeric CHECK (number_end BETWEEN 0 AND 999999999 AND scale(number_end) <= 12),
    volume numeric CHECK (volume BETWEEN 0 AND 999999999 AND scale(volume) <= 12),
    season integer CHECK (season >= 0),
    version integer CHECK (version >= 0),
    title text CHECK (length(title) <= 2000),
    first_seen_at timestamptz NOT NULL DEFAULT imprint_now(),
    silent boolean NOT NULL,
    CONSTRAINT chapter_once UNIQUE (series_id, slug),
    CONSTRAINT chapter_range_has_a_start CHECK (number_end IS NULL OR number_end > number)
);

-- A chapter at one source. own_id: the source's own id of it, else its slug. gone_at: the source no longer lists it.
CREATE TABLE release (
    source_id uuid NOT NULL,
    own_id text NOT NULL CHECK (length(own_id) BETWEEN 1 AND 500),
    chapter_id bigint NOT NULL,
    url text CHECK (length(url) <= 2000),
    title text CHECK (length(title) <= 2000),
    language text CHECK (length(language) <= 50),
    group_name text CHECK (length(group_name) <= 2000),
    external boolean NOT NULL DEFAULT false,
    published_at timestamptz CHECK (published_at BETWEEN '0001-01-01' AND '9999-12-31'),
    first_seen_at timestamptz NOT NULL DEFAULT imprint_now(),
    seen_at timestamptz NOT NULL DEFAULT imprint_now(),
    gone_at timestamptz,
    PRIMARY KEY (source_id, own_id)
) WITH (fillfactor = 85);  -- room for the next seen_at on the same page
CREATE INDEX release_of_chapter ON release (chapter_id);

-- A person's library.
CREATE TABLE follow (
    person text NOT NULL CHECK (length(person) BETWEEN 1 AND 200),
    series_id uuid NOT NULL REFERENCES series,
    notify boolean NOT NULL DEFAULT true,
    preferred_source uuid,
    created_at timestamptz NOT NULL DEFAULT imprint_now(),
    PRIMARY KEY (person, series_id),
    CONSTRAINT follow_source_of_its_series FOREIGN KEY (preferred_source, series_id) REFERENCES source (id, series_id)
);
CREATE INDEX follow_to_notify ON follow (series_id, person) WHERE notify;

CREATE TABLE chapter_read (
    person text NOT NULL CHECK (length(person) BETWEEN 1 AND 200),
    chapter_id bigint NOT NULL REFERENCES chapter,
    read_at timestamptz NOT NULL DEFAULT imprint_now(),
    PRIMARY KEY (person, chapter_id)
);

-- One notice per person and chapter, for ever. read_at: the person has seen it.
CREATE TABLE notice (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    person text NOT NULL CHECK (length(person) BETWEEN 1 AND 200),
    series_id uuid NOT NULL,
    chapter_id bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT imprint_now(),
    read_at timestamptz,
    CONSTRAINT notice_once UNIQUE (person, chapter_id)
);

-- One item of a source that could not be taken in while the others were. item: its own id, else a digest of it.
-- discarded_at: a person has seen it and does not want to hear of it again.
CREATE TABLE set_aside (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source_id uuid NOT NULL REFERENCES source,
    item text NOT NULL CHECK (length(item) BETWEEN 1 AND 500),
    data jsonb NOT NULL,
    error_code text NOT NULL CHECK (length(error_code) <= 100),
    error text NOT NULL CHECK (length(error) <= 1000),
    first_seen_at timestamptz NOT NULL DEFAULT imprint_now(),
    seen_at timestamptz NOT NULL DEFAULT imprint_now(),
    times integer NOT NULL DEFAULT 1,
    discarded_at timestamptz,
    UNIQUE (source_id, item)
);

CREATE TRIGGER serial_stays BEFORE DELETE OR TRUNCATE ON series FOR EACH STATEMENT EXECUTE FUNCTION serial_stays();
CREATE TRIGGER serial_stays BEFORE DELETE OR TRUNCATE ON chapter FOR EACH STATEMENT EXECUTE FUNCTION serial_stays();
CREATE TRIGGER serial_stays BEFORE DELETE ON source
    FOR EACH ROW WHEN (OLD.series_id IS NOT NULL) EXECUTE FUNCTION serial_stays();
CREATE TRIGGER serial_moves BEFORE UPDATE ON series
    FOR EACH ROW WHEN (OLD.id <> NEW.id) EXECUTE FUNCTION serial_stays();
CREATE TRIGGER serial_moves BEFORE UPDATE ON chapter
    FOR EACH ROW WHEN (OLD.id <> NEW.id OR OLD.series_id <> NEW.series_id) EXECUTE FUNCTION serial_stays();
CREATE TRIGGER serial_moves BEFORE UPDATE ON notice
    FOR EACH ROW WHEN (OLD.chapter_id <> NEW.chapter_id OR OLD.series_id <> NEW.series_id) EXECUTE FUNCTION serial_stays();
CREATE TRIGGER serial_moves BEFORE UPDATE ON release
    FOR EACH ROW WHEN (OLD.source_id <> NEW.source_id) EXECUTE FUNCTION serial_stays();
-- A release may turn out to be of another chapter; so few do that each is checked by itself.
CREATE FUNCTION release_refers() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM chapter WHERE id = NEW.chapter_id) THEN
        RAISE EXCEPTION 'a release refers to a chapter that is not there'
            USING ERRCODE = 'foreign_key_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'serial_refers';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER serial_refers_updated AFTER UPDATE ON release
    FOR EACH ROW WHEN (OLD.chapter_id <> NEW.chapter_id) EXECUTE FUNCTION release_refers();
DO $$
DECLARE
    bulky text;
BEGIN
    FOREACH bulky IN ARRAY ARRAY['chapter', 'release', 'notice'] LOOP
        EXECUTE format('CREATE TRIGGER serial_refers_inserted AFTER INSERT ON %I REFERENCING NEW TABLE AS changed
            FOR EACH STATEMENT EXECUTE FUNCTION serial_refers()', bulky);
        EXECUTE format('ALTER TABLE %I ENABLE ALWAYS TRIGGER serial_refers_inserted', bulky);
    END LOOP;
END $$;
ALTER TABLE series ENABLE ALWAYS TRIGGER serial_stays;
ALTER TABLE chapter ENABLE ALWAYS TRIGGER serial_stays;
ALTER TABLE source ENABLE ALWAYS TRIGGER serial_stays;
ALTER TABLE series ENABLE ALWAYS TRIGGER serial_moves;
ALTER TABLE chapter ENABLE ALWAYS TRIGGER serial_moves;
ALTER TABLE notice ENABLE ALWAYS TRIGGER serial_moves;
ALTER TABLE release ENABLE ALWAYS TRIGGER serial_moves;
ALTER TABLE release ENABLE ALWAYS TRIGGER serial_refers_updated;
