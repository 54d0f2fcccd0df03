-- Batches: publications in order, with an interval from the end of one attempt to the beginning of the next.

-- starts_at: when the person wants the first one to go, in the zone in which they think.
CREATE TABLE batch (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    owner text NOT NULL CHECK (length(owner) BETWEEN 1 AND 200),
    every interval NOT NULL CHECK (every BETWEEN interval '0' AND interval '1440 minutes'),
    starts_at timestamptz NOT NULL,
    zone text NOT NULL CHECK (length(zone) BETWEEN 1 AND 64),
    created_at timestamptz NOT NULL DEFAULT imprint_now(),
    deleted_at timestamptz
);
CREATE INDEX batch_by_time ON batch (owner, created_at, id) WHERE deleted_at IS NULL;

-- When the next publication of a batch gets its turn; no row while one has it, or when nothing is behind any more.
-- A table of its own: whoever ends an attempt only adds a row here, and waits for no other publication of the batch.
CREATE TABLE batch_turn (
    batch_id uuid PRIMARY KEY REFERENCES batch,
    at timestamptz NOT NULL CHECK (at BETWEEN '1970-01-01' AND '9999-01-01'),
    paused boolean NOT NULL DEFAULT false,
    wake_at timestamptz GENERATED ALWAYS AS (CASE WHEN NOT paused THEN at END) STORED
);
CREATE INDEX batch_turn_due ON batch_turn (wake_at);
CREATE TRIGGER clock_ring_inserted AFTER INSERT ON batch_turn REFERENCING NEW TABLE AS inserted
    FOR EACH STATEMENT EXECUTE FUNCTION clock_ring_inserted();
CREATE TRIGGER clock_ring_updated AFTER UPDATE ON batch_turn FOR EACH ROW
    WHEN (NEW.wake_at < coalesce(OLD.wake_at, 'infinity')) EXECUTE FUNCTION clock_ring_updated();

-- turn: behind until its turn has come, at the front until its attempt has ended, over from then on, also when it is
-- tried again. paused: the batch is; kept in each row, so that the clock and a claim need not look elsewhere.
ALTER TABLE publication
    ADD COLUMN batch_id uuid REFERENCES batch,
    ADD COLUMN batch_place integer CHECK (batch_place >= 1),
    ADD COLUMN turn text CHECK (turn IN ('behind', 'front', 'over')),
    ADD COLUMN paused boolean NOT NULL DEFAULT false,
    ADD CONSTRAINT publication_has_a_place_in_its_batch
        CHECK ((batch_id IS NULL) = (batch_place IS NULL) AND (batch_id IS NULL) = (turn IS NULL)),
    ADD CONSTRAINT publication_paused_in_a_batch CHECK (batch_id IS NOT NULL OR NOT paused),
    -- Whatever the code does, nothing goes before its turn.
    ADD CONSTRAINT publication_behind_waits CHECK (turn <> 'behind' OR status = 'pending'),
    ADD CONSTRAINT publication_front_goes CHECK (turn <> 'front' OR status IN ('pending', 'running')),
    -- At the end of a statement: while publications change places two may stand on the same one.
    ADD CONSTRAINT publication_place UNIQUE (batch_id, batch_place) DEFERRABLE;
CREATE INDEX publication_behind ON publication (batch_id, batch_place) WHERE turn = 'behind';
CREATE UNIQUE INDEX publication_front ON publication (batch_id) WHERE turn = 'front';

-- As before, but what is behind or paused does not wake the clock, whatever else becomes of it.
DROP TRIGGER clock_ring_updated ON publication;
ALTER TABLE publication DROP COLUMN wake_at;
ALTER TABLE publication ADD COLUMN wake_at timestamptz GENERATED ALWAYS AS (
    CASE WHEN status = 'pending' AND NOT paused AND turn IS DISTINCT FROM 'behind' THEN greatest(due_at, held_until)
         WHEN status = 'running' THEN lease_until
         WHEN status = 'unknown' AND look_at IS NOT NULL THEN greatest(look_at, held_until) END
) STORED;
CREATE INDEX publication_due ON publication (wake_at) WHERE status = 'pending';
CREATE INDEX publication_leased ON publication (wake_at) WHERE status = 'running';
CREATE INDEX publication_unknown ON publication (wake_at) WHERE status = 'unknown';
CREATE TRIGGER clock_ring_updated AFTER UPDATE ON publication FOR EACH ROW
    WHEN (NEW.wake_at < coalesce(OLD.wake_at, 'infinity')) EXECUTE FUNCTION clock_ring_updated();

-- As before, but one that is behind or paused could not go anyway.
CREATE OR REPLACE FUNCTION publication_next() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    UPDATE publication SET held_until = NULL
    WHERE id = (SELECT id FROM publication
                WHERE account_id = NEW.account_id AND status = 'pending' AND due_at <= imprint_now() AND id <> NEW.id
                  AND NOT paused AND turn IS DISTINCT FROM 'behind'
                ORDER BY due_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED)
      AND held_until IS NOT NULL;
    RETURN NULL;
END $$;

-- The turn is passed on in the transaction that ends an attempt, after the batch's interval. One that is cancelled or
-- refused at the front was not tried, so the next need not wait; and one that leaves the batch takes nothing with it.
-- A worker that died or was stopped before anything left does not end the turn: another one goes on with the same.
-- One whose account is away goes behind again, so that others do not wait for it and it does not lose its place.
CREATE FUNCTION publication_turn() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
    ended boolean := OLD.status = 'running' AND NEW.status <> 'running';
BEGIN
    IF NEW.batch_id IS NULL THEN
        NEW.batch_place := NULL;
        NEW.turn := NULL;
        NEW.paused := false;
    ELSIF NEW.status = 'running' THEN
        RETURN NEW;
    ELSIF NEW.status <> 'pending' THEN
        NEW.turn := 'over';
    ELSIF OLD.turn <> 'front' THEN
        RETURN NEW;
    ELSIF NEW.held_why = 'account' AND NEW.held_until = 'infinity' THEN
        NEW.turn := 'behind';
    ELSIF ended AND EXISTS (SELECT FROM attempt WHERE publication_id = NEW.id AND fence = OLD.fence
                              AND outcome NOT IN ('died', 'stopped')) THEN
        NEW.turn := 'over';
    ELSE
        RETURN NEW;
    END IF;
    IF OLD.turn = 'front' THEN
        INSERT INTO batch_turn (batch_id, at, paused)
        SELECT id, imprint_now() + CASE WHEN ended THEN every ELSE interval '0' END, OLD.paused
        FROM batch WHERE id = OLD.batch_id
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN NEW;
END $$;
-- After publication_rescheduled, by its name: what that one lets go is no longer held.
CREATE TRIGGER publication_turn BEFORE UPDATE ON publication FOR EACH ROW
    WHEN (OLD.batch_id IS NOT NULL AND (NEW.batch_id IS NULL OR OLD.turn <> 'over' AND
          (OLD.status <> NEW.status OR NEW.held_why = 'account')))
    EXECUTE FUNCTION publication_turn();
ALTER TABLE publication ENABLE ALWAYS TRIGGER publication_turn;
