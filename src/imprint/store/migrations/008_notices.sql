-- Where people are told of news and what was sent there; rules that make posts of new chapters.

-- An address of Apprise at which a person is told; sealed with a key that is not in the database, as sign-ins are, and
-- forgotten with the target. service: what is shown of it. digest: whether it hears at once or everything together.
CREATE TABLE target (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    person text NOT NULL CHECK (length(person) BETWEEN 1 AND 200),
    label text NOT NULL CHECK (length(label) BETWEEN 1 AND 100),
    service text NOT NULL CHECK (length(service) BETWEEN 1 AND 100),
    key_id text CHECK (key_id ~ '^[0-9a-f]{16}$'),
    nonce bytea CHECK (length(nonce) = 12),
    sealed bytea CHECK (length(sealed) >= 16),
    digest text NOT NULL DEFAULT 'off' CHECK (digest IN ('off', 'hourly', 'daily')),
    muted boolean NOT NULL DEFAULT false,
    last_error text CHECK (length(last_error) <= 1000),
    last_error_at timestamptz,
    last_sent_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT imprint_now(),
    deleted_at timestamptz,
    CONSTRAINT target_sealed_while_there CHECK (
        (deleted_at IS NULL) = (sealed IS NOT NULL) AND (sealed IS NULL) = (nonce IS NULL) AND (sealed IS NULL) = (key_id IS NULL)),
    CONSTRAINT target_error_is_whole CHECK ((last_error IS NULL) = (last_error_at IS NULL))
);
CREATE UNIQUE INDEX target_label ON target (person, label) WHERE deleted_at IS NULL;
CREATE INDEX target_by_key ON target (key_id, id) WHERE deleted_at IS NULL;

-- told: its notices were handed to the targets of those who have some.
ALTER TABLE chapter ADD COLUMN told boolean NOT NULL DEFAULT false;
CREATE INDEX chapter_untold ON chapter (series_id) WHERE NOT silent AND NOT told;

-- One message to one target: the news of one series in a window, or of all (series_id is empty) in a digest.
-- closed_at: it takes no more notices, since somebody began to send it. lease_until, fence: somebody is sending it.
-- lost: how often the one who was sending it died; nobody can tell then whether it went out.
-- failed_at: it failed for good and is a dead letter, until a person requeues it or lets it go (ended_at).
CREATE TABLE delivery (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    target_id uuid NOT NULL REFERENCES target,
    series_id uuid REFERENCES series,
    next_at timestamptz NOT NULL CHECK (next_at BETWEEN '1970-01-01' AND '9999-01-01'),
    held_until timestamptz CHECK (held_until BETWEEN '1970-01-01' AND '9999-01-01'),
    closed_at timestamptz,
    attempts integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    lost integer NOT NULL DEFAULT 0 CHECK (lost >= 0),
    fence bigint NOT NULL DEFAULT 0,
    lease_until timestamptz CHECK (lease_until BETWEEN '1970-01-01' AND '9999-01-01'),
    failed_at timestamptz,
    error text CHECK (length(error) <= 1000),
    ended_at timestamptz,
    outcome text CHECK (outcome IN ('sent', 'moot', 'discarded')),
    created_at timestamptz NOT NULL DEFAULT imprint_now(),
    wake_at timestamptz GENERATED ALWAYS AS (
        CASE WHEN ended_at IS NULL AND failed_at IS NULL THEN greatest(next_at, held_until, lease_until) END
    ) STORED,
    CONSTRAINT delivery_ends_somehow CHECK ((ended_at IS NULL) = (outcome IS NULL)),
    CONSTRAINT delivery_fails_for_a_reason CHECK (failed_at IS NULL OR error IS NOT NULL),
    CONSTRAINT delivery_closed_before_it_is_sent
        CHECK (closed_at IS NOT NULL OR (attempts = 0 AND lease_until IS NULL AND failed_at IS NULL AND ended_at IS NULL)),
    CONSTRAINT delivery_of_target UNIQUE (id, target_id)
);
CREATE INDEX delivery_due ON delivery (wake_at) WHERE ended_at IS NULL AND failed_at IS NULL;
CREATE INDEX delivery_dead ON delivery (failed_at) WHERE failed_at IS NOT NULL AND ended_at IS NULL;
CREATE INDEX delivery_waiting_for_target ON delivery (target_id) WHERE ended_at IS NULL;
-- One message at a time gathers what is new, however many hand it over at once.
CREATE UNIQUE INDEX delivery_gathers ON delivery (target_id, coalesce(series_id, target_id)) WHERE closed_at IS NULL;

-- Once: whatever the code does, a notice is in one message to a target.
CREATE TABLE delivery_notice (
    target_id uuid NOT NULL,
    notice_id bigint NOT NULL REFERENCES notice,
    delivery_id bigint NOT NULL,
    PRIMARY KEY (target_id, notice_id),
    FOREIGN KEY (delivery_id, target_id) REFERENCES delivery (id, target_id)
);
CREATE INDEX delivery_notice_of_delivery ON delivery_notice (delivery_id);

-- Why a delivery has not arrived yet, attempt by attempt; forgotten when it has.
CREATE TABLE delivery_attempt (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    delivery_id bigint NOT NULL REFERENCES delivery,
    at timestamptz NOT NULL DEFAULT imprint_now(),
    error text NOT NULL CHECK (length(error) <= 1000)
);
CREATE INDEX delivery_attempt_of_delivery ON delivery_attempt (delivery_id, id);

CREATE TRIGGER clock_ring_inserted AFTER INSERT ON delivery REFERENCING NEW TABLE AS inserted
    FOR EACH STATEMENT EXECUTE FUNCTION clock_ring_inserted();
CREATE TRIGGER clock_ring_updated AFTER UPDATE ON delivery FOR EACH ROW
    WHEN (NEW.wake_at < coalesce(OLD.wake_at, 'infinity')) EXECUTE FUNCTION clock_ring_updated();

-- «new chapter → post»: what is written of a chapter, where it goes and how long after. since: chapters found later than
-- that are announced; what came out while a rule was off is not made up for.
CREATE TABLE rule (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    owner text NOT NULL CHECK (length(owner) BETWEEN 1 AND 200),
    series_id uuid NOT NULL REFERENCES series,
    title text NOT NULL CHECK (length(title) BETWEEN 1 AND 500),
    body text NOT NULL CHECK (length(body) BETWEEN 1 AND 100000),
    tags text[] NOT NULL DEFAULT '{}' CHECK (cardinality(tags) <= 100 AND array_position(tags, NULL) IS NULL),
    delay interval NOT NULL DEFAULT interval '0' CHECK (delay BETWEEN interval '0' AND interval '365 days'),
    zone text NOT NULL DEFAULT 'UTC' CHECK (length(zone) BETWEEN 1 AND 64),
    enabled boolean NOT NULL DEFAULT true,
    since timestamptz NOT NULL DEFAULT imprint_now(),
    created_at timestamptz NOT NULL DEFAULT imprint_now(),
    deleted_at timestamptz
);
CREATE INDEX rule_of_series ON rule (series_id) WHERE deleted_at IS NULL AND enabled;
CREATE INDEX rule_by_time ON rule (owner, created_at, id) WHERE deleted_at IS NULL;

CREATE TABLE rule_account (
    rule_id uuid NOT NULL REFERENCES rule,
    account_id uuid NOT NULL REFERENCES account,
    PRIMARY KEY (rule_id, account_id)
);

-- One post for each chapter and rule, for ever.
CREATE TABLE announcement (
    rule_id uuid NOT NULL REFERENCES rule,
    chapter_id bigint NOT NULL REFERENCES chapter,
    post_id uuid NOT NULL UNIQUE REFERENCES post,
    created_at timestamptz NOT NULL DEFAULT imprint_now(),
    PRIMARY KEY (rule_id, chapter_id)
);

-- What was not told because its job came at the wrong moment is told a little later.
INSERT INTO chore (name, every) VALUES ('news', interval '1 min');
