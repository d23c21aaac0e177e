#!/usr/bin/env bash
# Makes a release the one that runs, waits until all of it is healthy, and remembers it as the one to come back to.
#   apply.sh HOME RELEASE SECONDS
# Says "changed: …" for each thing that was not so before. Whatever broke it off, it is simply run again.
set -euo pipefail
home=$1 release=$2 seconds=$3
cd -P "$home/releases/$release/compose"
image=trainvitals/collector

compose() { timeout "$((seconds + 300))" docker compose --ansi never --progress quiet "$@"; }

# The services that stay: jobs are started anew each time.
running() {
    docker ps --all --no-trunc --filter label=com.docker.compose.project=trainvitals \
        --format '{{.Label "com.docker.compose.service"}} {{.ID}} {{.State}}' |
        sed -E '/^(journal|targets|alertmanager-config|grafana-password|caddy-volume) /d' | sort
}

choose_image() {
    local wanted current
    wanted=$(docker images --quiet --no-trunc --filter "label=trainvitals.source=$(cat ../.source)" | head -n 1)
    current=$(docker images --quiet --no-trunc $image:local)
    [ -n "$wanted" ] || { echo "$image: no image of this source is here: run the deployment again" >&2; exit 1; }
    [ "$wanted" = "$current" ] || docker tag "$wanted" $image:local
}

# A service whose profile is chosen no longer is no orphan to Compose.
drop_unwanted() {
    local service
    docker ps --all --filter label=com.docker.compose.project=trainvitals \
        --format '{{.Label "com.docker.compose.service"}}' | sort -u >"$work/there"
    compose config --services | sort -u >"$work/wanted"
    while read -r service; do
        compose --profile '*' rm --stop --force "$service" >/dev/null
    done < <(comm -23 "$work/there" "$work/wanted")
}

# Told from within: what the engine sends a signal to it starts no more when it dies. A busy machine's runtime gives up
# now and then on entering a container, which is well all the same.
read_anew() {
    local service
    for service in prometheus alertmanager; do
        ! grep -qx "$service" "$work/wanted" || hang_up "$service"
    done
}

hang_up() {
    for _ in 1 2 3 4; do
        ! compose exec -T "$1" sh -c 'kill -HUP 1' </dev/null 2>"$work/told" || return 0
        sleep 2
    done
    compose exec -T "$1" sh -c 'kill -HUP 1' </dev/null
}

# What is not well: how it is, and the last that it said.
tell() {
    local name status
    docker ps --all --filter label=com.docker.compose.project=trainvitals --format '{{.Names}}|{{.Status}}' |
        while IFS='|' read -r name status; do
            case $status in
            "Exited (0)"* | *"(healthy)"*) continue ;;
            "Up "*) case $status in *health*) ;; *) continue ;; esac ;;
            esac
            echo "--- $name: $status"
            docker logs --tail 15 "$name" 2>&1 </dev/null
        done
}

named() { cat "$home"/releases/*/compose/compose.yaml | sed -n 's/^ *image: *//p' | sort -u; }

# Two are kept: this one and the one before it. Images that only others named go with them, where nobody else uses them.
prune() {
    local former=$1 path name source
    named >"$work/named"
    for path in "$home"/releases/*; do
        name=${path##*/}
        [ "$name" = "$release" ] || [ "$name" = "$former" ] || rm -rf "$path"
    done
    comm -23 "$work/named" <(named) | while read -r name; do docker rmi "$name" >/dev/null 2>&1 || true; done
    docker images --filter label=trainvitals.source --format '{{.Tag}}' $image | while read -r source; do
        [ "$source" = local ] || grep -qsx "$source" "$home"/releases/*/.source || docker rmi --force "$image:$source" >/dev/null
    done
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
running >"$work/before"
former=$(basename "$(readlink "$home/healthy")" || true)
before=$(basename "$(readlink "$home/current")" || true)
choose_image
ln -sfn "releases/$release" "$home/current.new" && mv -T "$home/current.new" "$home/current"
drop_unwanted
compose up --detach --remove-orphans --no-build --pull missing --wait --wait-timeout "$seconds" >"$work/told" 2>&1 || {
    tail -n 5 "$work/told" >&2
    tell >&2
    exit 1
}
read_anew
rm -f .env.before
if [ "$former" != "$release" ]; then
    ln -sfn "releases/$release" "$home/healthy.new" && mv -T "$home/healthy.new" "$home/healthy"
    prune "$former"
fi
running >"$work/after"
[ "$before" = "$release" ] || echo "changed: release $release in the place of ${before:-none}"
{ diff "$work/before" "$work/after" || true; } | sed -n 's/^> \([^ ]*\) .*/changed: \1 started/p; s/^< \([^ ]*\) .*/changed: \1 as it was before is gone/p'
