"""Each machine: Docker, time, what is secret."""

import re
import time

from tests.infra.machine import Machine, patiently
from tests.infra.test_ports import closed

PACKAGES = ["ca-certificates", "curl", "gnupg", "iproute2"]
SETTINGS = "/etc/apt/apt.conf.d/52trainvitals"
# Of packages that are kept from upgrades where a driver is: its own, and the kernel's.
HELD, DRIVES = ("nvidia-", "libnvidia-", "linux-"), "[ -e /proc/driver/nvidia/version ] || [ -e /dev/nvidiactl ]"
MIN_ENGINE, MIN_COMPOSE = (25, 0), (2, 20)
CLOCK_SECONDS = 5
SYSCTL = "/etc/sysctl.d/90-trainvitals.conf"
# A proxy's address may hold a password.
DOCKER_S = "! grep -qs proxies /etc/docker/daemon.json || stat --format '%a %n' /etc/docker/daemon.json"


def version(text: str) -> tuple[int, ...]:
    found = re.match(r"v?(\d+)\.(\d+)", text)
    return tuple(map(int, found.groups())) if found else ()


def upgrades(machine: Machine) -> bool:
    return machine.told.get("base_unattended_upgrades") is not False


def test_the_packages_are_installed(machine: Machine) -> None:
    wanted = [*machine.told.get("base_packages", PACKAGES)]
    wanted += ["unattended-upgrades"] * upgrades(machine) + ["nftables"] * bool(closed(machine))
    lacking = " ".join(name for name in wanted if not machine.host.package(name).is_installed)
    machine.demand(not lacking, f"not installed: {lacking}", f"apt-get install {lacking}, or deploy again")


def test_security_upgrades_come_by_themselves_and_spare_the_driver(machine: Machine) -> None:
    if not upgrades(machine):
        return
    told = machine.answer("apt-config dump")
    comes = 'APT::Periodic::Unattended-Upgrade "1";' in told
    machine.demand(comes, "no security upgrade comes by itself", f"{SETTINGS}: deploy again")
    held = machine.told.get("base_held_packages", HELD)
    loose = [name for name in held if f'Unattended-Upgrade::Package-Blacklist:: "^{name}";' not in told]
    machine.demand(
        not loose or machine.run(DRIVES)[0] != 0,
        f"upgrades that come by themselves would replace {', '.join(loose)}… under a training",
        f"{SETTINGS}: deploy again",
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


def test_kernel_parameters_are_in_force(machine: Machine) -> None:
    if machine.told.get("base_sysctl") == {}:
        return
    lines = (line.split(" = ") for line in machine.answer(f"grep ' = ' {SYSCTL}").splitlines())
    for name, least in lines:
        here = machine.says(f"/usr/sbin/sysctl --values {name}")
        machine.demand(
            int(here or 0) >= int(least), f"{name} is {here or 'unknown'}, {least} is wanted", f"sysctl --load {SYSCTL}"
        )


def test_the_clock_is_right_and_is_kept_so(machine: Machine) -> None:
    before = time.time()
    there = float(machine.answer("date +%s.%N"))
    off = max(before - there, there - time.time(), 0)
    machine.demand(off < CLOCK_SECONDS, f"the clock is {off:.0f} s off this machine's", "timedatectl; chronyc makestep")
    # Who keeps it may be somebody else's affair, and the clock of a container is its host's.
    if machine.told.get("base_time_sync") != "none" and machine.run("systemd-detect-virt --container --quiet")[0] != 0:
        units = ("chrony", "chronyd", "systemd-timesyncd", "ntp", "ntpsec")
        machine.demand(
            any(machine.says(f"systemctl is-active {unit}") == "active" for unit in units),
            "nothing keeps the clock right",
            "apt-get install chrony, or deploy again",
        )
        ask = "timedatectl show --property NTPSynchronized --value"
        machine.demand(
            patiently(lambda: machine.answer(ask), lambda told: told == "yes") == "yes",
            "the clock is kept, and is in step with no time server",
            "timedatectl timesync-status, chronyc sources: may it reach one?",
        )


def test_no_secret_can_be_read_by_everybody(machine: Machine) -> None:
    names = " -o ".join(f"-name '{name}'" for name in (".env", "*.key", "web-*.yml", "password", "idle.json"))
    find = f"find {machine.home}/ -type f \\( {names} \\) -printf '%m %p\\n'"
    found = [line.split(" ", 1) for line in machine.answer(f"{find} && {{ {DOCKER_S}; }}").splitlines()]
    machine.demand(
        any(path.startswith(machine.home) for _, path in found),
        f"there is no .env, key or password under {machine.home}",
        "deploy again",
    )
    readable = " ".join(sorted(path for mode, path in found if int(mode, 8) & 0o004))
    machine.demand(not readable, f"everybody on the machine may read {readable}", f"chmod o= {readable}")


def test_no_secret_stands_where_docker_shows_it(machine: Machine) -> None:
    secret = re.compile(r"(?i)(password|secret|token|webhook_url|pagerduty_key)=(?!none$)\S")
    for name, one in machine.containers.items():
        shown = [line.partition("=")[0] for line in one["Config"]["Env"] if secret.search(line)]
        machine.demand(
            not shown, f"docker inspect shows {', '.join(shown)} of {name}", "compose.yaml keeps it in a file"
        )


def test_the_machine_would_switch_itself_off(machine: Machine) -> None:
    """Where it is to, when idle. What cannot tell takes it as busy for ever, and it goes on costing money."""
    if str(machine.told.get("stack_idle_stop_minutes") or 0) == "0":
        return
    timer = machine.host.service("trainvitals-idle.timer")
    machine.demand(
        timer.is_running and timer.is_enabled,
        "nothing looks whether it is idle: its timer does not run",
        "systemctl enable --now trainvitals-idle.timer, or deploy again",
        unit="trainvitals-idle.timer",
    )
    look = f"/usr/bin/python3 {machine.home}/idle/idle-stop {machine.home}/idle/idle.json --look"
    status, told = patiently(lambda: machine.run(look), lambda answer: answer[0] == 0)
    machine.demand(
        status == 0,
        f"it cannot tell whether it is idle, and would never switch itself off: {told}",
        "deploy again; with GPUs in MIG mode leave out stack_idle_stop_minutes, auto_stop's idle_minutes",
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
