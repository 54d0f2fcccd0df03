#!/bin/sh
# From a key to a post that is out, over HTTP alone. Needs curl, jq, a running `imprint up` and its first account.
set -eu
at=${AT:-http://127.0.0.1:7600}

# A key of your own; it is shown this once. The page under settings makes one as well.
key=$(imprint api-key add "first post" --scope posts:write --scope content:write --scope accounts:write --json |
    jq -r .secret)
call() { curl -s --fail-with-body -H "Authorization: Bearer $key" -H "Content-Type: application/json" "$@"; }

# An account to try with: the sandbox on this machine; what arrives there can be seen at the address.
made=$(call -X POST "$at/api/sandbox-account")
account=$(echo "$made" | jq -r .account.id)
echo "$made" | jq -r .gallery

# Watch what happens, until the post is out.
call -N --max-time 120 "$at/api/events" | sed '/"status": *"published"/q' &
watching=$!

# Write a post. Sent again with the same Idempotency-Key, it is not written twice.
post=$(call -X POST "$at/api/posts" -H "Idempotency-Key: first-post-$$" \
    -d '{"title": "A lighthouse at dusk", "description": "Oil on canvas.", "tags": ["sea"]}' | jq -r .id)

# Promise a file, send its bytes to the signed address, and have them verified.
file=${1:-lighthouse.png}
promise=$(call -X POST "$at/api/uploads/presigned-url" -d "$(jq -n --arg post "$post" --arg name "$(basename "$file")" \
    --argjson size "$(wc -c < "$file")" \
    '{filename: $name, contentType: "image/png", fileSize: $size, postId: $post, alt: "A white lighthouse."}')")
curl -s --fail-with-body -T "$file" -H "Content-Type: image/png" "$(echo "$promise" | jq -r .uploadUrl)"
call -X POST "$at/api/uploads/confirm" -d "$(echo "$promise" | jq '{fileId}')" | jq .

# Declare it ready, and let it go at once; `/schedule` with a time lets it go later.
call -X POST "$at/api/posts/$post/ready" | jq -r .status
call -X POST "$at/api/posts/$post/publish" -d "{\"accounts\": [\"$account\"]}" | jq -r .status

# Where it is, and the whole story.
wait "$watching"
call "$at/api/posts/$post" | jq -r '.publications[].url'
call "$at/api/posts/$post/explain" | jq -r '.publications[].story[].sentence'
