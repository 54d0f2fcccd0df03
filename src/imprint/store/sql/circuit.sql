-- name: circuit_ask
-- Says whether a call may be made now; after the open time exactly one caller is handed the probe.
WITH known AS (
    SELECT key, open_until, probe_until, last_error FROM circuit WHERE key = $1 FOR UPDATE
), probing AS (
    UPDATE circuit c SET probe_until = imprint_now() + $2::interval, changed_at = imprint_now()
    FROM known
    WHERE c.key = known.key AND known.open_until <= imprint_now()
      AND coalesce(known.probe_until <= imprint_now(), true)
    RETURNING c.probe_until
)
SELECT CASE WHEN probing.probe_until IS NOT NULL THEN 'probe'
            WHEN known.open_until IS NOT NULL THEN 'open'
            ELSE 'closed' END AS state,
       coalesce(probing.probe_until, greatest(known.open_until, known.probe_until)) AS until,
       known.last_error AS why
FROM (SELECT) AS asked LEFT JOIN known ON true LEFT JOIN probing ON true

-- name: circuit_failed
-- Counts a failure; opens the circuit when it is one too many in a row or the probe's, and for as long as we were
-- asked to wait. While it is open a failure is that of an earlier call, and only its wish to wait counts.
INSERT INTO circuit AS c (key, rate_limits, errors, openings, open_until, last_error)
SELECT $1, told.rate_limits, told.errors, finds.opens::integer,
       greatest(CASE WHEN finds.opens THEN imprint_now() + $7::interval END, finds.wait_until), $3
FROM (SELECT ($2::text = 'rate limit')::integer AS rate_limits, ($2 = 'error')::integer AS errors) AS told,
LATERAL (
    SELECT told.rate_limits >= $4::integer OR told.errors >= $5::integer
               OR told.rate_limits + told.errors >= $6::integer AS opens,
           CASE WHEN $9::interval > interval '0' THEN imprint_now() + least($9, $10::interval) END AS wait_until
) AS finds
ON CONFLICT (key) DO UPDATE SET (rate_limits, errors, openings, open_until, probe_until, last_error, changed_at) = (
    SELECT told.rate_limits, told.errors, c.openings + finds.opens::integer,
           greatest(CASE WHEN finds.open THEN c.open_until END,
                    -- 2^20 times the first is beyond every longest, and within what an interval can hold.
                    CASE WHEN finds.opens THEN imprint_now() + least($7 * 2 ^ least(c.openings, 20), $8::interval) END,
                    CASE WHEN $9 > interval '0' THEN imprint_now() + least($9, $10) END),
           NULL::timestamptz, excluded.last_error, imprint_now()
    FROM (SELECT c.rate_limits + excluded.rate_limits AS rate_limits, c.errors + excluded.errors AS errors,
                 coalesce(c.open_until > imprint_now(), false) AS open) AS told,
    LATERAL (
        SELECT told.open,
               NOT told.open AND (c.openings > 0 OR told.rate_limits >= $4 OR told.errors >= $5
                                  OR told.rate_limits + told.errors >= $6) AS opens
    ) AS finds
)
RETURNING rate_limits, errors, openings, open_until

-- name: circuit_worked
-- Closes the circuit and forgets the failures; while it is open, a success is that of an earlier call and is no news.
DELETE FROM circuit WHERE key = $1 AND coalesce(open_until <= imprint_now(), true)

-- name: circuit_forget
-- Closes the circuit at once, open or not, because a person says that the cause is gone.
DELETE FROM circuit WHERE key = $1

-- name: circuit_probe
-- Lets the next call be the probe of an open circuit, because a person wants it tried now.
UPDATE circuit SET open_until = imprint_now(), probe_until = NULL, changed_at = imprint_now()
WHERE key = $1 AND open_until > imprint_now()
