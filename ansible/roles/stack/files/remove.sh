#!/usr/bin/env bash
# Leaves no container, network, volume or image of the stack on this host: remove.sh HOME
# By the project's label, so that nothing must be whole; what an archive of images brought beside, by the releases that
# are here. Images that others use stay.
set -euo pipefail
home=$1
label=label=com.docker.compose.project=trainvitals
if command -v docker >/dev/null && timeout 20 docker info >/dev/null 2>&1; then
    mapfile -t containers < <(docker ps --all --quiet --filter $label)
    mapfile -t images < <({
        [ ${#containers[@]} = 0 ] || docker inspect --format '{{.Config.Image}}' "${containers[@]}"
        docker images --filter label=trainvitals.source --format '{{.Repository}}:{{.Tag}}'
        cat "$home"/releases/*/compose/compose.yaml 2>/dev/null | sed -n 's/^ *image: *//p'
    } | grep -v '<none>' | sort -u)
    [ ${#containers[@]} = 0 ] || { docker rm --force --volumes "${containers[@]}" >/dev/null && echo "changed: containers"; }
    docker network ls --quiet --filter $label | while read -r one; do docker network rm "$one" >/dev/null && echo "changed: $one"; done
    docker volume ls --quiet --filter $label | while read -r one; do docker volume rm "$one" >/dev/null && echo "changed: $one"; done
    for one in "${images[@]}"; do
        ! docker image inspect "$one" >/dev/null 2>&1 || { docker rmi "$one" >/dev/null 2>&1 && echo "changed: $one"; } || true
    done
elif command -v dockerd >/dev/null; then
    echo "Docker is installed and does not answer, so that containers and volumes would stay: start Docker first" \
        "(systemctl start docker), then remove" >&2
    exit 1
fi
[ ! -e "$home" ] || { rm -rf "$home" && echo "changed: $home"; }
