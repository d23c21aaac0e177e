#!/usr/bin/env bash
# Whether a new .env can be used, before it is in the old one's place: check.sh RELEASE_FOLDER ALERTMANAGER_IMAGE SERVER
# By the stack's own check, and where Alertmanager runs by making its configuration and showing that to amtool.
set -euo pipefail
folder=$1 alertmanager=$2 server=$3
image=$(docker images --quiet --filter "label=trainvitals.source=$(cat "$folder/.source")" | head -n 1)

collector() { timeout 120 docker run --rm --network none --read-only --cap-drop ALL "$@"; }

# Its name in messages is that which it has afterwards.
# Not under /tmp, which not every engine sees.
work=$(mktemp -d --tmpdir="$folder/../..")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/compose/web" "$work/out"
cp -a "$folder/compose/." "$work/compose/"
mv "$work/compose/.env.new" "$work/compose/.env"
collector --user 0:0 --volume "$work/compose:/compose:ro" --workdir / --entrypoint python "$image" \
    -m trainvitals.stack check-env compose/.env
[ "$server" = yes ] || exit 0
chown 65534:65534 "$work/out"
collector --user 0:65534 --cap-add DAC_OVERRIDE --cap-add SETUID --volume "$work/compose:/compose:ro" --workdir / \
    --volume "$work/out:/etc/alertmanager" --entrypoint python "$image" \
    -m trainvitals.stack alertmanager-config compose/.env --out /etc/alertmanager >/dev/null
collector --user 65534:65534 --volume "$work/out:/etc/alertmanager:ro" --entrypoint amtool "$alertmanager" \
    check-config /etc/alertmanager/alertmanager.yml >/dev/null
