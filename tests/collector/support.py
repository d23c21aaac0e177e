"""What several tests need: an agent as a process of its own, and short waiting with a bound."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from tests.fakenvml import Scenario, build, environment

T = TypeVar("T")


def wait_for(ask: Callable[[], T], seconds: float = 10.0, pause: float = 0.02) -> T:
    """The first true answer; an AssertionError when none came in time."""
    deadline = time.monotonic() + seconds
    while not (answer := ask()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {ask}"
        time.sleep(pause)
    return answer


def command_line(*words: str) -> list[str]:
    return [sys.executable, "-m", "trainvitals.cli", *words]


def run(*words: str, env: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    """A command that ends by itself."""
    return subprocess.run(command_line(*words), capture_output=True, text=True, timeout=20, check=False,
                          env={**os.environ, **(env or {})})  # fmt: skip


@dataclass
class Served:
    """A running `trainvitals serve` and ways to ask it."""

    process: subprocess.Popen[str]
    address: str
    folder: Path

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> str:
        request = urllib.request.Request(self.address + path, headers=dict(headers or {}))
        with urllib.request.urlopen(request, timeout=10) as answer:
            return str(answer.read().decode())

    def snapshot(self) -> dict[str, Any]:
        return dict(json.loads(self.get("/api/v1/snapshot")))

    def connect(self) -> socket.socket:
        address = urlsplit(self.address)
        return socket.create_connection((address.hostname or "", address.port or 0), timeout=10)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=10)


def is_chance(line: str) -> bool:
    """A processor that others keep busy makes any write slow, and that is said."""
    return "took over 20 ms for a write" in line


def complaints(process: "subprocess.Popen[str]") -> list[str]:
    assert process.stderr is not None
    return [line for line in process.stderr if not is_chance(line)]


@contextmanager
def serving(
    folder: Path, *flags: str, command: str = "serve", env: Mapping[str, str] | None = None
) -> Iterator[Served]:
    """`trainvitals serve` on a free port with its journal in `folder`; ended when the block ends."""
    journal = ("--dir", str(folder)) if command == "serve" else ()
    process = subprocess.Popen(
        command_line(command, *journal, "--port", "0", *flags),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})})  # fmt: skip
    try:
        yield Served(process, _address(process), folder)
    finally:
        process.kill()
        process.communicate(timeout=10)


def _address(process: subprocess.Popen[str]) -> str:
    """Read off the words at the start."""
    assert process.stdout is not None and process.stderr is not None
    for line in process.stdout:
        if line.startswith("  page"):
            return line.split()[1].rstrip("/")
    raise AssertionError(f"the agent did not start: {process.stderr.read()}")


@contextmanager
def fake_gpus(folder: Path, text: str = "gpus 8") -> Iterator[tuple[Scenario, dict[str, str]]]:
    """The stand-in for NVML with a scenario of its own, and the environment that makes a process use it."""
    library = build(folder)
    scenario = Scenario(folder / "scenario", text)
    yield scenario, environment(library.parent, scenario.path)
