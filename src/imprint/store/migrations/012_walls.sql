-- Walls: behind the API's own check of whose things somebody sees stands the same check in the database.
--
-- The API works under the role imprint_api, which owns nothing and sees through the policies below only; workers, chores
-- and the command line own the tables, and see everything. Before it asks anything for somebody, a connection of the API
-- is told in settings whose things it may see (wall_owner), who asks (wall_person), whether they may change things
-- (wall_changes) and at which office they stand (wall_office). What is not said is not seen: no setting, no row.
--
-- The offices, each for the routes that need it and for nothing else:
--   door    open routes, before anybody is known: finds people, sessions, keys, invitations and the first code by what
--           was brought, makes people and sessions. No things at all.
--   people  an administrator looks after people, and ends their sessions. No things of others.
--   invitations  an administrator sees and withdraws those of everybody.
--   system  an administrator looks at the machine: reads what status, audit and dead letters are made of, and requeues
--           or discards dead letters. No post, no text, no sign-in.
--
-- An upload comes with an address that was signed for one owner: it stands behind that owner's wall.

CREATE FUNCTION wall_owner() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT current_setting('imprint.wall_owner', true)
$$;
CREATE FUNCTION wall_person() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT current_setting('imprint.wall_person', true)
$$;
CREATE FUNCTION wall_changes() RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT current_setting('imprint.wall_changes', true) = 'yes'
$$;
CREATE FUNCTION wall_office(wanted text) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT current_setting('imprint.wall_office', true) = wanted
$$;

-- Things. `sees`: whose row it is, or which row it belongs to, which is seen through its own wall. `takes`: what else a
-- new or changed row may refer to; empty: nothing more. A subquery that gives one value is asked for each row by its
-- key, whatever the planner thinks; an IN would now and then read everything that somebody has.
DO $$
DECLARE
    walled record;
BEGIN
    FOR walled IN SELECT * FROM (VALUES
        ('post', 'owner = wall_owner()', ''),
        ('content', 'owner = wall_owner()', ''),
        ('account', 'owner = wall_owner()', ''),
        ('batch', 'owner = wall_owner()', ''),
        ('errand', 'owner = wall_owner()', '(account_id IS NULL OR (SELECT true FROM account a WHERE a.id = errand.account_id))'),
        ('series', 'owner = wall_owner()', ''),
        ('rule', 'owner = wall_owner()', '(SELECT true FROM series s WHERE s.id = rule.series_id)'),
        ('target', 'person = wall_owner()', ''),
        ('follow', 'person = wall_owner()', '(SELECT true FROM series s WHERE s.id = follow.series_id)'),
        ('chapter_read', 'person = wall_owner()', '(SELECT true FROM chapter c WHERE c.id = chapter_read.chapter_id)'),
        ('notice', 'person = wall_owner()', ''),
        ('post_file', '(SELECT true FROM post p WHERE p.id = post_file.post_id)',
            '(SELECT true FROM content c WHERE c.id = post_file.content_id)'),
        ('publication', '(SELECT true FROM post p WHERE p.id = publication.post_id)',
            '(SELECT true FROM account a WHERE a.id = publication.account_id)
             AND (batch_id IS NULL OR (SELECT true FROM batch b WHERE b.id = publication.batch_id))'),
        ('attempt', '(SELECT true FROM publication p WHERE p.id = attempt.publication_id)', ''),
        ('remote_file', '(SELECT true FROM publication p WHERE p.id = remote_file.publication_id)', ''),
        ('publication_log', '(SELECT true FROM publication p WHERE p.id = publication_log.publication_id)', ''),
        ('progress', '(SELECT true FROM publication p WHERE p.id = progress.publication_id)', ''),
        ('batch_turn', '(SELECT true FROM batch b WHERE b.id = batch_turn.batch_id)', ''),
        ('credential', '(SELECT true FROM account a WHERE a.id = credential.account_id)', ''),
        ('object', '(SELECT true FROM content c WHERE c.id = object.content_id)', ''),
        ('derivation', '(SELECT true FROM content c WHERE c.id = derivation.parent_id)', ''),
        ('source', '(SELECT true FROM series s WHERE s.id = source.series_id)',
            '(SELECT s.owner FROM series s WHERE s.id = source.series_id) = wall_owner()'),
        ('chapter', '(SELECT true FROM series s WHERE s.id = chapter.series_id)', ''),
        ('release', '(SELECT true FROM source s WHERE s.id = release.source_id)', ''),
        ('set_aside', '(SELECT true FROM source s WHERE s.id = set_aside.source_id)', ''),
        ('delivery', '(SELECT true FROM target t WHERE t.id = delivery.target_id)', ''),
        ('delivery_notice', '(SELECT true FROM target t WHERE t.id = delivery_notice.target_id)', ''),
        ('delivery_attempt', '(SELECT true FROM delivery d WHERE d.id = delivery_attempt.delivery_id)', ''),
        ('rule_account', '(SELECT true FROM rule r WHERE r.id = rule_account.rule_id)',
            '(SELECT true FROM account a WHERE a.id = rule_account.account_id)'),
        ('announcement', '(SELECT true FROM rule r WHERE r.id = announcement.rule_id)',
            '(SELECT true FROM post p WHERE p.id = announcement.post_id)')
    ) AS declared (name, sees, takes) LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', walled.name);
        EXECUTE format('CREATE POLICY wall ON %I USING (%s) WITH CHECK (%s)', walled.name, walled.sees,
                       concat_ws(' AND ', walled.sees, nullif(walled.takes, '')));
        EXECUTE format('CREATE POLICY wall_insert ON %I AS RESTRICTIVE FOR INSERT WITH CHECK (wall_changes())', walled.name);
        EXECUTE format('CREATE POLICY wall_update ON %I AS RESTRICTIVE FOR UPDATE USING (wall_changes())', walled.name);
        EXECUTE format('CREATE POLICY wall_delete ON %I AS RESTRICTIVE FOR DELETE USING (wall_changes())', walled.name);
    END LOOP;
END $$;
-- A series that somebody else keeps is read by who follows it; nobody can begin to follow what they do not see.
-- A function, since two tables whose policies look at each other would go round in circles.
CREATE FUNCTION wall_follows(named uuid) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp AS $$
    SELECT EXISTS (SELECT FROM follow WHERE series_id = named AND person = wall_owner())
$$;
CREATE POLICY wall_followed ON series FOR SELECT USING (wall_follows(id));

-- The circuit of an account, of a target or of a source is its owner's; that of a host nobody's.
ALTER TABLE circuit ENABLE ROW LEVEL SECURITY;
CREATE POLICY wall ON circuit USING (CASE split_part(key, ':', 1)
    WHEN 'account' THEN (SELECT true FROM account a WHERE 'account:' || a.id = circuit.key AND a.owner = wall_owner())
    WHEN 'target' THEN (SELECT true FROM target t WHERE 'target:' || t.id = circuit.key AND t.person = wall_owner())
    WHEN 'source' THEN (SELECT true FROM source s WHERE s.id = split_part(circuit.key, ':', 2)::uuid)
    ELSE true END);

-- The audit is read by who sees the row that a line is about; it is written by triggers only, which own it.
ALTER TABLE audit ENABLE ROW LEVEL SECURITY;
CREATE POLICY wall ON audit FOR SELECT USING (CASE lifecycle
    WHEN 'post' THEN (SELECT true FROM post t WHERE t.id = audit.row_id)
    WHEN 'publication' THEN (SELECT true FROM publication t WHERE t.id = audit.row_id)
    WHEN 'account' THEN (SELECT true FROM account t WHERE t.id = audit.row_id)
    WHEN 'content' THEN (SELECT true FROM content t WHERE t.id = audit.row_id)
    WHEN 'object' THEN (SELECT true FROM object t WHERE t.id = audit.row_id)
    WHEN 'derivation' THEN (SELECT true FROM derivation t WHERE t.id = audit.row_id)
    WHEN 'source' THEN (SELECT true FROM source t WHERE t.id = audit.row_id)
    ELSE false END);

-- Events are read by whose they are, new notices by who follows the series; they are written by triggers only.
ALTER TABLE event ENABLE ROW LEVEL SECURITY;
CREATE POLICY wall ON event FOR SELECT USING (owner = wall_owner() OR owner IS NULL
    AND wall_follows(row_id));

-- People: everybody is seen by themselves, and at the door and by who looks after people.
ALTER TABLE person ENABLE ROW LEVEL SECURITY;
ALTER TABLE session ENABLE ROW LEVEL SECURITY;
ALTER TABLE api_key ENABLE ROW LEVEL SECURITY;
ALTER TABLE invitation ENABLE ROW LEVEL SECURITY;
ALTER TABLE first_code ENABLE ROW LEVEL SECURITY;
ALTER TABLE idempotency ENABLE ROW LEVEL SECURITY;
CREATE POLICY wall ON person USING (id = wall_person() OR wall_office('people'));
CREATE POLICY wall ON session USING (person_id = wall_person() OR wall_office('people'));
CREATE POLICY wall ON api_key USING (person_id = wall_person());
CREATE POLICY wall ON invitation USING (invited_by = wall_person() OR wall_office('invitations'));
CREATE POLICY wall ON idempotency USING (person_id = wall_person());
CREATE POLICY door_finds ON person FOR SELECT USING (wall_office('door'));
CREATE POLICY door_makes ON person FOR INSERT WITH CHECK (wall_office('door'));
CREATE POLICY door ON session USING (wall_office('door'));
CREATE POLICY door_finds ON api_key FOR SELECT USING (wall_office('door'));
CREATE POLICY door_uses ON api_key FOR UPDATE USING (wall_office('door'));
CREATE POLICY door_finds ON invitation FOR SELECT USING (wall_office('door'));
CREATE POLICY door_uses ON invitation FOR UPDATE USING (wall_office('door'));
CREATE POLICY door ON first_code USING (wall_office('door'));

-- Jobs name a kind of work and the row it is about. Whoever changes a row may put one in, and sees that it waits; what
-- went wrong with one may quote anything, and is for who looks after the machine.
ALTER TABLE pgqueuer ENABLE ROW LEVEL SECURITY;
ALTER TABLE pgqueuer_log ENABLE ROW LEVEL SECURITY;
CREATE POLICY wall_insert ON pgqueuer FOR INSERT WITH CHECK (status = 'queued' AND (wall_changes() OR wall_office('system')));
CREATE POLICY wall_select ON pgqueuer FOR SELECT USING (status = 'queued');
CREATE POLICY wall_insert ON pgqueuer_log FOR INSERT WITH CHECK (wall_changes() OR wall_office('system'));

-- What status, audit and dead letters are made of, and what requeuing and discarding change.
DO $$
DECLARE
    looked_at text;
BEGIN
    FOREACH looked_at IN ARRAY ARRAY['publication', 'publication_log', 'account', 'content', 'object', 'derivation', 'series',
        'source', 'chapter', 'set_aside', 'notice', 'target', 'delivery', 'delivery_notice', 'delivery_attempt', 'attempt',
        'circuit', 'audit', 'pgqueuer', 'pgqueuer_log'] LOOP
        EXECUTE format('CREATE POLICY system ON %I FOR SELECT USING (wall_office(''system''))', looked_at);
    END LOOP;
    FOREACH looked_at IN ARRAY ARRAY['source', 'delivery', 'set_aside', 'pgqueuer'] LOOP
        EXECUTE format('CREATE POLICY system_requeues ON %I FOR UPDATE USING (wall_office(''system''))', looked_at);
    END LOOP;
    FOREACH looked_at IN ARRAY ARRAY['set_aside', 'circuit', 'pgqueuer'] LOOP
        EXECUTE format('CREATE POLICY system_discards ON %I FOR DELETE USING (wall_office(''system''))', looked_at);
    END LOOP;
END $$;
-- Who requeues or discards a dead letter, of their own or at that office, is written down by the statement that does it.
CREATE POLICY wall_tells ON audit FOR INSERT WITH CHECK (wall_changes() AND lifecycle = 'dead_letter');

-- What must see past the walls to keep its promise, whoever changes a row: the audit, its chain and the events, the
-- last administrator, and the next source of a host, which may be somebody else's.
ALTER FUNCTION lifecycle_guard() SECURITY DEFINER;
ALTER FUNCTION audit_chain() SECURITY DEFINER;
ALTER FUNCTION event_edited() SECURITY DEFINER;
ALTER FUNCTION event_noticed() SECURITY DEFINER;
ALTER FUNCTION person_last_administrator() SECURITY DEFINER;
ALTER FUNCTION source_next() SECURITY DEFINER;

-- Whether whoever asks may work under the API's role; to be a member of it is not enough since PostgreSQL 16.
CREATE FUNCTION wall_taken_on() RETURNS boolean LANGUAGE plpgsql STABLE SET search_path = public, pg_temp AS $$
BEGIN
    RETURN EXISTS (SELECT FROM pg_roles WHERE rolname = 'imprint_api') AND pg_has_role(current_user, 'imprint_api',
        CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'SET' ELSE 'MEMBER' END);
END $$;

-- Makes the API's role what it should be, as far as whoever calls this may: the role itself, the right to take it on,
-- and what it may do in this database. A dump holds the policies but neither role nor rights, so that it is done again
-- after a restore. Roles belong to the whole server, so that somebody else may be making the same one.
CREATE FUNCTION wall_raise() RETURNS void LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
    walled regclass;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'imprint_api') THEN
        BEGIN
            CREATE ROLE imprint_api NOLOGIN;
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN NULL;
            WHEN insufficient_privilege THEN RETURN;
        END;
    END IF;
    IF NOT wall_taken_on() THEN
        BEGIN
            EXECUTE format('GRANT imprint_api TO %I', current_user);
        EXCEPTION WHEN unique_violation OR insufficient_privilege THEN NULL;
        END;
    END IF;
    GRANT USAGE ON SCHEMA public TO imprint_api;
    FOR walled IN SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relrowsecurity LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO imprint_api', walled);
    END LOOP;
    -- Nobody's: counts of tries under hashes, and what the machine says of itself.
    GRANT SELECT, INSERT, UPDATE, DELETE ON sign_in_limit TO imprint_api;
    GRANT SELECT ON lifecycle_move, pace, chore, worker, incarnation, audit_seal, migration TO imprint_api;
    GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO imprint_api;
END $$;

-- What is wrong with the walls, in one word: there is no `role` that can be taken on, it has no `rights` here, it could
-- see `through` them; or nothing.
CREATE FUNCTION wall_lacks() RETURNS text LANGUAGE plpgsql STABLE SET search_path = public, pg_temp AS $$
BEGIN
    IF NOT wall_taken_on() THEN
        RETURN 'role';
    ELSIF EXISTS (SELECT FROM pg_roles WHERE rolname = 'imprint_api' AND (rolsuper OR rolbypassrls))
        OR EXISTS (SELECT FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relrowsecurity
                     AND pg_has_role('imprint_api', relowner, 'MEMBER')) THEN
        RETURN 'through';
    ELSIF EXISTS (SELECT FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relrowsecurity
                    AND NOT has_table_privilege('imprint_api', oid, 'SELECT')) THEN
        RETURN 'rights';
    END IF;
    RETURN '';
END $$;
SELECT wall_raise();
