#!/usr/bin/env bash
# What the stack keeps on this host, as one archive: backup.sh HOME JOURNAL ARCHIVE
# The services that write are stopped for as long as it takes, and started again whatever happens. JOURNAL may be "-".
# Where nothing is kept no archive is made.
set -euo pipefail
home=$1 journal=$2 archive=$3
kept="prometheus-data alertmanager-data grafana-data grafana-password caddy-data"
cd -P "$home/current/compose"
root=$(docker info --format '{{.DockerRootDir}}')

compose() { timeout 300 docker compose --ansi never --progress quiet "$@"; }

paths=()
for volume in $kept; do
    [ ! -d "$root/volumes/trainvitals_$volume/_data" ] || paths+=("${root#/}/volumes/trainvitals_$volume/_data")
done
[ "$journal" = - ] || [ ! -d "$journal" ] || paths+=("${journal#/}")
[ ${#paths[@]} -gt 0 ] || { echo "nothing is kept here"; exit 0; }

wanted=$(cd / && du --summarize --total --block-size=1M "${paths[@]}" | tail -n 1 | cut -f 1)
free=$(df --output=avail --block-size=1M "$(dirname "$archive")" | tail -n 1)
[ "$free" -gt "$((wanted + 100))" ] || {
    echo "backup: $wanted MiB are to be packed, $free MiB are free in $(dirname "$archive"): make room there" >&2
    exit 1
}

mapfile -t writing < <(compose ps --services --status running | grep -xE 'prometheus|alertmanager|grafana|caddy' || true)
if [ ${#writing[@]} -gt 0 ]; then
    trap 'compose start "${writing[@]}" >/dev/null' EXIT
    compose stop --timeout 60 "${writing[@]}"
fi
umask 077
# Trainers go on: a file that grows while it is read is whole up to a line.
tar --create --directory / --numeric-owner --warning=no-file-changed --warning=no-file-removed \
    --transform "flags=r;s,^${root#/}/volumes/trainvitals_\([a-z-]*\)/_data,volumes/\1,;s,^${journal#/},journal," \
    "${paths[@]}" | gzip -1 >"$archive" || [ "${PIPESTATUS[0]}" = 1 ]
gzip --test "$archive"
chown --reference="$(dirname "$archive")" "$archive"
