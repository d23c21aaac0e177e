"""tests/infra, which looks at machines: how a failure reads, and that it is no part of the other tests."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from tests.infra import test_machines as machines
from tests.infra.conftest import met
from tests.infra.machine import Machine, watched
from tests.infra.test_containers import loose
from tests.infra.test_gpus import test_dcgm_s_exporter_is_asked_where_it_runs as dcgm_is_asked
from tests.infra.test_monitoring import test_every_target_is_up as targets_are_up
from tests.stack.bases import ROOT


class Done(NamedTuple):
    rc: int
    stdout: str
    stderr: str = ""


class Host:
    """Answers by the first of these that stands in the command."""

    def __init__(self, **answers: str) -> None:
        self.answers = answers

    def run(self, command: str) -> Done:
        told = [answer for word, answer in self.answers.items() if word in command]
        return Done(0 if told else 1, told[0] if told else "")


class Asking:
    """Asks its backend, as testinfra's hosts do."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend

    def run(self, command: str) -> Any:
        return self.backend.run(command)


def test_a_failure_says_what_where_and_what_to_do_and_ends_with_the_log() -> None:
    machine = Machine(Host(logs="one\ntwo"), "gpu1")
    with pytest.raises(pytest.fail.Exception) as told:
        machine.demand(False, "grafana is dead", "start it", container="grafana")
    assert str(told.value).splitlines() == [
        "gpu1: grafana is dead", "    do: start it", "    docker logs --tail 15 trainvitals-grafana-1", "    | one",
        "    | two"]  # fmt: skip


def test_a_machine_that_goes_away_is_a_line_and_is_asked_no_more() -> None:
    asked = []

    def run(command: str) -> Any:
        asked.append(command)
        raise RuntimeError(SimpleNamespace(rc=255, stderr="a warning\nssh: connect to host 10.0.0.12: No route\n"))

    machine = watched(Asking(SimpleNamespace(run=run)), "gpu2", {})
    for _ in range(2):
        with pytest.raises(pytest.fail.Exception) as told:
            machine.run("date")
        first, fix = str(told.value).splitlines()
        assert first == "gpu2: SSH does not get there: ssh: connect to host 10.0.0.12: No route"
        assert "do: is it on" in fix and not told.value.pytrace
    assert len(asked) == 1


def test_a_kernel_parameter_that_is_not_in_force_is_told() -> None:
    told = {"grep": "fs.a = 1024", "--values": "128"}
    with pytest.raises(pytest.fail.Exception, match=r"fs\.a is 128, 1024 is wanted"):
        machines.test_kernel_parameters_are_in_force(Machine(Host(**told), "gpu1"))
    machines.test_kernel_parameters_are_in_force(Machine(Host(**{**told, "--values": "2048"}), "gpu1"))


@pytest.mark.parametrize("looks", [
    machines.test_kernel_parameters_are_in_force, machines.test_no_secret_can_be_read_by_everybody,
    machines.test_the_clock_is_right_and_is_kept_so, machines.test_no_secret_stands_where_docker_shows_it])  # fmt: skip
def test_a_machine_that_answers_nothing_is_told(looks: Callable[[Machine], None]) -> None:
    with pytest.raises(pytest.fail.Exception, match="ended with 1"):
        looks(Machine(Host(), "gpu1"))


def test_who_keeps_the_clock_is_asked_unless_the_inventory_leaves_that_to_others() -> None:
    right = Host(**{"date +": f"{time.time()}"})
    with pytest.raises(pytest.fail.Exception, match="nothing keeps the clock right"):
        machines.test_the_clock_is_right_and_is_kept_so(Machine(right, "gpu1"))
    machines.test_the_clock_is_right_and_is_kept_so(Machine(right, "gpu1", {"base_time_sync": "none"}))


@pytest.mark.parametrize(("answer", "told", "service"), [
    ({}, "does not answer: ", "gate"), ({"api": "<html>502</html>"}, "answers <html>502</html>", "prometheus"),
    ({"api": '{"status": "error", "error": "query timed out"}'}, "answers query timed out", "prometheus"),
    ({"api": ""}, "answers nothing", "prometheus")])  # fmt: skip
def test_a_prometheus_that_answers_otherwise_is_told_with_the_log_that_says_why(
    answer: dict[str, str], told: str, service: str
) -> None:
    machine = Machine(Host(grep="PROMETHEUS_PORT=9090", logs="one", **answer), "mon")
    with pytest.raises(pytest.fail.Exception) as failed:
        machine.prometheus("up")
    lines = str(failed.value).splitlines()
    assert told in lines[0]
    assert lines[2:] == [f"    docker logs --tail 15 trainvitals-{service}-1", "    | one"]


def test_a_prometheus_that_asks_nobody_is_told() -> None:
    told = {"grep": "PROMETHEUS_PORT=9090", "targets": json.dumps({"status": "success", "data": {"activeTargets": []}})}
    with pytest.raises(pytest.fail.Exception, match="Prometheus asks no target"):
        targets_are_up(Machine(Host(**told), "mon"))


SECRETS = "600 /opt/trainvitals/releases/1/compose/.env\n"


def test_secrets_are_looked_at_by_their_modes() -> None:
    machines.test_no_secret_can_be_read_by_everybody(Machine(Host(find=f"{SECRETS}640 /etc/docker/daemon.json"), "mon"))
    for told, what in ((f"{SECRETS}644 /etc/docker/daemon.json", "may read /etc/docker"), ("", "there is no")):
        with pytest.raises(pytest.fail.Exception, match=what):
            machines.test_no_secret_can_be_read_by_everybody(Machine(Host(find=told), "mon"))


def dcgm(runs: bool, asked: bool) -> None:
    """gpu1, on which DCGM's exporter runs, and Prometheus, which asks it: both as they are said."""
    told = {"grep": f"COMPOSE_PROFILES=node{',dcgm' if runs else ''}\nTRAINVITALS_HOSTNAME=gpu1"}
    labels = [{"labels": {"job": "dcgm", "instance": "gpu1" if asked else "gpu10"}}]
    targets = json.dumps({"status": "success", "data": {"activeTargets": labels}})
    monitor = Machine(Host(grep="PROMETHEUS_PORT=9090", targets=targets), "mon")
    dcgm_is_asked(Machine(Host(**told), "gpu1"), monitor)


@pytest.mark.parametrize("runs", [True, False])
def test_dcgm_s_exporter_is_looked_for_among_the_targets(runs: bool) -> None:
    dcgm(runs, runs)
    with pytest.raises(pytest.fail.Exception, match="DCGM's exporter"):
        dcgm(runs, not runs)


def test_what_is_open_is_read_as_ss_tells_it() -> None:
    lines = "LISTEN 0 4096 127.0.0.1:9090 0.0.0.0:*\nLISTEN 0 4096 [::]:22 [::]:*\nLISTEN 0 4096 *:80 *:*\n"
    assert Machine(Host(ss=lines), "gpu1").listening == {("127.0.0.1", 9090), ("::", 22), ("*", 80)}


def test_no_knob_that_is_secret_is_asked_for() -> None:
    asked: list[str] = []

    class Listening(Host):
        def run(self, command: str) -> Done:
            asked.append(command)
            return Done(0, "COMPOSE_PROFILES='node,server'")

    assert Machine(Listening(), "mon").profiles == {"node", "server"}
    assert not any(word in asked[0] for word in ("cat ", "SMTP", "SLACK"))


def test_the_stack_is_looked_for_where_the_inventory_puts_it() -> None:
    """As the fixtures make a machine of it."""
    told = SimpleNamespace(get_variables=lambda name: {"stack_home": f"/srv/{name}"})
    host = Host(**{"/srv/mon/compose/.env": "COMPOSE_PROFILES=node"})
    host.backend = SimpleNamespace(host="mon", ansible_runner=told, run=host.run)  # type: ignore[attr-defined]
    assert met(host).profiles == {"node"}


def hardened(**more: Any) -> dict[str, Any]:
    host = {"ReadonlyRootfs": True, "CapAdd": None, "CapDrop": ["ALL"], "SecurityOpt": ["no-new-privileges:true"],
            "Privileged": False, "Memory": 1, "PidsLimit": 1, "LogConfig": {"Config": {"max-size": "10m"}}}  # fmt: skip
    return {"HostConfig": host | more, "Config": {"User": "65534:65534"}, "Mounts": []}


@pytest.mark.parametrize(("change", "told"), [
    ({"ReadonlyRootfs": False}, "can be written"), ({"CapAdd": ["CAP_SYS_ADMIN"]}, "SYS_ADMIN"),
    ({"CapDrop": None}, "keeps"),
    ({"SecurityOpt": []}, "gain"), ({"Privileged": True}, "privileged"), ({"Memory": 0}, "memory"),
    ({"PidsLimit": None}, "processes"), ({"LogConfig": {"Config": {}}}, "rotated")])  # fmt: skip
def test_a_container_that_may_do_more_is_told(change: dict[str, Any], told: str) -> None:
    assert loose("prometheus", hardened()) == []
    (found,) = loose("prometheus", hardened(**change))
    assert told in found


def test_without_machines_it_is_no_part_of_the_tests() -> None:
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only", "tests/infra"]
    done = subprocess.run(words, cwd=ROOT, check=False, capture_output=True, text=True, timeout=60)
    assert "no tests collected" in done.stdout, done.stdout
