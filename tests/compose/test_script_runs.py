"""scripts/stack on a copy of compose/, with a Docker that writes down what it is asked."""

import fcntl
import os
import shutil
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.compose.files import ROOT
from trainvitals.config import read_env_lines

DOCKER = """#!/bin/bash
echo "$COMPOSE_PROFILES|$*" >>"$TOLD"
echo "${GPU_DRIVER-},${GPU_DEVICES-}" >>"$TOLD.gpus"
case "$*" in
*'{{.Ports}}') echo "127.0.0.1:${HELD:-1}->9090/tcp" ;;
*'label=com.docker.compose.project='*) [ ! -e "$ELSEWHERE" ] || cat "$ELSEWHERE" ;;
*' port collector '*) echo "$LISTENS" ;;
*' port gate '*) echo "127.0.0.1:1${@: -1}" ;;
*' ps --quiet '*) [ ! -e "$AWAY" ] && echo "id-of-${@: -1}" ;;
*"ps --all --format {{.Service}}") printf '%s\\n' $RUNS ;;
*'{{json .Runtimes}}') echo "$RUNTIMES" ;;
*'{{.Client.APIVersion}}') echo "${API:-1.51}" ;;
*' config') printf '        host_ip: 127.0.0.1\n        target: 9090\n        published: "%s"\n' "${PUBLISHED:-1}" ;;
*' config --services') printf '%s\\n' $WANTED ;;
*' up '*) exit "${UP_STATUS:-0}" ;;
*'{{.ExitCode}}'*) printf 'targets 0\\njournal 2\\n' ;;
*' logs --no-log-prefix --tail 5 journal') echo "TRAINVITALS_DIR: it belongs to user 1000" ;;
esac
exit 0
"""
ENVS = ["COMPOSE_PROFILES=server", "export COMPOSE_PROFILES=server", "  COMPOSE_PROFILES = server  ",
        "COMPOSE_PROFILES='server'  ", 'COMPOSE_PROFILES= "server" # node', "\texport  COMPOSE_PROFILES=server # node",
        "COMPOSE_PROFILES=node\nCOMPOSE_PROFILES=server", "COMPOSE_PROFILES=server\r", "COMPOSE_PROFILES=",
        "COMPOSE_PROFILES= # node", "COMPOSE_PROFILES=#node", "# COMPOSE_PROFILES=node",
        "XCOMPOSE_PROFILES=node", "COMPOSE_PROFILES=node,server"]  # fmt: skip


class Tried:
    def __init__(self, folder: Path) -> None:
        self.folder, self.told, self.away = folder, folder / "told", folder / "away"
        self.elsewhere = folder / "elsewhere"
        (folder / "scripts").mkdir()
        shutil.copy(ROOT / "scripts" / "stack", folder / "scripts")
        shutil.copytree(ROOT / "compose", folder / "compose", ignore=shutil.ignore_patterns(".env"))
        shutil.copy(ROOT / "compose" / ".env.example", folder / "compose" / ".env")
        program = folder / "bin" / "docker"
        program.parent.mkdir()
        program.write_text(DOCKER)
        program.chmod(0o755)

    def run(self, *words: str, **more: str) -> "subprocess.CompletedProcess[str]":
        environ = {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "TOLD": str(self.told),
                   "AWAY": str(self.away), "ELSEWHERE": str(self.elsewhere), **more}  # fmt: skip
        return subprocess.run([self.folder / "scripts" / "stack", *words], env=environ, capture_output=True, text=True,
                              timeout=30, check=False, stdin=subprocess.DEVNULL)  # fmt: skip

    def asked(self, word: str) -> list[str]:
        return [line for line in self.told.read_text().splitlines() if word in line]


@pytest.fixture
def tried(tmp_path: Path) -> Tried:
    return Tried(tmp_path)


@pytest.mark.parametrize("text", ENVS)
def test_it_reads_env_as_compose_does(text: str, tried: Tried) -> None:
    env = tried.folder / "compose" / ".env"
    env.write_bytes(f"{text}\n".encode())
    assert tried.run("logs").returncode == 0
    (asked,) = tried.asked(" logs ")
    assert asked.partition("|")[0] == (read_env_lines(env).get("COMPOSE_PROFILES") or "node,server")


def test_the_environment_goes_before_env(tried: Tried) -> None:
    tried.run("logs", COMPOSE_PROFILES="server", DEMO="1")
    assert tried.asked(" logs ")[0].startswith("server,demo|")


def with_gpus(tried: Tried, *, cdi: bool) -> None:
    """As on a machine with a driver, and an engine that gives GPUs by their descriptions or not."""
    script = tried.folder / "scripts" / "stack"
    text = script.read_text()
    assert "/proc/driver/nvidia/version" in text and "/etc/cdi/*" in text
    described = tried.folder / "nvidia.yaml"
    described.write_text("kind: nvidia.com/gpu\n" if cdi else "")
    text = text.replace("/proc/driver/nvidia/version", str(described))
    script.write_text(text.replace("/etc/cdi/* /var/run/cdi/*", str(described)))


@pytest.mark.parametrize(("chosen", "cdi", "handed"), [
    ("", True, "cdi,nvidia.com/gpu=all"), ("", False, "nvidia,all"),
    ("GPU_DRIVER=nvidia\nGPU_DEVICES=all", True, "cdi,nvidia.com/gpu=all"),
    ("GPU_DEVICES=2", True, ","), ("GPU_DEVICES=2", False, ","),
    ("GPU_DRIVER=cdi\nGPU_DEVICES=nvidia.com/gpu=1", True, ","),
    ("GPU_DRIVER=cdi\nGPU_DEVICES=nvidia.com/gpu=all", False, ",")])  # fmt: skip
def test_the_gpus_that_env_names_are_those_that_containers_get(
    chosen: str, cdi: bool, handed: str, tried: Tried
) -> None:
    """What is handed on goes before .env in Compose."""
    with_gpus(tried, cdi=cdi)
    (tried.folder / "compose" / ".env").write_text(f"{chosen}\n")
    assert tried.run("logs", RUNTIMES="nvidia").returncode == 0
    assert Path(f"{tried.told}.gpus").read_text().splitlines()[-1] == handed
    assert "compose.gpu.yaml" in tried.asked(" logs ")[0]


def test_up_has_files_read_anew_without_the_engine_ending_anything(tried: Tried) -> None:
    done = tried.run("up")
    assert (done.returncode, done.stderr) == (0, "")
    assert tried.asked(".yaml kill ") == []
    told = [line.partition(" exec -T ")[2] for line in tried.asked(" exec -T ")]
    assert told == ["prometheus sh -c kill -HUP 1", "alertmanager sh -c kill -HUP 1"]


def test_up_tells_nothing_to_what_does_not_run(tried: Tried) -> None:
    tried.away.touch()
    assert tried.run("up").returncode == 0
    assert tried.asked(" exec ") == []


def test_env_is_checked_with_its_folder_and_under_the_name_that_it_has_here(tried: Tried) -> None:
    tried.run("up")
    (checked,) = tried.asked("check-env")
    assert checked.endswith(" check-env compose/.env")
    assert f"--volume {tried.folder / 'compose'}:/compose:ro --workdir / " in checked


def test_env_is_checked_with_what_the_environment_says_but_for_channels(tried: Tried) -> None:
    tried.run("up")
    (checked,) = tried.asked("check-env")
    handed = {word for word in checked.split() if word.isupper() or "_" in word}
    assert {"TRAINVITALS_DIR", "PROMETHEUS_PORT", "PUBLIC_NAME"} <= handed
    assert not {"SMTP_PASSWORD", "SLACK_WEBHOOK_URL", "DEADMAN_URL"} & handed


def test_what_runs_by_a_profile_that_is_no_longer_chosen_is_ended(tried: Tried) -> None:
    tried.run("up", RUNS="collector demo prometheus", WANTED="prometheus collector grafana")
    (asked,) = tried.asked(" rm ")
    assert asked.startswith("*|") and asked.endswith(" rm --stop --force demo")
    tried.told.unlink()
    tried.run("up", RUNS="collector", WANTED="prometheus collector")
    assert tried.asked(" rm ") == []


@pytest.mark.parametrize("name", ["prometheus/prometheus.yml", "grafana/dashboards", "compose/Caddyfile"])
def test_what_no_service_may_read_is_named_before_anything_starts(name: str, tried: Tried) -> None:
    """As a clone is where umask is 077."""
    for folder in ("prometheus", "grafana"):
        shutil.copytree(ROOT / folder, tried.folder / folder)
    assert tried.run("up").returncode == 0
    tried.told.unlink()
    (tried.folder / name).chmod(0o700)
    done = tried.run("up")
    assert done.returncode == 2
    assert f"may not read {'' if 'compose' in name else '../'}{name.removeprefix('compose/')}: chmod -R" in done.stderr
    assert tried.asked(" up ") == []


def test_two_at_once_take_turns(tried: Tried) -> None:
    folder = os.open(tried.folder / "compose", os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(tried.run, "up")
        time.sleep(1)
        assert not tried.told.exists() or tried.asked(" up ") == []
        os.close(folder)
        assert waiting.result(timeout=30).returncode == 0


def test_up_that_fails_shows_what_a_job_said(tried: Tried) -> None:
    done = tried.run("up", UP_STATUS="1")
    assert done.returncode == 2
    assert "TRAINVITALS_DIR: it belongs to user 1000" in done.stderr
    assert tried.asked(" logs --no-log-prefix --tail 5 targets") == []


def test_an_alert_is_tried_in_the_network_that_alertmanager_is_in_and_with_the_machine_s_name(tried: Tried) -> None:
    with (tried.folder / "compose" / ".env").open("a") as file:
        file.write("TRAINVITALS_HOSTNAME=gpu7\n")
    assert tried.run("alert-test", COMPOSE_PROJECT_NAME="mine").returncode == 0
    (asked,) = tried.asked("|run ")
    assert " --network container:id-of-alertmanager --uts host --env TRAINVITALS_HOSTNAME=gpu7 " in asked
    assert "--alertmanager http://127.0.0.1:9093" in asked
    assert "trainvitals_default" not in asked


def test_an_alert_that_nobody_would_take_is_told_with_the_fix(tried: Tried) -> None:
    tried.away.touch()
    done = tried.run("alert-test")
    assert done.returncode == 2
    assert done.stderr.startswith("stack: Alertmanager does not run here: make up starts it")
    assert tried.asked("|run ") == []


@pytest.mark.parametrize("word", ["up", "down"])
def test_what_runs_from_another_folder_is_left_alone_and_that_folder_named(word: str, tried: Tried) -> None:
    other = tried.folder / "other clone" / "compose"
    other.mkdir(parents=True)
    tried.elsewhere.write_text(f"{other}\n")
    done = tried.run(word)
    assert done.returncode == 2
    for part in ("'trainvitals'", f"{other}: make down there", "COMPOSE_PROJECT_NAME"):
        assert part in done.stderr
    assert tried.asked(" build ") == tried.asked(" up ") == tried.asked(" down ") == []


@pytest.mark.parametrize(("address", "url"), [
    ("127.0.0.1:8080", "127.0.0.1:8080"), ("0.0.0.0:8080", "localhost:8080"), ("::1:8080", "[::1]:8080"),
    (":::8080", "localhost:8080"), ("[::1]:8080", "[::1]:8080"), ("[::]:8080", "localhost:8080")])  # fmt: skip
def test_where_it_listens_is_shown_as_a_browser_takes_it(address: str, url: str, tried: Tried) -> None:
    assert f"collector     http://{url}\n" in tried.run("up", LISTENS=address).stdout


def test_prometheus_and_alertmanager_are_shown_where_their_gate_listens(tried: Tried) -> None:
    told = tried.run("up").stdout
    assert "  Prometheus    http://127.0.0.1:19090\n" in told
    assert "  Alertmanager  http://127.0.0.1:19093\n" in told


def test_what_runs_from_this_folder_or_one_that_is_gone_is_this_one_s(tried: Tried) -> None:
    (tried.folder / "link").symlink_to(tried.folder)
    tried.elsewhere.write_text(f"{tried.folder}/compose\n{tried.folder}/link/compose\n{tried.folder}/gone/compose\n")
    assert tried.run("up").returncode == 0


@pytest.mark.parametrize(("line", "environ", "name"), [
    ("", {}, "trainvitals"), ("COMPOSE_PROJECT_NAME=mine", {}, "mine"),
    ("COMPOSE_PROJECT_NAME=mine", {"COMPOSE_PROJECT_NAME": "yours"}, "yours")])  # fmt: skip
def test_it_is_looked_for_under_the_name_that_compose_gives_the_project(
    line: str, environ: dict[str, str], name: str, tried: Tried
) -> None:
    with (tried.folder / "compose" / ".env").open("a") as file:
        file.write(f"{line}\n")
    tried.run("up", **environ)
    folders, ports = tried.asked("label=")
    assert f"|ps --all --filter label=com.docker.compose.project={name} " in folders
    assert f"|ps --filter label=com.docker.compose.project={name} " in ports


def test_a_channel_that_the_environment_alone_names_is_told_without_its_value(tried: Tried) -> None:
    done = tried.run("up", SLACK_WEBHOOK_URL="http://hush", GRAFANA_URL="http://localhost:3000")
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1
    assert "SLACK_WEBHOOK_URL: " in done.stderr
    assert "hush" not in done.stderr


@pytest.mark.parametrize("api", ["1.9", "1.24", "1.39", "1.41", "1.43"])
def test_an_engine_too_old_is_named_before_anything_is_done(tried: Tried, api: str) -> None:
    run = tried.run("up", API=api)
    assert run.returncode == 2
    assert f"API {api}, and 1.44 is wanted: take Docker Engine 25 or newer\n" in run.stdout + run.stderr
    assert not tried.asked(" up ")


def test_what_pins_the_api_is_named_too(tried: Tried) -> None:
    run = tried.run("answers", API="1.41", DOCKER_API_VERSION="1.41")
    assert run.stdout.endswith("take Docker Engine 25 or newer, and unset DOCKER_API_VERSION\n")


@pytest.mark.parametrize("api", ["1.44", "1.51", "2.0"])
def test_a_newer_engine_is_taken(tried: Tried, api: str) -> None:
    assert tried.run("answers", API=api).returncode == 0


def test_a_port_that_is_taken_is_named_before_anything_is_ended(tried: Tried) -> None:
    env = tried.folder / "compose" / ".env"
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        env.write_text(f"PROMETHEUS_PORT={port}\n")
        run = tried.run("up", PUBLISHED=port, RUNS="grafana", WANTED="prometheus")
        assert run.returncode == 2
        assert f"stack: PROMETHEUS_PORT: '{port}' cannot be used: something else listens there" in run.stderr
        assert not tried.asked(" up ") and not tried.asked(" rm ")
        assert tried.run("up", PUBLISHED=port, HELD=port).returncode == 0, "what listens is this stack's own"
    assert tried.run("up", PUBLISHED=port).returncode == 0
