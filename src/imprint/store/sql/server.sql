-- name: server_facts
-- What decides whether this server keeps what it has acknowledged.
SELECT current_setting('server_version_num')::int AS version,
       current_setting('server_version') AS version_text,
       current_setting('fsync') AS fsync,
       current_setting('full_page_writes') AS full_page_writes,
       current_setting('synchronous_commit') AS synchronous_commit,
       pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean AS read_only

-- name: server_act
-- Says who acts and why, for the audit, until the transaction ends.
SELECT set_config('imprint.actor', $1, true) AS actor, set_config('imprint.reason', $2, true) AS reason

-- name: server_time
-- The moment it is, for Imprint and for the server itself.
SELECT imprint_now() AS now, statement_timestamp() AS server
