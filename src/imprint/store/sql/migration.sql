-- name: migration_lock
-- Lets one process at a time migrate; the lock ends with the session, however it ends.
SELECT pg_advisory_lock(7600001)::text AS locked

-- name: migration_unlock
-- Lets the next process migrate.
SELECT pg_advisory_unlock(7600001) AS unlocked

-- name: migration_table_exists
-- Whether this database has ever been migrated.
SELECT to_regclass('migration') IS NOT NULL AS there

-- name: migration_table_create
-- Makes the table that remembers what was applied.
CREATE TABLE IF NOT EXISTS migration (
    number integer PRIMARY KEY,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT statement_timestamp()
)

-- name: migration_applied
-- What was applied so far; the parts that are written anew when they change have numbers below one.
SELECT number, name, checksum FROM migration ORDER BY number

-- name: migration_record
-- Remembers that a migration was applied.
INSERT INTO migration (number, name, checksum) VALUES ($1, $2, $3)
ON CONFLICT (number) DO UPDATE SET name = $2, checksum = $3, applied_at = statement_timestamp()
