-- What the engine keeps: circuits, pace, chores, workers, and the mark that tells a restored database apart.

-- A circuit stops calls to something that keeps refusing, for everybody at once; what works has no row.
-- openings: how often in a row it has opened by itself; 0 while it only waits as long as it was asked to.
CREATE TABLE circuit (
    key text PRIMARY KEY,
    rate_limits integer NOT NULL DEFAULT 0 CHECK (rate_limits >= 0),
    errors integer NOT NULL DEFAULT 0 CHECK (errors >= 0),
    openings integer NOT NULL DEFAULT 0 CHECK (openings >= 0),
    open_until timestamptz,
    probe_until timestamptz,
    last_error text CHECK (length(last_error) <= 500),
    changed_at timestamptz NOT NULL DEFAULT imprint_now(),
    CONSTRAINT circuit_opened_until_a_time CHECK (openings = 0 OR open_until IS NOT NULL),
    CONSTRAINT circuit_probed_after_opening CHECK (probe_until IS NULL OR open_until IS NOT NULL)
);

-- The pace spreads calls: each call takes the next free moment.
CREATE TABLE pace (
    key text PRIMARY KEY,
    gap interval NOT NULL CHECK (gap > interval '0'),
    next_at timestamptz NOT NULL
);

CREATE TABLE chore (
    name text PRIMARY KEY,
    every interval NOT NULL CHECK (every > interval '0'),
    next_at timestamptz NOT NULL DEFAULT imprint_now() CHECK (next_at BETWEEN '1970-01-01' AND '9999-01-01'),
    wake_at timestamptz GENERATED ALWAYS AS (next_at) STORED
);
CREATE INDEX chore_due ON chore (wake_at);
INSERT INTO chore (name, every) VALUES ('clean', interval '1 hour');

CREATE TABLE worker (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    version text NOT NULL,
    concurrency integer NOT NULL,
    started_at timestamptz NOT NULL DEFAULT imprint_now(),
    seen_at timestamptz NOT NULL DEFAULT imprint_now()
);

-- One row: which database this is. The generation grows while Imprint runs and is kept in the home as well;
-- a database that is behind its home was restored from the past, one of another id or place was cloned.
CREATE TABLE incarnation (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    place text NOT NULL,
    generation bigint NOT NULL DEFAULT 1,
    held_since timestamptz,
    held_why text,
    CHECK ((held_since IS NULL) = (held_why IS NULL))
);

-- The clock sleeps until the earliest wake_at; whoever makes an earlier one rings.
-- An insert rings once for all its rows, an update for each row whose time changed.
CREATE FUNCTION clock_ring_inserted() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
    earliest timestamptz;
BEGIN
    SELECT min(wake_at) INTO earliest FROM inserted;
    IF earliest < 'infinity' THEN
        PERFORM pg_notify('imprint_clock', extract(epoch FROM earliest)::text);
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION clock_ring_updated() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM pg_notify('imprint_clock', extract(epoch FROM NEW.wake_at)::text);
    RETURN NULL;
END $$;
CREATE FUNCTION clock_ring_now() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM pg_notify('imprint_clock', '0');
    RETURN NULL;
END $$;

DO $$
DECLARE
    timed text;
BEGIN
    FOREACH timed IN ARRAY ARRAY['publication', 'source', 'chore'] LOOP
        EXECUTE format('CREATE TRIGGER clock_ring_inserted AFTER INSERT ON %I REFERENCING NEW TABLE AS inserted
            FOR EACH STATEMENT EXECUTE FUNCTION clock_ring_inserted()', timed);
        -- Only an earlier time is news: a later one is found when the clock wakes and looks again.
        EXECUTE format('CREATE TRIGGER clock_ring_updated AFTER UPDATE ON %I FOR EACH ROW
            WHEN (NEW.wake_at < coalesce(OLD.wake_at, ''infinity'')) EXECUTE FUNCTION clock_ring_updated()', timed);
    END LOOP;
END $$;
CREATE TRIGGER clock_ring_resumed AFTER UPDATE ON incarnation
    FOR EACH ROW WHEN (OLD.held_since IS NOT NULL AND NEW.held_since IS NULL) EXECUTE FUNCTION clock_ring_now();

-- When an account becomes free the next publication that is due there need not wait any longer. One that is
-- locked is being claimed, and its claim waits for us to leave the account: to wait for it would be a deadlock.
CREATE FUNCTION publication_next() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE publication SET held_until = NULL
    WHERE id = (SELECT id FROM publication
                WHERE account_id = NEW.account_id AND status = 'pending' AND due_at <= imprint_now() AND id <> NEW.id
                ORDER BY due_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED)
      AND held_until IS NOT NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER publication_next AFTER UPDATE ON publication
    FOR EACH ROW WHEN (OLD.status = 'running' AND NEW.status <> 'running') EXECUTE FUNCTION publication_next();

-- When an account can be used again, what waited for it waits no longer.
CREATE FUNCTION account_back() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE publication SET held_until = NULL
    WHERE account_id = NEW.id AND status IN ('pending', 'unknown') AND held_until = 'infinity';
    RETURN NULL;
END $$;
CREATE TRIGGER account_back AFTER UPDATE ON account
    FOR EACH ROW WHEN (OLD.status <> 'connected' AND NEW.status = 'connected') EXECUTE FUNCTION account_back();

-- A new time is a new question: whatever held the row back is asked again then.
CREATE FUNCTION publication_rescheduled() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    NEW.held_until := NULL;
    RETURN NEW;
END $$;
CREATE TRIGGER publication_rescheduled BEFORE UPDATE ON publication
    FOR EACH ROW WHEN (OLD.due_at IS DISTINCT FROM NEW.due_at) EXECUTE FUNCTION publication_rescheduled();
