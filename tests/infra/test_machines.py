"""Each machine: Docker, time, what listens where, what is secret."""

import re
import time

import pytest

from tests.infra.machine import HOME, Machine

# Who comes by another way than loopback finds these, on a machine that Prometheus is not on.
EXPORTERS = {"TRAINVITALS_PORT", "NODE_EXPORTER_PORT", "DCGM_PORT", "NVIDIA_SMI_PORT"}
MIN_ENGINE, MIN_COMPOSE = (25, 0), (2, 20)
CLOCK_SECONDS = 5


def version(text: str) -> tuple[int, ...]:
    found = re.match(r"v?(\d+)\.(\d+)", text)
    return tuple(map(int, found.groups())) if found else ()


@pytest.mark.parametrize("package", ["ca-certificates", "curl"])
def test_the_packages_are_installed(machine: Machine, package: str) -> None:
    machine.demand(
        machine.host.package(package).is_installed,
        f"the package {package} is not installed",
        f"apt-get install {package}, or deploy again",
    )


def test_docker_runs_now_and_after_a_restart(machine: Machine) -> None:
    docker = machine.host.service("docker")
    machine.demand(docker.is_running, "Docker does not run", "systemctl start docker", unit="docker")
    machine.demand(
        docker.is_enabled or machine.host.service("docker.socket").is_enabled,
        "Docker is not started at boot",
        "systemctl enable docker",
    )


def test_docker_is_new_enough(machine: Machine) -> None:
    engine = machine.says("docker version --format '{{.Server.Version}}'")
    compose = machine.says("docker compose version --short")
    machine.demand(
        version(engine) >= MIN_ENGINE,
        f"Docker is {engine or 'silent'}, 25.0 is wanted",
        "deploy with docker_replace=true",
        unit="docker",
    )
    machine.demand(
        version(compose) >= MIN_COMPOSE,
        f"docker compose is {compose or 'missing'}, 2.20 is wanted",
        "apt-get install docker-compose-plugin, or deploy again",
    )


def test_the_clock_is_right_and_is_kept_so(machine: Machine) -> None:
    before = time.time()
    there = float(machine.says("date +%s.%N") or 0)
    off = max(before - there, there - time.time(), 0)
    machine.demand(off < CLOCK_SECONDS, f"the clock is {off:.0f} s off this machine's", "timedatectl; chronyc makestep")
    # The clock of a container is its host's.
    if machine.run("systemd-detect-virt --container --quiet")[0] != 0:
        units = ("chrony", "chronyd", "systemd-timesyncd", "ntp", "ntpsec")
        machine.demand(
            any(machine.says(f"systemctl is-active {unit}") == "active" for unit in units),
            "nothing keeps the clock right",
            "apt-get install chrony, or deploy again",
        )


def test_ports_are_open_only_where_they_should_be(machine: Machine) -> None:
    ports = {int(value): name for name, value in machine.knobs.items() if name.endswith("_PORT")}
    bind = machine.knobs["TRAINVITALS_BIND"].strip("[]")
    for address, port in machine.listening:
        name = ports.get(port)
        if not name:
            continue
        allowed = {"127.0.0.1", "::1", bind} if name in EXPORTERS or "server" not in machine.profiles else {"127.0.0.1"}
        machine.demand(
            address in allowed,
            f"{name[:-5].lower()} listens on {address}:{port}, others may reach it",
            f"look at TRAINVITALS_BIND in {HOME}/compose/.env and deploy again",
        )
    machine.demand(
        "server" not in machine.profiles or bind == "127.0.0.1",
        f"TRAINVITALS_BIND is {bind} beside Prometheus, which asks for no password",
        "deploy again",
    )


def test_what_others_may_reach_wants_tls_and_a_password(machine: Machine) -> None:
    bind = machine.knobs["TRAINVITALS_BIND"]
    if bind == "127.0.0.1":
        return
    for knob in sorted(EXPORTERS):
        port = machine.knobs.get(knob, "")
        if (bind.strip("[]"), int(port or 0)) not in machine.listening:
            continue
        ask = "curl --silent --max-time 20 --output /dev/null --write-out '%{http_code}'"
        plain = machine.run(f"{ask} http://{bind}:{port}/metrics")[1]
        unnamed = machine.run(f"{ask} --insecure https://{bind}:{port}/metrics")[1]
        machine.demand(
            plain != "200", f"{bind}:{port} answers without TLS", "look at EXPORTERS_WEB_CONFIG, deploy again"
        )
        machine.demand(
            unnamed == "401",
            f"https://{bind}:{port}/metrics answers {unnamed} without a password, not 401",
            "look at web-….yml in compose/web, deploy again",
        )


def test_no_secret_can_be_read_by_everybody(machine: Machine) -> None:
    names = " -o ".join(f"-name '{name}'" for name in (".env", "*.key", "web-*.yml", "password", "idle.json"))
    told = machine.says(f"find {HOME} -type f \\( {names} \\) -perm /o=r")
    machine.demand(not told, f"everybody on the machine may read {told}", f"chmod o= {' '.join(told.split())}")


def test_no_secret_stands_where_docker_shows_it(machine: Machine) -> None:
    secret = re.compile(r"(?i)(password|secret|token|webhook_url|pagerduty_key)=\S")
    for name, one in machine.containers.items():
        shown = [line.partition("=")[0] for line in one["Config"]["Env"] if secret.search(line)]
        machine.demand(
            not shown, f"docker inspect shows {', '.join(shown)} of {name}", "compose.yaml keeps it in a file"
        )


def test_the_journal_is_open_to_who_trains(machine: Machine) -> None:
    folder = machine.knobs["TRAINVITALS_DIR"]
    told = machine.says(f"stat --format '%a' {folder}")
    machine.demand(
        told in ("1777", "777"),
        f"{folder} has the mode {told or '(it is not there)'}, 1777 is wanted",
        "docker logs trainvitals-journal-1, then deploy again",
        container="journal",
    )
