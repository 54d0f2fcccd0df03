-- Time, lifecycles and their audit: what every later table stands on.

-- The one source of time. STABLE, so that `wake_at <= imprint_now()` can use an index; tests and
-- proofs move it with the setting imprint.clock_offset, of a session or of a whole database.
CREATE FUNCTION imprint_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT statement_timestamp() + coalesce(nullif(current_setting('imprint.clock_offset', true), ''), '0')::interval
$$;

CREATE TABLE lifecycle_move (
    lifecycle text NOT NULL,
    source text NOT NULL,
    target text NOT NULL,
    name text NOT NULL,
    why text NOT NULL,
    PRIMARY KEY (lifecycle, source, target)
);
COMMENT ON TABLE lifecycle_move IS 'The moves that are allowed, written from the declarations in imprint/lifecycles.';

CREATE TABLE audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT imprint_now(),
    lifecycle text NOT NULL,
    row_id uuid NOT NULL,
    move text NOT NULL,
    source text,
    target text NOT NULL,
    actor text NOT NULL,
    reason text
);
CREATE INDEX audit_of_row ON audit (row_id, id);
COMMENT ON TABLE audit IS 'Every move that was accepted: what, from, to, when, who, why. Only ever appended to.';

CREATE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'the audit is only ever appended to: % is refused', TG_OP
        USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER audit_refuse BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
ALTER TABLE audit ENABLE ALWAYS TRIGGER audit_refuse;

CREATE FUNCTION lifecycle_stamp() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    NEW.status_at := imprint_now();
    RETURN NEW;
END $$;

-- Names the move it sees, refuses one it does not know, and writes the audit in the same transaction.
CREATE FUNCTION lifecycle_guard() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
    before text;
    seen text;
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.status <> TG_ARGV[0] THEN
            RAISE EXCEPTION 'a % begins as %, not as %', TG_TABLE_NAME, TG_ARGV[0], NEW.status
                USING ERRCODE = 'check_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'lifecycle_begin';
        END IF;
        seen := 'create';
    ELSE
        before := OLD.status;
        SELECT name INTO seen FROM lifecycle_move
            WHERE lifecycle = TG_TABLE_NAME AND source = OLD.status AND target = NEW.status;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'a % cannot go from % to %', TG_TABLE_NAME, OLD.status, NEW.status
                USING ERRCODE = 'check_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'lifecycle_move',
                HINT = coalesce('From here it can go to '
                    || (SELECT string_agg(target, ', ' ORDER BY target) FROM lifecycle_move
                        WHERE lifecycle = TG_TABLE_NAME AND source = OLD.status) || '.', 'This is where it ends.');
        END IF;
    END IF;
    INSERT INTO audit (lifecycle, row_id, move, source, target, actor, reason)
    VALUES (TG_TABLE_NAME, NEW.id, seen, before, NEW.status,
            coalesce(nullif(current_setting('imprint.actor', true), ''), 'database user ' || session_user),
            nullif(current_setting('imprint.reason', true), ''));
    IF NOT FOUND THEN  -- somebody has put a rule in the way
        RAISE EXCEPTION 'the audit could not be written' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION lifecycle_refuse() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'the % of a % is refused: its history would be lost', TG_ARGV[0], TG_TABLE_NAME
        USING ERRCODE = 'check_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'lifecycle_refuse';
END $$;

-- Lets a changed declaration take the place of the checks an older one made.
CREATE FUNCTION lifecycle_drop_checks(of_table regclass) RETURNS void LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
    old record;
BEGIN
    FOR old IN SELECT conname FROM pg_constraint WHERE conrelid = of_table AND conname LIKE 'lifecycle\_%' LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', of_table, old.conname);
    END LOOP;
END $$;
