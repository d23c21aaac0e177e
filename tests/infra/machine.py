"""A machine as the verification sees it: what is asked of it, and how a failure is told.

    machine.demand(machine.docker_answers(), "Docker does not answer", "systemctl status docker", unit="docker")

A failure says what, where and what to do, then the last lines of the log that tells more.
"""

import json
import re
import shlex
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import pytest

from tests.infra import sudo

HOME = "/opt/trainvitals"
PROJECT = "trainvitals"
JOBS = {"journal", "targets", "alertmanager-config", "grafana-password", "caddy-volume"}
LOG_LINES = 15
ASK_SECONDS = 60
# A scrape may not have come yet since the services were started.
PATIENCE_SECONDS = 60
PAUSE_SECONDS = 3
LINE_LENGTH = 200
MEND_SSH = "is it on, and does ssh by hand let you in? make verify again then"
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_NOT_SECRET = "^(COMPOSE_|GPU_|TRAINVITALS_|EXPORTERS_|PUBLIC_|[A-Z_]+_PORT=)"
_PUBLISHED = re.compile(r"(\S+):(\d+)$")


def patiently(ask: Callable[[], Any], is_well: Callable[[Any], bool]) -> Any:
    """The first answer that is well, or the last one."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_well(answer := ask()) and time.monotonic() < deadline:
        time.sleep(PAUSE_SECONDS)
    return answer


def _why(error: RuntimeError) -> str:
    """The last that ssh said: testinfra raises the whole of its result."""
    said = getattr(error.args[0], "stderr", "") if error.args else ""
    return (str(said or error).strip().splitlines() or ["it says nothing"])[-1][:LINE_LENGTH]


class Machine:
    def __init__(self, host: Any, name: str, told: Mapping[str, Any] = _NOTHING) -> None:
        """`told` is what the inventory says of it."""
        self.host, self.name, self.told = host, name, told
        self.home = told.get("stack_home", HOME)

    def run(self, command: str, seconds: int = ASK_SECONDS) -> tuple[int, str]:
        """As root: how it ended, and all that it said."""
        done = self.host.run(f"timeout {seconds} sh -c {shlex.quote(command)} 2>&1")
        return done.rc, done.stdout.strip() or done.stderr.strip()

    def says(self, command: str) -> str:
        """What it says; nothing where it fails."""
        status, told = self.run(command)
        return told if status == 0 else ""

    def answer(self, command: str, do: str = "deploy again") -> str:
        """What it says; where it fails that is told, for silence would be taken for all being well."""
        status, told = self.run(command)
        self.demand(status == 0, f"`{command}` ended with {status}: {told[-300:]}", do)
        return told

    def demand(self, holds: object, what: str, do: str, *, unit: str = "", container: str = "") -> None:
        if holds:
            return
        lines = [f"{self.name}: {what}", f"    do: {do}"]
        if unit:
            lines += self._log(f"journalctl --no-pager --unit {unit} --lines {LOG_LINES}")
        if container:
            lines += self._log(f"docker logs --tail {LOG_LINES} {PROJECT}-{container}-1")
        pytest.fail("\n".join(lines), pytrace=False)

    def _log(self, command: str) -> list[str]:
        return [f"    {command}", *(f"    | {line}" for line in self.run(command)[1].splitlines()[-LOG_LINES:])]

    @cached_property
    def knobs(self) -> dict[str, str]:
        """compose/.env, but for what is secret."""
        text = self.says(f"grep -E '{_NOT_SECRET}' {self.home}/compose/.env")
        self.demand(text, f"there is no {self.home}/compose/.env", "deploy it: make deploy INVENTORY=…")
        found = (line.partition("=") for line in text.splitlines())
        return {name: value.strip("'\"") for name, _, value in found}

    @cached_property
    def profiles(self) -> set[str]:
        return set(self.knobs["COMPOSE_PROFILES"].split(","))

    @cached_property
    def wanted(self) -> set[str]:
        """The services that the profiles name."""
        ask = f"cd {self.home}/compose && docker compose config"
        told = self.says(f"{ask} --services")
        self.demand(told, "docker compose cannot read its composition", ask)
        return set(told.split())

    @cached_property
    def containers(self) -> dict[str, dict[str, Any]]:
        """What docker inspect tells of each, by its service."""
        label = f"label=com.docker.compose.project={PROJECT}"
        ids = f"docker ps --all --quiet --filter {label}"
        found = json.loads(self.answer(f"docker inspect $({ids})", "docker ps; deploy again"))
        return {one["Config"]["Labels"]["com.docker.compose.service"]: one for one in found}

    @cached_property
    def published(self) -> set[tuple[str, str, int]]:
        """Service, address and port of each that Docker publishes."""
        return {(name, at["HostIp"], int(at["HostPort"]))
                for name, one in self.containers.items()
                for bound in (one["NetworkSettings"]["Ports"] or {}).values()
                for at in bound or ()}  # fmt: skip

    @cached_property
    def listening(self) -> set[tuple[str, int]]:
        """Address and port of each TCP socket that listens."""
        found = (line.split() for line in self.answer("ss -Htln", "apt-get install iproute2").splitlines())
        matches = (_PUBLISHED.search(words[3]) for words in found if len(words) > 3)
        return {(match[1].strip("[]"), int(match[2])) for match in matches if match}

    def fetched(self, path: str) -> Any:
        """What Prometheus answers on the monitoring machine's loopback, where the gate is before it."""
        url = f"http://127.0.0.1:{self.knobs['PROMETHEUS_PORT']}{path}"
        status, told = self.run(f"curl --silent --show-error --max-time 20 {shlex.quote(url)}")
        self.demand(status == 0, f"{url} does not answer: {told}", "docker ps; deploy again", container="gate")
        found = read(told)
        self.demand(
            found.get("status") == "success",
            f"{url} answers {found.get('error') or told[-300:] or 'nothing'}",
            "docker ps; deploy again",
            container="prometheus",
        )
        return found["data"]

    def prometheus(self, query: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.fetched(f"/api/v1/query?query={quote(query)}")["result"]
        return found


def read(told: str) -> dict[str, Any]:
    """An object of JSON; nothing where it is none."""
    try:
        found = json.loads(told)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def watched(host: Any, name: str, told: Mapping[str, Any]) -> Machine:
    """One that is asked no more once SSH, or sudo, did not get there: each question would wait for that again."""
    ask, gone = host.backend.run, list[str]()

    def asked(*words: Any, **options: Any) -> Any:
        try:
            done = None if gone else ask(*words, **options)
            if refused := sudo.refusal(done) if done else "":
                gone.append(f"sudo lets nobody become root: {refused[:LINE_LENGTH]}\n    do: {sudo.MEND}")
        except RuntimeError as error:
            gone.append(f"SSH does not get there: {_why(error)}\n    do: {MEND_SSH}")
        if gone:
            pytest.fail(f"{name}: {gone[0]}", pytrace=False)
        return done

    # Whatever asks, a module of testinfra too, asks by that.
    host.backend.run = asked
    return Machine(host, name, told)
