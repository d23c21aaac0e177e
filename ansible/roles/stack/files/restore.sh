#!/usr/bin/env bash
# Puts an archive's content in the place of what the stack keeps on this host: restore.sh HOME JOURNAL ARCHIVE SECONDS
# A journal's file that is newer here stays as it is: it holds what the archive has, and more.
set -euo pipefail
home=$1 journal=$2 archive=$3 seconds=$4
cd -P "$home/current/compose"
root=$(docker info --format '{{.DockerRootDir}}')

compose() { timeout "$((seconds + 120))" docker compose --ansi never --progress quiet "$@"; }

names=$(tar --list --gzip --file "$archive" | cut -d / -f 1,2 | sort -u)
mapfile -t volumes < <(sed -nE 's|^volumes/([a-z-]+)$|\1|p' <<<"$names")
for volume in "${volumes[@]}"; do
    [ -d "$root/volumes/trainvitals_$volume/_data" ] || {
        echo "restore: there is no volume $volume here yet: deploy first (site.yml), then restore" >&2
        exit 1
    }
done
trap 'compose up --detach --no-build --wait --wait-timeout "$seconds"' EXIT
compose stop --timeout 60
for volume in "${volumes[@]}"; do
    data=$root/volumes/trainvitals_$volume/_data
    find "$data" -mindepth 1 -delete
    tar --extract --gzip --file "$archive" --directory "$data" --numeric-owner --same-owner --preserve-permissions \
        --strip-components 2 "volumes/$volume"
done
if grep -qE '^journal(/|$)' <<<"$names"; then
    tar --extract --gzip --file "$archive" --directory "$(dirname "$archive")" --numeric-owner --same-owner \
        --preserve-permissions journal
    mkdir -p "$journal"
    cp --archive --update "$(dirname "$archive")/journal/." "$journal/"
fi
echo "changed: ${volumes[*]:-} put back"
