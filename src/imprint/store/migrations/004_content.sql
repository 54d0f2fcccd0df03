-- Content: what is known of bytes, what was promised of an upload, who is making which variant, and when what was
-- deleted is gone for good. Rows are never removed: `deleted_at` is the only deletion, `purged_at` says that bytes are gone.

-- purge_at: when the bytes of deleted content are removed.
ALTER TABLE content
    ADD COLUMN owner text NOT NULL DEFAULT 'operator' CHECK (length(owner) BETWEEN 1 AND 200),
    ADD COLUMN purge_at timestamptz,
    ADD COLUMN purged_at timestamptz,
    ADD CONSTRAINT content_name_is_short CHECK (length(name) <= 200),
    ADD CONSTRAINT content_purged_after_deletion
        CHECK ((purge_at IS NULL AND purged_at IS NULL) OR deleted_at IS NOT NULL);
CREATE INDEX content_by_time ON content (created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX content_by_status ON content (status, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX content_to_purge ON content (purge_at) WHERE purge_at IS NOT NULL;

-- An object is an original (no variant) or a variant that was made. Its key is never used again: what is uploaded or
-- made anew gets a new one. expected_…, nonce and expires_at are the promise of an upload; used_at says that its URL
-- was used. size and sha256 are filled once the bytes were read through and found to be what they should be.
ALTER TABLE object
    ADD COLUMN variant text,
    ADD COLUMN version integer NOT NULL DEFAULT 1 CHECK (version > 0),
    ADD COLUMN store text,
    ADD COLUMN key text COLLATE "C",
    ADD COLUMN size bigint CHECK (size > 0),
    ADD COLUMN sha256 text CHECK (sha256 ~ '^[0-9a-f]{64}$'),
    ADD COLUMN content_type text,
    ADD COLUMN width integer CHECK (width > 0),
    ADD COLUMN height integer CHECK (height > 0),
    ADD COLUMN frames integer CHECK (frames > 0),
    ADD COLUMN has_alpha boolean,
    ADD COLUMN orientation integer,
    ADD COLUMN expected_size bigint CHECK (expected_size > 0),
    ADD COLUMN expected_sha256 text CHECK (expected_sha256 ~ '^[0-9a-f]{64}$'),
    ADD COLUMN expected_type text,
    ADD COLUMN nonce text UNIQUE,
    ADD COLUMN expires_at timestamptz,
    ADD COLUMN used_at timestamptz,
    ADD COLUMN purge_at timestamptz,
    ADD COLUMN purged_at timestamptz,
    ADD CONSTRAINT object_is_somewhere CHECK ((store IS NULL) = (key IS NULL)),
    ADD CONSTRAINT object_is_verified_whole CHECK ((sha256 IS NULL) = (size IS NULL)),
    ADD CONSTRAINT object_purged_after_deletion CHECK (purge_at IS NULL OR deleted_at IS NOT NULL),
    ADD CONSTRAINT object_of_its_content UNIQUE (id, content_id);
CREATE UNIQUE INDEX object_key ON object (key, store);
CREATE INDEX object_in_store ON object (store, key);
CREATE UNIQUE INDEX object_original ON object (content_id, store, version) WHERE variant IS NULL AND deleted_at IS NULL;
CREATE INDEX object_unfinished ON object (expires_at, content_id)
    WHERE variant IS NULL AND status IN ('created', 'uploading');
CREATE INDEX object_promised ON object (expected_sha256) WHERE variant IS NULL AND sha256 IS NULL;
CREATE INDEX object_to_purge ON object (purge_at) WHERE purge_at IS NOT NULL;

-- wanted: every content has it; the others are made on demand, such as what fits a platform's limits, and their end
-- does not decide about the content's. Processing without a lease: it waits for a worker.
ALTER TABLE derivation
    ADD COLUMN recipe jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN wanted boolean NOT NULL DEFAULT true,
    ADD COLUMN object_id uuid,
    ADD COLUMN fence bigint NOT NULL DEFAULT 0,
    ADD COLUMN lease_until timestamptz,
    ADD COLUMN crashes integer NOT NULL DEFAULT 0 CHECK (crashes >= 0),
    ADD COLUMN failures integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
    ADD COLUMN deleted_at timestamptz,
    -- A variant is made of the very content it is recorded for.
    ADD CONSTRAINT derivation_of_its_parent FOREIGN KEY (object_id, parent_id) REFERENCES object (id, content_id);
CREATE UNIQUE INDEX derivation_object ON derivation (object_id);
CREATE INDEX derivation_open ON derivation (status_at) WHERE status IN ('created', 'processing') AND deleted_at IS NULL;
CREATE INDEX derivation_failed ON derivation (parent_id) WHERE status = 'failed';

-- How far something has come that goes through everything and may be stopped at any time.
CREATE TABLE sweep (
    name text PRIMARY KEY,
    cursor text NOT NULL,
    tally text NOT NULL DEFAULT '{}',
    began_at timestamptz NOT NULL DEFAULT imprint_now(),
    moved_at timestamptz NOT NULL DEFAULT imprint_now()
);

INSERT INTO chore (name, every) VALUES ('content', interval '2 min'), ('bytes', interval '1 hour');
