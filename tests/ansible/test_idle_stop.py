"""A machine switches itself off when its GPUs idled long enough and nobody is there; in doubt it stays on."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collector.support import serving
from tests.stack.bases import ROOT

PROGRAM = ROOT / "ansible" / "roles" / "stack" / "files" / "idle-stop"


class Tried:
    def __init__(self, folder: Path) -> None:
        self.folder, self.since, self.off = folder, folder / "since", folder / "off"
        self.says("who", "").says("loginctl", "").says("systemctl", f"echo $1 >>{self.off}")
        self.program = folder / "idle-stop"
        self.program.write_text(PROGRAM.read_text().replace("/run/trainvitals-idle", str(self.since)))

    def says(self, name: str, body: str) -> "Tried":
        (self.folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (self.folder / name).chmod(0o755)
        return self

    def run(self, url: str, minutes: float = 0) -> str:
        told = self.folder / "idle.json"
        told.write_text(json.dumps({"url": url, "minutes": minutes}))
        done = subprocess.run([sys.executable, self.program, told], env={**os.environ, "PATH": str(self.folder)},
                              capture_output=True, text=True, check=True, timeout=60)  # fmt: skip
        return done.stdout


@pytest.fixture
def tried(tmp_path: Path) -> Tried:
    folder = tmp_path / "idle"
    folder.mkdir()
    return Tried(folder)


@pytest.fixture
def metrics(tmp_path: Path) -> Iterator[str]:
    """An agent whose simulated GPUs are busy."""
    with serving(tmp_path, "--simulate", "2") as agent:
        yield f"{agent.address}/metrics"


def page(folder: Path, *percents: float) -> str:
    text = "".join(
        f'gpu_utilization_percent{{gpu="{index}",uuid="G{index}"}} {value}\n' for index, value in enumerate(percents)
    )
    (folder / "page").write_text(text)
    return f"file://{folder / 'page'}"


def test_gpus_that_idle_for_long_switch_it_off(tried: Tried) -> None:
    assert "switching off" in tried.run(page(tried.folder, 0, 4.9))
    assert tried.off.read_text() == "poweroff\n"


def test_not_before_the_time_is_over(tried: Tried) -> None:
    url = page(tried.folder, 0)
    tried.run(url, minutes=10)
    assert not tried.off.exists()
    tried.since.write_text(str(time.monotonic() - 601))
    tried.run(url, minutes=10)
    assert tried.off.exists()


@pytest.mark.parametrize("percents", [(0, 5), (100,), ()])
def test_one_that_works_or_none_starts_the_time_anew(tried: Tried, percents: tuple[float, ...]) -> None:
    tried.since.write_text("0")
    tried.run(page(tried.folder, *percents))
    assert not tried.off.exists()
    assert not tried.since.exists()


@pytest.mark.parametrize("register", ["who", "loginctl"])
def test_somebody_who_is_logged_in_keeps_it_on(tried: Tried, register: str) -> None:
    tried.says(register, "echo 31 1000 admin pts/0").run(page(tried.folder, 0))
    assert not tried.off.exists()


def test_an_agent_that_does_not_answer_is_told_and_taken_as_busy(tried: Tried) -> None:
    assert "taken as busy" in tried.run("http://127.0.0.1:1/metrics")
    assert not tried.off.exists()


def test_it_reads_the_agent_s_own_page(tried: Tried, metrics: str) -> None:
    tried.since.write_text("0")
    assert tried.run(metrics) == ""
    assert not tried.off.exists()
