"""tests/infra, which looks at machines: how a failure reads, and that it is no part of the other tests."""

import subprocess
import sys
from typing import Any, NamedTuple

import pytest

from tests.infra.machine import Machine
from tests.infra.test_containers import loose
from tests.stack.bases import ROOT


class Done(NamedTuple):
    rc: int
    stdout: str


class Host:
    """Answers by the first of these that stands in the command."""

    def __init__(self, **answers: str) -> None:
        self.answers = answers

    def run(self, command: str) -> Done:
        told = [answer for word, answer in self.answers.items() if word in command]
        return Done(0 if told else 1, told[0] if told else "")


def test_a_failure_says_what_where_and_what_to_do_and_ends_with_the_log() -> None:
    machine = Machine(Host(logs="one\ntwo"), "gpu1")
    with pytest.raises(pytest.fail.Exception) as told:
        machine.demand(False, "grafana is dead", "start it", container="grafana")
    assert str(told.value).splitlines() == [
        "gpu1: grafana is dead", "    do: start it", "    docker logs --tail 15 trainvitals-grafana-1", "    | one",
        "    | two"]  # fmt: skip


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
