-- name: wall_take_on
-- Works under the API's role from now on.
SELECT set_config('role', 'imprint_api', false) AS role

-- name: wall_stand
-- Says for whom this connection asks from now on: whose things are seen, who asks, whether they may change things, and
-- at which office they stand.
SELECT set_config('imprint.wall_owner', $1, false) AS owner, set_config('imprint.wall_person', $2, false) AS person,
    set_config('imprint.wall_changes', $3, false) AS changes, set_config('imprint.wall_office', $4, false) AS office

-- name: wall_lacks
-- What is wrong with the walls, in one word, and who asks.
SELECT wall_lacks() AS what, current_user::text AS who

-- name: wall_raise
-- Makes the API's role and gives it its rights, as far as that is allowed.
SELECT wall_raise()::text AS done
