#!/usr/bin/env bash
# Leaves no container, network, volume or image of the stack on this host: remove.sh HOME
# By the project's label, so that nothing must be whole. Images that others use stay.
set -euo pipefail
home=$1
label=label=com.docker.compose.project=trainvitals
if command -v docker >/dev/null && timeout 20 docker info >/dev/null 2>&1; then
    mapfile -t containers < <(docker ps --all --quiet --filter $label)
    mapfile -t images < <({
        [ ${#containers[@]} = 0 ] || docker inspect --format '{{.Config.Image}}' "${containers[@]}"
        docker images --filter label=trainvitals.source --format '{{.Repository}}:{{.Tag}}'
    } | grep -v '<none>' | sort -u)
    [ ${#containers[@]} = 0 ] || { docker rm --force --volumes "${containers[@]}" >/dev/null && echo "changed: containers"; }
    docker network ls --quiet --filter $label | while read -r one; do docker network rm "$one" >/dev/null && echo "changed: $one"; done
    docker volume ls --quiet --filter $label | while read -r one; do docker volume rm "$one" >/dev/null && echo "changed: $one"; done
    for one in "${images[@]}"; do
        ! docker image inspect "$one" >/dev/null 2>&1 || { docker rmi "$one" >/dev/null 2>&1 && echo "changed: $one"; } || true
    done
fi
[ ! -e "$home" ] || { rm -rf "$home" && echo "changed: $home"; }
