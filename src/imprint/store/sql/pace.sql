-- name: pace_take
-- Reserves the next free moment for some calls and says how long until then; a wait that is longer than the patience
-- reserves nothing.
WITH taken AS (
    INSERT INTO pace AS p (key, gap, next_at) VALUES ($1, $2::interval, imprint_now() + $2 * $5::integer)
    ON CONFLICT (key) DO UPDATE SET (gap, next_at) = (
        SELECT gap, greatest(p.next_at, imprint_now()) + gap * $5
        FROM (SELECT least(greatest(p.gap, $2), $3::interval)) AS now_is (gap)
    )
    WHERE coalesce(p.next_at - imprint_now() <= $4::interval, true)
    RETURNING next_at - gap * $5 - imprint_now() AS wait
)
SELECT coalesce(
    (SELECT wait FROM taken),
    -- Another may have moved the row after this statement began: whatever we still see, the answer is a refusal.
    greatest((SELECT next_at - imprint_now() FROM pace WHERE key = $1), $4 + interval '1 microsecond')
) AS wait

-- name: pace_slow
-- Doubles the gap between calls, and leaves the key alone for one such gap or as long as we were asked to wait.
INSERT INTO pace AS p (key, gap, next_at)
SELECT $1, gap, imprint_now() + greatest(gap, least($4::interval, $5::interval))
FROM (SELECT least($2::interval * 2, $3::interval)) AS slower (gap)
ON CONFLICT (key) DO UPDATE SET (gap, next_at) = (
    SELECT gap, greatest(p.next_at, imprint_now() + greatest(gap, least($4, $5)))
    FROM (SELECT least(greatest(p.gap, $2) * 2, $3)) AS slower (gap)
)
RETURNING gap, next_at

-- name: pace_rest
-- Leaves the key alone for a while; the gap between calls stays as it is.
INSERT INTO pace AS p (key, gap, next_at) VALUES ($1, $2::interval, imprint_now() + $3::interval)
ON CONFLICT (key) DO UPDATE SET next_at = greatest(p.next_at, imprint_now() + $3)

-- name: pace_ease
-- Shrinks the gap between calls towards the least; at the least there is nothing to write.
UPDATE pace SET gap = least(greatest(gap * $4::double precision, $2::interval), $3::interval)
WHERE key = $1 AND gap > $2
