"""A machine as the verification sees it: what is asked of it, and how a failure is told.

    machine.demand(machine.docker_answers(), "Docker does not answer", "systemctl status docker", unit="docker")

A failure says what, where and what to do, then the last lines of the log that tells more.
"""

import json
import re
import shlex
from functools import cached_property
from typing import Any
from urllib.parse import quote

import pytest

HOME = "/opt/trainvitals"
PROJECT = "trainvitals"
JOBS = {"journal", "targets", "alertmanager-config", "grafana-password", "caddy-volume"}
LOG_LINES = 15
ASK_SECONDS = 60
_NOT_SECRET = "^(COMPOSE_|GPU_|TRAINVITALS_|EXPORTERS_|PUBLIC_|[A-Z_]+_PORT=)"
_PUBLISHED = re.compile(r"(\S+):(\d+)$")


class Machine:
    def __init__(self, host: Any, name: str) -> None:
        self.host, self.name = host, name

    def run(self, command: str, seconds: int = ASK_SECONDS) -> tuple[int, str]:
        """As root: how it ended, and all that it said."""
        done = self.host.run(f"timeout {seconds} sh -c {shlex.quote(command)} 2>&1")
        return done.rc, done.stdout.strip()

    def says(self, command: str) -> str:
        """What it says; nothing where it fails."""
        status, told = self.run(command)
        return told if status == 0 else ""

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
        text = self.says(f"grep -E '{_NOT_SECRET}' {HOME}/compose/.env")
        self.demand(text, f"there is no {HOME}/compose/.env", "deploy it: make deploy INVENTORY=…")
        found = (line.partition("=") for line in text.splitlines())
        return {name: value.strip("'\"") for name, _, value in found}

    @cached_property
    def profiles(self) -> set[str]:
        return set(self.knobs["COMPOSE_PROFILES"].split(","))

    @cached_property
    def wanted(self) -> set[str]:
        """The services that the profiles name."""
        told = self.says(f"cd {HOME}/compose && docker compose config --services")
        self.demand(told, "docker compose cannot read its composition", f"cd {HOME}/compose && docker compose config")
        return set(told.split())

    @cached_property
    def containers(self) -> dict[str, dict[str, Any]]:
        """What docker inspect tells of each, by its service."""
        label = f"label=com.docker.compose.project={PROJECT}"
        told = self.says(f"docker ps --all --quiet --filter {label} | xargs --no-run-if-empty docker inspect")
        found = json.loads(told or "[]")
        return {one["Config"]["Labels"]["com.docker.compose.service"]: one for one in found}

    @cached_property
    def listening(self) -> set[tuple[str, int]]:
        """Address and port of each TCP socket that listens."""
        found = (line.split() for line in self.says("ss -Htln").splitlines())
        matches = (_PUBLISHED.search(words[3]) for words in found if len(words) > 3)
        return {(match[1].strip("[]"), int(match[2])) for match in matches if match}

    def fetched(self, port: str, path: str) -> Any:
        """What a service of the monitoring machine answers, on its loopback."""
        url = f"http://127.0.0.1:{self.knobs[port]}{path}"
        status, told = self.run(f"curl --silent --show-error --max-time 20 {shlex.quote(url)}")
        service = port.removesuffix("_PORT").lower()
        self.demand(
            status == 0,
            f"{url} does not answer: {told}",
            f"docker ps; docker logs trainvitals-{service}-1",
            container=service,
        )
        return json.loads(told)

    def prometheus(self, query: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.fetched("PROMETHEUS_PORT", f"/api/v1/query?query={quote(query)}")["data"][
            "result"
        ]
        return found
