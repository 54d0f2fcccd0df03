-- What happened, for those who watch: the audit tells of every move, this of what changed without one.

-- Its numbers are drawn from the same line as those of the audit, so that one number says how far somebody has read.
-- row_id: what changed; of a notice the series. owner: whose it is; empty for new notices, which are told to everybody
-- who follows the series. Kept for a day: whoever comes back later loads everything anew.
CREATE TABLE event (
    id bigint PRIMARY KEY DEFAULT nextval('audit_id_seq'),
    at timestamptz NOT NULL DEFAULT imprint_now(),
    lifecycle text NOT NULL
        CHECK (lifecycle IN ('post', 'publication', 'content', 'account', 'notice', 'series', 'batch')),
    row_id uuid,
    move text NOT NULL CHECK (length(move) BETWEEN 1 AND 40),
    status text NOT NULL CHECK (length(status) <= 40),
    owner text CHECK (length(owner) BETWEEN 1 AND 200),
    CONSTRAINT event_has_an_owner CHECK (owner IS NOT NULL OR (lifecycle = 'notice' AND row_id IS NOT NULL))
);

-- After the row was written, like the audit: by then the transaction has a number, which the reading of events counts on.
CREATE FUNCTION event_edited() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
    whose text;
BEGIN
    IF TG_TABLE_NAME = 'publication' THEN
        SELECT owner INTO whose FROM post WHERE id = NEW.post_id;
    ELSE
        whose := NEW.owner;
    END IF;
    INSERT INTO event (lifecycle, row_id, move, status, owner)
    VALUES (TG_TABLE_NAME, NEW.id,
            CASE WHEN OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL THEN 'delete' ELSE 'edit' END,
            NEW.status, whose);
    RETURN NULL;
END $$;
CREATE TRIGGER event_edited AFTER UPDATE ON post FOR EACH ROW
    WHEN (OLD.status = NEW.status AND (OLD.revision, OLD.deleted_at, OLD.late_policy, OLD.late_hours, OLD.zone)
          IS DISTINCT FROM (NEW.revision, NEW.deleted_at, NEW.late_policy, NEW.late_hours, NEW.zone))
    EXECUTE FUNCTION event_edited();
-- Not for what the clock does to each publication on its way: a turn that is given is followed by a move at once.
CREATE TRIGGER event_edited AFTER UPDATE ON publication FOR EACH ROW
    WHEN (OLD.status = NEW.status AND OLD.turn IS NOT DISTINCT FROM NEW.turn
          AND (OLD.due_at, OLD.deleted_at, OLD.paused, OLD.batch_id, OLD.batch_place)
          IS DISTINCT FROM (NEW.due_at, NEW.deleted_at, NEW.paused, NEW.batch_id, NEW.batch_place))
    EXECUTE FUNCTION event_edited();
CREATE TRIGGER event_edited AFTER UPDATE ON content FOR EACH ROW
    WHEN (OLD.status = NEW.status AND (OLD.name, OLD.deleted_at) IS DISTINCT FROM (NEW.name, NEW.deleted_at))
    EXECUTE FUNCTION event_edited();
CREATE TRIGGER event_edited AFTER UPDATE ON account FOR EACH ROW
    WHEN (OLD.status = NEW.status AND (OLD.label, OLD.is_default, OLD.deleted_at, OLD.trouble)
          IS DISTINCT FROM (NEW.label, NEW.is_default, NEW.deleted_at, NEW.trouble))
    EXECUTE FUNCTION event_edited();

-- One for each series, however many follow it; and one for each person who has read some.
CREATE FUNCTION event_noticed() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO event (lifecycle, row_id, move, status)
        SELECT DISTINCT 'notice', series_id, 'create', 'unread' FROM changed;
    ELSE
        INSERT INTO event (lifecycle, move, status, owner) SELECT DISTINCT 'notice', 'read', 'read', person FROM changed;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER event_noticed_new AFTER INSERT ON notice REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION event_noticed();
CREATE TRIGGER event_noticed_read AFTER UPDATE ON notice REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION event_noticed();

-- What people see of a series: its name, who follows it, its rules, and what its sources brought or failed at. Not every
-- poll: most find nothing, and nobody waits for that. With the rights of the owner, since only triggers write events.
CREATE FUNCTION event_series() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    changed record;
    named uuid;
    whose text;
BEGIN
    IF TG_OP = 'DELETE' THEN changed := OLD; ELSE changed := NEW; END IF;
    CASE TG_TABLE_NAME
        WHEN 'series' THEN named := changed.id; whose := changed.owner;
        WHEN 'rule' THEN named := changed.series_id; whose := changed.owner;
        WHEN 'follow' THEN named := changed.series_id; whose := changed.person;
        ELSE named := changed.series_id; whose := (SELECT owner FROM series WHERE id = changed.series_id);
    END CASE;
    IF whose IS NOT NULL THEN
        INSERT INTO event (lifecycle, row_id, move, status, owner) VALUES ('series', named, 'edit', TG_TABLE_NAME, whose);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER event_series AFTER UPDATE ON series FOR EACH ROW
    WHEN ((OLD.title, OLD.deleted_at) IS DISTINCT FROM (NEW.title, NEW.deleted_at)) EXECUTE FUNCTION event_series();
CREATE TRIGGER event_series AFTER INSERT OR UPDATE ON rule FOR EACH ROW EXECUTE FUNCTION event_series();
CREATE TRIGGER event_series AFTER INSERT OR UPDATE OR DELETE ON follow FOR EACH ROW EXECUTE FUNCTION event_series();
CREATE TRIGGER event_series_new AFTER INSERT ON source FOR EACH ROW EXECUTE FUNCTION event_series();
CREATE TRIGGER event_series AFTER UPDATE ON source FOR EACH ROW
    WHEN (OLD.status = NEW.status AND
          (OLD.error, OLD.failures, OLD.last_news_at, OLD.last_worked_at IS NULL, OLD.priority, OLD.priority_fixed, OLD.deleted_at)
          IS DISTINCT FROM
          (NEW.error, NEW.failures, NEW.last_news_at, NEW.last_worked_at IS NULL, NEW.priority, NEW.priority_fixed, NEW.deleted_at))
    EXECUTE FUNCTION event_series();

-- One for each series of which somebody has read chapters, or not read them after all.
CREATE FUNCTION event_chapters() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO event (lifecycle, row_id, move, status, owner)
    SELECT DISTINCT 'series', c.series_id, 'edit', 'chapter', changed.person
    FROM changed JOIN chapter c ON c.id = changed.chapter_id;
    RETURN NULL;
END $$;
CREATE TRIGGER event_chapters_read AFTER INSERT ON chapter_read REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION event_chapters();
CREATE TRIGGER event_chapters_unread AFTER DELETE ON chapter_read REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION event_chapters();

-- A batch is its publications, but it is made and deleted by itself.
CREATE FUNCTION event_batch() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO event (lifecycle, row_id, move, status, owner)
    VALUES ('batch', NEW.id, CASE WHEN NEW.deleted_at IS NULL THEN 'edit' ELSE 'delete' END, '', NEW.owner);
    RETURN NULL;
END $$;
CREATE TRIGGER event_batch AFTER INSERT OR UPDATE ON batch FOR EACH ROW EXECUTE FUNCTION event_batch();

-- Processes in which somebody watches, each until a time that it moves on. Transactions that ring commit one after the
-- other, each with its own write to the disk: nobody shall wait for that when nobody listens. Unlogged: who listens comes
-- back after a crash, and says so again.
CREATE UNLOGGED TABLE listener (
    id uuid PRIMARY KEY,
    until timestamptz NOT NULL
);

-- Whoever watches hears of it when the transaction commits; several rings of one transaction are one.
CREATE FUNCTION event_ring() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM listener WHERE until > imprint_now()) THEN
        NOTIFY imprint_events;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER event_ring AFTER INSERT ON audit FOR EACH STATEMENT EXECUTE FUNCTION event_ring();
CREATE TRIGGER event_ring AFTER INSERT ON event FOR EACH STATEMENT EXECUTE FUNCTION event_ring();

-- A webhook is a target as well: its sealed address holds a secret besides. tells: what it hears of. Nobody was told of
-- a failed post before; whoever has a target is now.
ALTER TABLE target
    ADD COLUMN kind text NOT NULL DEFAULT 'message' CHECK (kind IN ('message', 'webhook')),
    ADD COLUMN tells text[] NOT NULL DEFAULT '{chapter,failed,unknown,reconnect}'
        CHECK (cardinality(tells) >= 1 AND tells <@ ARRAY['chapter', 'published', 'failed', 'unknown', 'reconnect']);

-- news: what happened to a publication or an account (row_id); empty when it tells of chapters. key: what a receiver
-- knows a message by, the same for every attempt, and so is body, which is written down when it is first sent.
ALTER TABLE delivery
    ADD COLUMN key uuid NOT NULL DEFAULT gen_random_uuid(),
    ADD COLUMN news text CHECK (news IN ('published', 'failed', 'unknown', 'reconnect')),
    ADD COLUMN row_id uuid,
    ADD COLUMN body text,
    ADD CONSTRAINT delivery_news_are_of_something CHECK ((news IS NULL) = (row_id IS NULL)),
    ADD CONSTRAINT delivery_news_are_not_gathered CHECK (news IS NULL OR closed_at IS NOT NULL);

-- In the transaction of the move itself, so that it is told, whoever is killed. With the rights of the owner: whose
-- targets they are follows from the row, not from who moved it.
CREATE FUNCTION target_hear() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    heard text := CASE NEW.status WHEN 'success' THEN 'published' ELSE NEW.status END;
    whose text;
BEGIN
    IF TG_TABLE_NAME = 'account' THEN
        whose := NEW.owner;
    ELSE
        SELECT owner INTO whose FROM post WHERE id = NEW.post_id;
    END IF;
    INSERT INTO delivery (target_id, news, row_id, next_at, closed_at)
    SELECT id, heard, NEW.id, imprint_now(), imprint_now() FROM target
    WHERE person = whose AND deleted_at IS NULL AND NOT muted AND heard = ANY (tells);
    RETURN NULL;
END $$;
-- An unknown one is news when a person has to decide; until then it is being looked for.
CREATE TRIGGER target_hear AFTER UPDATE ON publication FOR EACH ROW
    WHEN (OLD.status <> NEW.status AND NEW.status IN ('success', 'failed')
          OR NEW.status = 'unknown' AND NEW.look_at IS NULL AND (OLD.status <> 'unknown' OR OLD.look_at IS NOT NULL))
    EXECUTE FUNCTION target_hear();
CREATE TRIGGER target_hear AFTER UPDATE ON account FOR EACH ROW
    WHEN (OLD.status <> NEW.status AND NEW.status = 'reconnect') EXECUTE FUNCTION target_hear();

-- What was counted so far, for the metrics: a count never falls and is never made anew from all that ever happened.
-- tally holds what was counted up to the mark, and what came later is counted when somebody looks. Nobody's rows: they
-- name platforms and queues, no people.
CREATE TABLE tally (
    name text NOT NULL,
    kind text NOT NULL DEFAULT '',
    outcome text NOT NULL DEFAULT '',
    value float8 NOT NULL CHECK (value >= 0),
    PRIMARY KEY (name, kind, outcome)
);
CREATE TABLE tally_mark (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    at timestamptz NOT NULL DEFAULT '2000-01-01',
    chapter bigint NOT NULL DEFAULT 0,
    notice bigint NOT NULL DEFAULT 0
);
INSERT INTO tally_mark DEFAULT VALUES;
CREATE INDEX delivery_ended ON delivery (ended_at) INCLUDE (outcome) WHERE ended_at IS NOT NULL;
CREATE INDEX derivation_ended ON derivation (status_at) INCLUDE (status, variant) WHERE status IN ('processed', 'failed');

-- What happened between two marks. drift: how many began at most so many seconds late, each by itself.
CREATE FUNCTION tally_between(after tally_mark, upto tally_mark)
RETURNS TABLE (name text, kind text, outcome text, value float8) LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
    SELECT 'attempts', a.platform, t.outcome, count(*)::float8
    FROM attempt t JOIN publication p ON p.id = t.publication_id JOIN account a ON a.id = p.account_id
    WHERE t.ended_at > after.at AND t.ended_at <= upto.at GROUP BY 2, 3
    UNION ALL
    SELECT 'seconds', a.platform, '', coalesce(sum(greatest(extract(epoch FROM t.ended_at - t.began_at), 0)), 0)::float8
    FROM attempt t JOIN publication p ON p.id = t.publication_id JOIN account a ON a.id = p.account_id
    WHERE t.ended_at > after.at AND t.ended_at <= upto.at GROUP BY 2
    UNION ALL
    SELECT 'drift', coalesce((SELECT min(bound)::text FROM unnest(ARRAY[0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 3600]) AS bound
                              WHERE extract(epoch FROM t.drift) <= bound), '+Inf'), '', count(*)::float8
    FROM attempt t WHERE t.began_at > after.at AND t.began_at <= upto.at AND t.drift IS NOT NULL GROUP BY 2
    UNION ALL
    SELECT 'drift_sum', '', '', coalesce(sum(greatest(extract(epoch FROM t.drift), 0)), 0)::float8
    FROM attempt t WHERE t.began_at > after.at AND t.began_at <= upto.at AND t.drift IS NOT NULL
    UNION ALL
    SELECT 'jobs', l.entrypoint, l.status::text, count(*)::float8 FROM pgqueuer_log l
    WHERE l.created > after.at AND l.created <= upto.at AND l.status IN ('successful', 'exception', 'failed') GROUP BY 2, 3
    UNION ALL
    SELECT 'deliveries', '', d.outcome, count(*)::float8 FROM delivery d
    WHERE d.ended_at > after.at AND d.ended_at <= upto.at GROUP BY 3
    UNION ALL
    SELECT 'derivations', '', d.status, count(*)::float8 FROM derivation d
    WHERE d.status IN ('processed', 'failed') AND d.status_at > after.at AND d.status_at <= upto.at GROUP BY 3
    UNION ALL
    SELECT 'chapters', CASE WHEN c.silent THEN 'silent' ELSE 'new' END, '', count(*)::float8 FROM chapter c
    WHERE c.id > after.chapter AND c.id <= upto.chapter GROUP BY 2
    UNION ALL
    SELECT 'notices', '', '', count(*)::float8 FROM notice n WHERE n.id > after.notice AND n.id <= upto.notice
$$;
