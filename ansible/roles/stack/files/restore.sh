#!/usr/bin/env bash
# Puts an archive's content in the place of what the stack keeps on this host: restore.sh HOME JOURNAL ARCHIVE SECONDS
# The journal by journal_back, which lies beside the archive.
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
# Before anything is deleted: is there room for what comes, beside what goes?
wanted=$(tar --list --verbose --gzip --numeric-owner --file "$archive" | awk '{ sum += $3 } END { print int(sum / 1048576) }')
room=$(df --output=avail --block-size=1M "$root" | tail -n 1)
for volume in "${volumes[@]}"; do
    room=$((room + $(du --summarize --block-size=1M "$root/volumes/trainvitals_$volume/_data" | cut -f 1)))
done
[ "$room" -gt "$wanted" ] || {
    echo "restore: $wanted MiB are to be unpacked, and there is room for $room MiB in $root: make room there" >&2
    exit 1
}
trap 'compose up --detach --no-build --wait --wait-timeout "$seconds"' EXIT
compose stop --timeout 60
# Before what cannot be had back: should it break off, nothing is deleted yet.
! grep -qE '^journal(/|$)' <<<"$names" || python3 "$(dirname "$archive")/journal_back" "$archive" "$journal"
for volume in "${volumes[@]}"; do
    data=$root/volumes/trainvitals_$volume/_data
    find "$data" -mindepth 1 -delete
    tar --extract --gzip --file "$archive" --directory "$data" --numeric-owner --same-owner --preserve-permissions \
        --strip-components 2 "volumes/$volume"
done
echo "changed: ${volumes[*]:-} put back"
