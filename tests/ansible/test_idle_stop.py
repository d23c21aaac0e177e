"""A machine switches itself off when its GPUs idled long enough and nobody is there; in doubt it stays on."""

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ansible.local import HOST, played, role
from tests.collector.support import serving
from tests.stack.bases import ROOT

NAN, INFINITE = float("nan"), float("inf")
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
        done = self.call(url, minutes)
        assert done.returncode == 0, done
        return done.stdout

    def call(self, url: str, minutes: float = 0, *words: str) -> "subprocess.CompletedProcess[str]":
        told = self.folder / "idle.json"
        told.write_text(json.dumps({"url": url, "minutes": minutes}))
        environ = {**os.environ, "PATH": str(self.folder)}
        return subprocess.run([sys.executable, self.program, told, *words], env=environ, capture_output=True, text=True,
                              check=False, timeout=60)  # fmt: skip


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


def page(folder: Path, *percents: float, count: float | None = None, expected: float | None = None) -> str:
    there = len(percents) if count is None else count
    text = f"gpu_count {there}\ngpu_expected_count {there if expected is None else expected}\n" + "".join(
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


@pytest.mark.parametrize("percents", [(NAN, 0), (0, NAN), (NAN,), (0, INFINITE)])
def test_a_number_that_is_none_is_not_idle(tried: Tried, percents: tuple[float, ...]) -> None:
    assert "taken as busy" in tried.run(page(tried.folder, *percents))
    assert not tried.off.exists()


@pytest.mark.parametrize(("count", "expected"), [(2, 2), (1, 2), (2, 1), (NAN, 1)])
def test_a_gpu_that_tells_nothing_is_taken_as_busy(tried: Tried, count: float, expected: float) -> None:
    """In MIG mode none tells how busy it is; one that is lost tells nothing at all."""
    assert "1 GPUs tell how busy they are, and there is gpu_count" in tried.run(
        page(tried.folder, 0, count=count, expected=expected)
    )
    assert not tried.off.exists()


def test_a_page_without_counts_is_no_agent_s(tried: Tried) -> None:
    (tried.folder / "page").write_text('gpu_utilization_percent{gpu="0"} 0\n')
    assert "no count: taken as busy" in tried.run(f"file://{tried.folder / 'page'}")
    assert not tried.off.exists()


def test_a_look_does_nothing_and_tells_by_its_status_whether_it_can_tell(tried: Tried) -> None:
    assert tried.call(page(tried.folder, 0), 0, "--look").returncode == 0
    done = tried.call(page(tried.folder, NAN), 0, "--look")
    assert done.returncode == 1 and "0 GPUs tell how busy they are, and there is gpu_count 1" in done.stdout
    assert not tried.off.exists() and not tried.since.exists()


def test_the_agent_s_own_counts_are_read(tried: Tried, metrics: str) -> None:
    text = urllib.request.urlopen(metrics, timeout=20).read().decode()
    (tried.folder / "page").write_text(re.sub(r"(?m)^(gpu_utilization_percent\{.*\}) .*", r"\1 0", text))
    assert "switching off" in tried.run(f"file://{tried.folder / 'page'}")


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


@pytest.mark.parametrize(("minutes", "is_told"), [(-1, True), (4, True), (0, False), (5, False)])
def test_minutes_that_are_too_few_are_told_before_anything_is_changed(
    tmp_path: Path, minutes: int, is_told: bool
) -> None:
    done = played(tmp_path, [role("stack", "preflight")], stack_idle_stop_minutes=minutes)
    assert "It switches itself off after minutes" in done.stdout
    wanted = f"{HOST}: stack_idle_stop_minutes is {minutes}: take 5 or more"
    assert (wanted in " ".join(done.stdout.split())) == is_told
