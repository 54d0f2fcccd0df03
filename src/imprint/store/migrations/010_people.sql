-- People: who may come in, with what, what they may do, and how often they may try.

-- The first person is called 'operator', as everything that the command line makes; so it is theirs. A reader has no
-- things of their own and looks at those of somebody else.
CREATE TABLE person (
    id text PRIMARY KEY DEFAULT gen_random_uuid()::text CHECK (id ~ '^[!-~]{1,200}$'),
    name text NOT NULL CHECK (name = btrim(name) AND length(name) BETWEEN 1 AND 100),
    password_hash text NOT NULL CHECK (starts_with(password_hash, '$argon2id$')),
    role text NOT NULL CHECK (role IN ('administrator', 'member', 'reader')),
    looks_at text REFERENCES person,
    created_at timestamptz NOT NULL DEFAULT imprint_now(),
    disabled_at timestamptz,
    CONSTRAINT person_reader_looks_at CHECK ((role = 'reader') = (looks_at IS NOT NULL)),
    CONSTRAINT person_looks_elsewhere CHECK (looks_at <> id)
);
CREATE UNIQUE INDEX person_name ON person (lower(name));
CREATE INDEX person_looks_at ON person (looks_at) WHERE looks_at IS NOT NULL;

-- Somebody can always let people in: the last administrator stays one.
CREATE FUNCTION person_last_administrator() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('person_last_administrator', 0));
    IF NOT EXISTS (SELECT FROM person WHERE role = 'administrator' AND disabled_at IS NULL) THEN
        RAISE EXCEPTION 'the last administrator stays one'
            USING ERRCODE = 'check_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'person_last_administrator';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER person_last_administrator AFTER UPDATE ON person FOR EACH ROW
    WHEN (OLD.role = 'administrator' AND OLD.disabled_at IS NULL
          AND (NEW.role <> 'administrator' OR NEW.disabled_at IS NOT NULL))
    EXECUTE FUNCTION person_last_administrator();
ALTER TABLE person ENABLE ALWAYS TRIGGER person_last_administrator;

-- Of everything that opens a door only the hash is here.
CREATE TABLE session (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    sha256 text NOT NULL UNIQUE CHECK (sha256 ~ '^[0-9a-f]{64}$'),
    person_id text NOT NULL REFERENCES person,
    address text NOT NULL CHECK (length(address) <= 100),
    agent text NOT NULL CHECK (length(agent) <= 300),
    created_at timestamptz NOT NULL DEFAULT imprint_now(),
    seen_at timestamptz NOT NULL DEFAULT imprint_now(),
    expires_at timestamptz NOT NULL
);
CREATE INDEX session_of_person ON session (person_id, created_at);
CREATE INDEX session_ended ON session (expires_at);

CREATE TABLE api_key (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    sha256 text NOT NULL UNIQUE CHECK (sha256 ~ '^[0-9a-f]{64}$'),
    person_id text NOT NULL REFERENCES person,
    label text NOT NULL CHECK (length(label) BETWEEN 1 AND 100),
    prefix text NOT NULL CHECK (length(prefix) BETWEEN 4 AND 20),
    scopes text[] NOT NULL CHECK (cardinality(scopes) BETWEEN 1 AND 100 AND array_position(scopes, NULL) IS NULL),
    created_at timestamptz NOT NULL DEFAULT imprint_now(),
    expires_at timestamptz,
    last_used_at timestamptz,
    revoked_at timestamptz
);
CREATE INDEX api_key_of_person ON api_key (person_id, created_at);

CREATE TABLE invitation (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    sha256 text NOT NULL UNIQUE CHECK (sha256 ~ '^[0-9a-f]{64}$'),
    role text NOT NULL CHECK (role IN ('administrator', 'member', 'reader')),
    invited_by text NOT NULL REFERENCES person,
    label text NOT NULL DEFAULT '' CHECK (length(label) <= 100),
    created_at timestamptz NOT NULL DEFAULT imprint_now(),
    expires_at timestamptz NOT NULL,
    used_at timestamptz,
    used_by text REFERENCES person,
    withdrawn_at timestamptz,
    CONSTRAINT invitation_used_by_somebody CHECK ((used_at IS NULL) = (used_by IS NULL)),
    CONSTRAINT invitation_ends_once CHECK (used_at IS NULL OR withdrawn_at IS NULL)
);
CREATE INDEX invitation_open ON invitation (invited_by, created_at) WHERE used_at IS NULL AND withdrawn_at IS NULL;

-- What the first visitor must know, so that it is the one who started Imprint.
CREATE TABLE first_code (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    sha256 text NOT NULL CHECK (sha256 ~ '^[0-9a-f]{64}$'),
    created_at timestamptz NOT NULL DEFAULT imprint_now()
);

-- How often somebody tried to come in since a time: by a name, from an address, by a name from an address.
CREATE TABLE sign_in_limit (
    kind text NOT NULL CHECK (kind IN ('name', 'address', 'both')),
    key text NOT NULL CHECK (key ~ '^[0-9a-f]{64}$'),
    tries integer NOT NULL DEFAULT 1 CHECK (tries >= 0),
    began_at timestamptz NOT NULL DEFAULT imprint_now(),
    PRIMARY KEY (kind, key)
);
CREATE INDEX sign_in_limit_over ON sign_in_limit (began_at);

-- What was answered to a request that carried a key of its own, so that the same request is not done twice. status is
-- empty while it runs, and stays so when its server dies; touched_at tells whether it had committed anything by then.
CREATE TABLE idempotency (
    person_id text NOT NULL REFERENCES person,
    key text NOT NULL CHECK (length(key) BETWEEN 1 AND 200),
    request_sha256 text NOT NULL CHECK (request_sha256 ~ '^[0-9a-f]{64}$'),
    token uuid NOT NULL DEFAULT gen_random_uuid(),
    began_at timestamptz NOT NULL DEFAULT imprint_now(),
    running_until timestamptz NOT NULL,
    touched_at timestamptz,
    status integer CHECK (status BETWEEN 200 AND 499),
    media_type text,
    body bytea,
    PRIMARY KEY (person_id, key)
);
CREATE INDEX idempotency_over ON idempotency (began_at);

-- A person's own content, and what goes out on an account at a time, are looked up by whoever they belong to.
CREATE INDEX content_of_owner ON content (owner, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX content_of_owner_by_status ON content (owner, status, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX account_of_owner ON account (owner);
CREATE INDEX publication_on_account ON publication (account_id, due_at, id);

-- The audit as a chain: each line holds the hash of itself and of the line before it of the same row. Whoever moves a
-- row holds its lock, so that its lines come one after the other and nobody waits for anybody else's.
ALTER TABLE audit ADD COLUMN sha256 bytea CHECK (length(sha256) = 32);
CREATE FUNCTION audit_hash(earlier bytea, line audit) RETURNS bytea LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
    SELECT sha256(coalesce(earlier, '') || convert_to(jsonb_build_array(line.id, extract(epoch FROM line.at)::text,
        line.lifecycle, line.row_id, line.move, line.source, line.target, line.actor, line.reason)::text, 'UTF8'))
$$;
CREATE FUNCTION audit_chain() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    NEW.sha256 := audit_hash((SELECT sha256 FROM audit WHERE row_id = NEW.row_id ORDER BY id DESC LIMIT 1), NEW);
    RETURN NEW;
END $$;
CREATE TRIGGER audit_chain BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION audit_chain();
ALTER TABLE audit ENABLE ALWAYS TRIGGER audit_chain;

-- What was written before there was a chain is chained now.
ALTER TABLE audit DISABLE TRIGGER audit_refuse;
DO $$
DECLARE
    line audit;
    earlier audit;
BEGIN
    FOR line IN SELECT * FROM audit ORDER BY row_id, id LOOP
        line.sha256 := audit_hash(CASE WHEN earlier.row_id = line.row_id THEN earlier.sha256 END, line);
        UPDATE audit SET sha256 = line.sha256 WHERE id = line.id;
        earlier := line;
    END LOOP;
END $$;
ALTER TABLE audit ENABLE ALWAYS TRIGGER audit_refuse;
ALTER TABLE audit ALTER COLUMN sha256 SET NOT NULL;

-- A seal holds the hash of the seal before it and of every line up to a number, so that none can vanish. It is made in
-- two steps: sha256 is filled when every transaction has ended that could still write a line with a smaller number.
CREATE TABLE audit_seal (
    number bigint PRIMARY KEY CHECK (number > 0),
    upto bigint NOT NULL,
    after_all xid8 NOT NULL,
    made_at timestamptz NOT NULL DEFAULT imprint_now(),
    lines bigint CHECK (lines > 0),
    sha256 bytea CHECK (length(sha256) = 32),
    CONSTRAINT audit_seal_is_whole CHECK ((lines IS NULL) = (sha256 IS NULL))
);
CREATE UNIQUE INDEX audit_seal_open ON audit_seal ((sha256 IS NULL)) WHERE sha256 IS NULL;
CREATE FUNCTION audit_seal_stays() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'a seal is never broken: % is refused', TG_OP USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER audit_seal_stays BEFORE UPDATE ON audit_seal FOR EACH ROW WHEN (OLD.sha256 IS NOT NULL)
    EXECUTE FUNCTION audit_seal_stays();
CREATE TRIGGER audit_seal_kept BEFORE DELETE OR TRUNCATE ON audit_seal
    FOR EACH STATEMENT EXECUTE FUNCTION audit_seal_stays();
ALTER TABLE audit_seal ENABLE ALWAYS TRIGGER audit_seal_stays;
ALTER TABLE audit_seal ENABLE ALWAYS TRIGGER audit_seal_kept;
INSERT INTO chore (name, every) VALUES ('audit', interval '5 min');

-- Rows that are not where the last line about them says, of every lifecycle there is.
CREATE FUNCTION audit_disagreements() RETURNS TABLE (lifecycle text, row_id uuid, status text, told text)
LANGUAGE plpgsql STABLE SET search_path = public, pg_temp AS $$
DECLARE
    of_table text;
BEGIN
    FOR of_table IN SELECT DISTINCT m.lifecycle FROM lifecycle_move m ORDER BY 1 LOOP
        RETURN QUERY EXECUTE format(
            'SELECT %1$L::text, t.id, t.status, a.target FROM %1$I t LEFT JOIN LATERAL (SELECT target FROM audit '
            'WHERE audit.row_id = t.id AND audit.lifecycle = %1$L ORDER BY audit.id DESC LIMIT 1) a ON true '
            'WHERE a.target IS DISTINCT FROM t.status', of_table);
    END LOOP;
END $$;
