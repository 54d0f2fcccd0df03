-- name: day_parts
-- The last day in parts of a quarter of an hour: attempts by how they ended, how late they began, how many publications
-- were due and waited at most and at the end of each part, and how many workers there were; of the newest 100,000.
WITH part AS MATERIALIZED (
    SELECT generate_series(date_bin('15 min', imprint_now() - interval '23 h 45 min', 'epoch'), imprint_now(),
                           interval '15 min') AS at
), recent AS MATERIALIZED (
    SELECT date_bin('15 min', began_at, 'epoch') AS began_in, date_bin('15 min', ended_at, 'epoch') AS ended_in, began_at,
           extract(epoch FROM drift)::float8 AS drift, began_at - greatest(drift, interval '0') AS due_at, outcome, worker,
           row_number() OVER (PARTITION BY publication_id ORDER BY began_at) AS try
    FROM attempt WHERE began_at >= (SELECT min(at) FROM part) ORDER BY began_at DESC LIMIT 100000
), ended AS (
    SELECT ended_in AS at, count(*) FILTER (WHERE outcome = 'published') AS published,
           count(*) FILTER (WHERE outcome IN ('refused', 'sign_in_again', 'no_answer', 'died')) AS failed,
           count(*) FILTER (WHERE outcome IN ('not_yet', 'rate_limited', 'stopped')) AS put_off
    FROM recent GROUP BY ended_in
), late AS (
    SELECT began_in AS at, percentile_cont(0.5) WITHIN GROUP (ORDER BY drift) AS p50,
           percentile_cont(0.99) WITHIN GROUP (ORDER BY drift) AS p99
    FROM recent WHERE drift IS NOT NULL GROUP BY began_in
), step AS (
    -- A publication waits from its time until it is first tried; what was due before the day has waited from its start.
    SELECT greatest(due_at, (SELECT min(at) FROM part)) AS at, 1 AS more FROM recent WHERE try = 1 AND due_at IS NOT NULL
    UNION ALL
    SELECT began_at, -1 FROM recent WHERE try = 1 AND due_at IS NOT NULL
    UNION ALL
    (SELECT greatest(wake_at, (SELECT min(at) FROM part)), 1 FROM publication
     WHERE status = 'pending' AND wake_at <= imprint_now() LIMIT 100000)
), depth AS (
    SELECT at, sum(more) OVER (ORDER BY at, more DESC ROWS UNBOUNDED PRECEDING) AS waits,
           row_number() OVER (ORDER BY at DESC, more) AS place
    FROM step
), waited AS (
    SELECT date_bin('15 min', at, 'epoch') AS at, max(waits) AS most, (array_agg(waits ORDER BY place))[1] AS left_over
    FROM depth GROUP BY 1
), seen AS (
    SELECT began_in AS at, regexp_replace(worker, '^worker ', '') AS name FROM recent WHERE worker IS NOT NULL
    UNION
    SELECT part.at, worker.name FROM part JOIN worker
        ON worker.started_at < part.at + interval '15 min' AND worker.seen_at >= part.at
), at_work AS (
    SELECT at, count(*) AS workers FROM seen GROUP BY at
)
SELECT part.at, coalesce(published, 0) AS published, coalesce(failed, 0) AS failed, coalesce(put_off, 0) AS put_off,
    p50, p99, most, left_over, coalesce(workers, 0) AS workers
FROM part LEFT JOIN ended USING (at) LEFT JOIN late USING (at) LEFT JOIN waited USING (at) LEFT JOIN at_work USING (at)
ORDER BY part.at

-- name: day_circuits
-- The circuits that are open now, of what they are, and why; at most 50.
SELECT split_part(c.key, ':', 1) AS kind,
    coalesce(a.platform || ' ' || coalesce(a.label, a.name, ''), t.label, s.name, substr(c.key, strpos(c.key, ':') + 1)) AS about,
    c.open_until, c.last_error
FROM circuit c LEFT JOIN account a ON 'account:' || a.id = c.key LEFT JOIN target t ON 'target:' || t.id = c.key
LEFT JOIN source s ON 'source:' || s.id = c.key
WHERE c.open_until > imprint_now() ORDER BY c.open_until DESC LIMIT 50
