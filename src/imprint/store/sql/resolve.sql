-- name: resolve_found
-- Publications of a person whose id begins with these letters, and unknown ones of a post whose id does; six at most.
SELECT u.id, p.title || ' on ' || coalesce(a.label, a.name) AS name, $1::uuid = $2::uuid AS exact
FROM publication u JOIN post p ON p.id = u.post_id JOIN account a ON a.id = u.account_id
WHERE p.owner = $3 AND (u.id BETWEEN $1 AND $2
    OR u.status = 'unknown' AND u.post_id BETWEEN $1 AND $2)
ORDER BY u.id LIMIT 6

-- name: resolve_of
-- The post of a person that a publication is of.
SELECT p.id FROM publication u JOIN post p ON p.id = u.post_id WHERE u.id = $1 AND p.owner = $2

-- name: resolve_standing
-- Whether somebody is looking for an unknown publication at this moment, and whether its sender may still be at it.
SELECT coalesce(held_why = 'look' AND held_until > imprint_now(), false) AS looked_for,
    coalesce(deadline > imprint_now(), false) AS leaving, url
FROM publication WHERE id = $1
