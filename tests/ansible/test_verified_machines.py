"""tests/infra on what a machine is made of: packages, upgrades, the clock, what gives GPUs to containers."""

import time
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from tests.ansible.test_verification import Host
from tests.infra import machine as asking
from tests.infra import test_gpus as gpus
from tests.infra import test_machines as machines
from tests.infra.machine import Machine

ON = 'APT::Periodic::Unattended-Upgrade "1";\n'
HOLDS = "".join(f'Unattended-Upgrade::Package-Blacklist:: "^{name}";\n' for name in machines.HELD)


def installed(*names: str, told: dict[str, Any] | None = None) -> Machine:
    """A whole site in one machine, with these packages."""
    host = Host(grep="TRAINVITALS_BIND=127.0.0.1")
    host.package = lambda name: SimpleNamespace(is_installed=name in names)  # type: ignore[attr-defined]
    return Machine(host, "mon", told or {})


def test_what_takes_upgrades_is_among_the_packages() -> None:
    machines.test_the_packages_are_installed(installed(*machines.PACKAGES, "unattended-upgrades"))
    machines.test_the_packages_are_installed(installed(*machines.PACKAGES, told={"base_unattended_upgrades": False}))
    with pytest.raises(pytest.fail.Exception, match="not installed: gnupg unattended-upgrades"):
        machines.test_the_packages_are_installed(installed("ca-certificates", "curl", "iproute2"))


def test_the_rules_want_what_loads_them() -> None:
    with pytest.raises(pytest.fail.Exception, match="not installed: nftables"):
        machines.test_the_packages_are_installed(
            installed(*machines.PACKAGES, "unattended-upgrades", told={"base_firewall_ports": [9100]})
        )


@pytest.mark.parametrize(("answers", "told"), [
    ({"apt-config": ON + HOLDS, "nvidiactl": ""}, ""), ({"apt-config": ON}, ""),
    ({"apt-config": HOLDS}, "no security upgrade comes"), ({}, "ended with 1"),
    ({"apt-config": ON, "nvidiactl": ""}, "would replace nvidia-, libnvidia-, linux-")])  # fmt: skip
def test_upgrades_that_do_not_come_or_would_take_the_driver_are_told(answers: dict[str, str], told: str) -> None:
    machine = Machine(Host(**answers), "gpu1")
    if not told:
        machines.test_security_upgrades_come_by_themselves_and_spare_the_driver(machine)
        return
    with pytest.raises(pytest.fail.Exception, match=told):
        machines.test_security_upgrades_come_by_themselves_and_spare_the_driver(machine)


def test_a_clock_that_no_server_sets_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "PATIENCE_SECONDS", 0)
    kept = {"date +": f"{time.time()}", "is-active chrony": "active"}
    machines.test_the_clock_is_right_and_is_kept_so(Machine(Host(timedatectl="yes", **kept), "gpu1"))
    with pytest.raises(pytest.fail.Exception, match="in step with no time server"):
        machines.test_the_clock_is_right_and_is_kept_so(Machine(Host(timedatectl="no", **kept), "gpu1"))


@pytest.mark.parametrize(("told", "is_well"), [
    ("NVIDIA Container Toolkit CLI version 1.18.0\ncommit: x", True), ("version 1.9.0", False),
    ("none", False)])  # fmt: skip
def test_a_toolkit_that_is_too_old_is_told(told: str, is_well: bool) -> None:
    machine = Machine(Host(**{"nvidia-ctk": told}), "gpu1")
    if is_well:
        gpus.test_the_container_toolkit_is_new_enough(machine, 1)
        return
    with pytest.raises(pytest.fail.Exception, match=r"1\.14 is wanted"):
        gpus.test_the_container_toolkit_is_new_enough(machine, 1)


def test_an_engine_that_knows_no_nvidia_runtime_is_told() -> None:
    host = Host(grep="COMPOSE_FILE=compose.yaml:compose.gpu.yaml\nGPU_DRIVER=nvidia", info='{"nvidia": {}}')
    gpus.test_the_engine_gives_gpus_to_containers(Machine(host, "gpu1"), 1)
    host.answers["info"] = '{"runc": {}}'
    with pytest.raises(pytest.fail.Exception, match="no runtime called nvidia"):
        gpus.test_the_engine_gives_gpus_to_containers(Machine(host, "gpu1"), 1)


@pytest.mark.parametrize(("runs", "look", "told"), [
    (True, {"--look": ""}, ""), (False, {"--look": ""}, "its timer does not run"),
    (True, {}, "would never switch itself off")])  # fmt: skip
def test_a_machine_that_would_never_switch_itself_off_is_told(
    monkeypatch: pytest.MonkeyPatch, runs: bool, look: dict[str, str], told: str
) -> None:
    monkeypatch.setattr(asking, "PATIENCE_SECONDS", 0)
    host = Host(**look)
    host.service = lambda name: SimpleNamespace(is_running=runs, is_enabled=runs)  # type: ignore[attr-defined]
    machines.test_the_machine_would_switch_itself_off(Machine(host, "gpu1", {"stack_idle_stop_minutes": 0}))
    with pytest.raises(pytest.fail.Exception, match=told) if told else nullcontext():
        machines.test_the_machine_would_switch_itself_off(Machine(host, "gpu1", {"stack_idle_stop_minutes": 60}))
