"""The stack as it is shipped, on a real engine, under a name and on ports of its own.

    with running(engine) as stack: stack.prometheus('up == 0')  ->  []

Its rules alone are changed: what waits for minutes waits for seconds.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from tests.ports import free_port
from tests.stack.bases import ROOT

PROJECT = "trainvitals-test"
# Its software cannot be made of the distribution's: it runs where its image is there.
GRAFANA = frozenset({"grafana", "grafana-password"})
PORTS = ("TRAINVITALS_PORT", "PROMETHEUS_PORT", "ALERTMANAGER_PORT", "GRAFANA_PORT", "NODE_EXPORTER_PORT")
Found = TypeVar("Found")


def wait_for(ask: Callable[[], Found], seconds: float, pause: float = 0.5,
             tell: Callable[[], Any] | None = None) -> Found:  # fmt: skip
    deadline = time.monotonic() + seconds
    while True:
        try:
            if found := ask():
                return found
        except OSError:
            pass
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {(tell or ask)()}")
        time.sleep(pause)


class Stack:
    def __init__(self, docker: str, folder: Path, knobs: Mapping[str, str]) -> None:
        self._docker, self.folder = docker, folder
        self.knobs = dict(knobs)
        self.left_out = GRAFANA

    def compose(self, *words: str, seconds: float = 180) -> str:
        environ = {key: value for key, value in os.environ.items() if not key.startswith("COMPOSE_")}
        command = [self._docker, "compose", "-p", PROJECT, *words]
        done = subprocess.run(command, cwd=self.folder / "compose", check=False,
                              capture_output=True, text=True, timeout=seconds, env=environ)  # fmt: skip
        assert done.returncode == 0, f"{words}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout

    def up(self) -> float:
        """How long it took until all are healthy."""
        began = time.monotonic()
        self.compose("up", "--detach", "--wait", "--wait-timeout", "90", *self.services())
        return time.monotonic() - began

    def services(self) -> list[str]:
        """All that the profiles name, but for jobs: those end, and are waited for by what needs them."""
        wanted = self.compose("config", "--format", "json")
        services = json.loads(wanted)["services"]
        return [name for name, told in services.items() if name not in self.left_out and told.get("restart") != "no"]

    def down(self, *words: str) -> None:
        self.compose("--profile", "*", "down", "--timeout", "10", *words)

    def url(self, knob: str) -> str:
        return f"http://127.0.0.1:{self.knobs[knob]}"

    def prometheus(self, query: str) -> list[dict[str, Any]]:
        told = fetched(f"{self.url('PROMETHEUS_PORT')}/api/v1/query?query={quote(query)}")
        found: list[dict[str, Any]] = told["data"]["result"]
        return found

    def prometheus_range(self, query: str, seconds: int) -> list[dict[str, Any]]:
        now = time.time()
        words = f"query={quote(query)}&start={now - seconds}&end={now}&step=5"
        found: list[dict[str, Any]] = fetched(f"{self.url('PROMETHEUS_PORT')}/api/v1/query_range?{words}")["data"][
            "result"
        ]
        return found

    def alerts(self) -> set[str]:
        """What fires, by name."""
        told = fetched(f"{self.url('ALERTMANAGER_PORT')}/api/v2/alerts")
        return {alert["labels"]["alertname"] for alert in told}

    def silence(self, name: str) -> str:
        told = {"matchers": [{"name": "alertname", "value": name, "isRegex": False}], "createdBy": "test",
                "startsAt": "2026-01-01T00:00:00Z", "endsAt": "2100-01-01T00:00:00Z", "comment": "kept"}  # fmt: skip
        return str(fetched(f"{self.url('ALERTMANAGER_PORT')}/api/v2/silences", told)["silenceID"])

    def silences(self) -> list[str]:
        return [one["id"] for one in fetched(f"{self.url('ALERTMANAGER_PORT')}/api/v2/silences")]


def training(stack: Stack, code: str) -> "subprocess.Popen[bytes]":
    """A run on this machine, in the stack's journal."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("TRAINVITALS_")}
    env |= {"TRAINVITALS_DIR": stack.knobs["TRAINVITALS_DIR"], "PYTHONPATH": str(ROOT / "collector" / "src")}
    return subprocess.Popen([sys.executable, "-c", code], env=env)


def containers(client: Any) -> dict[str, Any]:
    """Those that run, by their service."""
    found = client.containers.list(filters={"label": f"com.docker.compose.project={PROJECT}"})
    return {one.labels["com.docker.compose.service"]: one for one in found}


def memory_bytes(one: Any) -> int:
    """The kernel's own count for a container, its caches included."""
    lines = Path(f"/proc/{one.attrs['State']['Pid']}/cgroup").read_text().splitlines()
    groups = {names: path for _, names, path in (line.split(":", 2) for line in lines)}
    if "memory" in groups:
        return int(Path(f"/sys/fs/cgroup/memory{groups['memory']}/memory.usage_in_bytes").read_text())
    return int(Path(f"/sys/fs/cgroup{groups['']}/memory.current").read_text())


def fetched(url: str, body: Any = None) -> Any:
    return json.loads(fetched_text(url, body) or "null")


def fetched_text(url: str, body: Any = None) -> str:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return str(answer.read().decode())


def asked(url: str, method: str = "GET", **headers: str) -> tuple[int, Message, str]:
    """Whatever is answered, 403 too."""
    request = urllib.request.Request(url, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def shortened(rules: str) -> str:
    """What waits for minutes, looks back over minutes or is told of for minutes does so for seconds."""
    for pattern, short in (
        # By as much as its window: where two nodes are read a moment apart, a new phase looks like a straggler for as
        # long as its beginning is within the window.
        (r"(alert: TrainingStraggler\n(?:(?!.*alert:).*\n)*?\s*for: )2m\b", r"\g<1>30s"),
        (r"for: \d+[mh]\b", "for: 0s"),
        (r"(rate\([^()]*)\[[25]m\]", r"\1[30s]"),
        (r"(training_nonfinite_total\S+\[1h\] offset) 10m", r"\1 1m"),
        (r"(training_nonfinite_total\S+)\[10m\]", r"\1[1m]"),
        (r"(threshold:event_age:seconds\", expr: )\"\d+", r'\1"30'),
        (r"(training_run_status\S+?)(\[| offset )1h", r"\1\g<2>1m"),
    ):
        rules = re.sub(pattern, short, rules)
    return rules


@contextmanager
def running(docker: str, folder: Path, **more: str) -> Iterator[Stack]:
    """Everything that it made is gone afterwards."""
    for name in ("collector", "requirements", "grafana"):
        (folder / name).symlink_to(ROOT / name)
    for name in ("compose", "prometheus"):
        shutil.copytree(ROOT / name, folder / name)
    for path in (folder / "prometheus" / "rules").glob("*.yml"):
        path.write_text(shortened(path.read_text()))
    journal = folder / "journal"
    journal.mkdir()
    knobs = {"COMPOSE_PROFILES": "node,server,demo", "TRAINVITALS_DIR": str(journal),
             **{name: str(free_port()) for name in PORTS}, "DEMO_PORT": str(free_port()), **more}  # fmt: skip
    stack = Stack(docker, folder, knobs)
    write_env(stack)
    try:
        yield stack
    finally:
        stack.down("--volumes", "--remove-orphans")


def write_env(stack: Stack) -> None:
    """As a user changes it: the example with other values."""
    text = (ROOT / "compose" / ".env.example").read_text()
    for name, value in stack.knobs.items():
        text, count = re.subn(rf"(?m)^{name}=.*$", f"{name}={value}", text)
        assert count == 1, name
    (stack.folder / "compose" / ".env").write_text(text)
