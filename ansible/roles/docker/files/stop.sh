#!/usr/bin/env bash
# Stops all containers and the engine, and writes down which ran, the eldest first: stop.sh FILE
# What an earlier try wrote down stays: it stopped these already.
set -euo pipefail
file=$1
if timeout 60 docker info >/dev/null 2>&1; then
    mapfile -t running < <(docker ps --quiet --no-trunc | tac)
    { cat "$file" 2>/dev/null || true; printf '%s\n' "${running[@]}"; } | awk 'NF && !seen[$0]++' >"$file.new"
    mv "$file.new" "$file"
    [ ${#running[@]} = 0 ] || timeout 600 docker stop --time 60 "${running[@]}" >/dev/null
    echo "changed: ${#running[@]} containers stopped"
fi
# The socket first: it would start the engine again. containerd holds nothing of Docker's any more.
for unit in docker.socket docker.service containerd.service; do
    ! systemctl cat "$unit" >/dev/null 2>&1 || systemctl stop "$unit"
done
