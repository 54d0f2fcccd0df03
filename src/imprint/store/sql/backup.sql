-- name: backup_is_empty
-- Whether there is nothing in this database yet.
SELECT NOT EXISTS (SELECT FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r') AS there

-- name: backup_drop_restored
-- Clears away what a restore that was cut short has left.
DROP DATABASE IF EXISTS imprint_restored

-- name: backup_create_restored
-- Makes the database a backup is read into, beside the one in use.
CREATE DATABASE imprint_restored TEMPLATE template0 ENCODING 'UTF8'

-- name: backup_set_aside
-- Takes the old database out of the way; with the next statement in one transaction, so there is always one.
ALTER DATABASE imprint RENAME TO imprint_before_restore

-- name: backup_put_in_place
-- Puts the restored database in the place of the old one.
ALTER DATABASE imprint_restored RENAME TO imprint

-- name: backup_drop_set_aside
-- Removes the database that was replaced; it was backed up before.
DROP DATABASE IF EXISTS imprint_before_restore
