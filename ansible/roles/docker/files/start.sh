#!/usr/bin/env bash
# Starts the containers that stop.sh wrote down, and forgets them: start.sh FILE
# Those that are gone were made to go when they end. One that does not start is told, and keeps no other from it.
set -euo pipefail
file=$1
failed=()
while read -r container; do
    name=$(docker inspect --format '{{.Name}}' "$container" 2>/dev/null) || continue
    timeout 120 docker start "$container" >/dev/null || failed+=("${name#/}")
done <"$file"
rm "$file"
[ ${#failed[@]} = 0 ] || {
    echo "these ran before and do not start: ${failed[*]}: docker logs says why" >&2
    exit 1
}
