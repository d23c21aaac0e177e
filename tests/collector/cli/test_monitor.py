"""`trainvitals monitor` as a process: lines, summaries, the log, and its end."""

import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue

import pytest

from tests.collector.support import command_line, is_chance, run, serving, wait_for
from tests.fakenvml import Scenario, environment

LINE = re.compile(r"GPU\d+: \d+\.\d%/\d+\.\d%( \| GPU\d+: \d+\.\d%/\d+\.\d%)*\Z")
GIVEN = ("timestamp", "gpu_index", "utilization_percent", "memory_used_mb", "memory_total_mb", "memory_percent",
         "temperature_celsius", "power_draw_watts")  # fmt: skip


class Watching:
    """A monitor with what it prints, read as it comes."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.out: SimpleQueue[str] = SimpleQueue()
        self.err: SimpleQueue[str] = SimpleQueue()
        for stream, queue in ((process.stdout, self.out), (process.stderr, self.err)):
            told = (line.rstrip("\n") for line in stream or () if not is_chance(line))
            threading.Thread(target=lambda t=told, q=queue: [q.put(line) for line in t]).start()

    def lines(self, count: int) -> list[str]:
        return [self.out.get(timeout=10) for _ in range(count)]

    def end(self, number: int = signal.SIGINT) -> list[str]:
        """The lines that were still to come."""
        began = time.monotonic()
        self.process.send_signal(number)
        assert self.process.wait(timeout=10) == 0
        assert time.monotonic() - began < 2
        rest = []
        try:
            while True:
                rest.append(self.out.get(timeout=0.2))
        except Empty:
            return rest


@contextmanager
def watching(folder: Path, *flags: str, simulate: int = 2, env: dict[str, str] | None = None) -> Iterator[Watching]:
    gpus = ("--simulate", str(simulate)) if simulate else ()
    words = command_line("monitor", "--dir", str(folder), "--interval", "0.1", *gpus, *flags)
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, **(env or {})})  # fmt: skip
    try:
        yield Watching(process)
    finally:
        process.kill()
        process.wait()


def test_a_line_a_tick_and_a_summary_at_the_end(tmp_path: Path) -> None:
    with watching(tmp_path) as monitor:
        began = time.monotonic()
        lines = monitor.lines(8)
        assert time.monotonic() - began > 0.5
        assert all(LINE.match(line) and "GPU1" in line for line in lines)
        summary = [line for line in monitor.end() if line.startswith("summary: ")]
        assert [line.split()[1] for line in summary] == ["GPU0", "GPU1"]
        assert all("utilisation" in line and "(peak " in line for line in summary)
        assert monitor.err.empty()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_before_the_first_line_too(tmp_path: Path, number: int) -> None:
    with watching(tmp_path, "--interval", "3600") as monitor:
        wait_for(lambda: list(tmp_path.rglob("*.jsonl")))
        monitor.end(number)


def test_nohup_keeps_it_when_the_terminal_goes(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with watching(tmp_path) as monitor:
            monitor.lines(1)
            monitor.process.send_signal(signal.SIGHUP)
            monitor.lines(5)
            monitor.end()
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("flags", "shown"),
    [
        (("--gpu", "2"), {"GPU2"}),
        (("--gpus", "0,3,3"), {"GPU0", "GPU3"}),
        (("--gpu", "0", "--gpus", "0,1"), {"GPU0", "GPU1"}),
    ],
)
def test_the_gpus_that_were_asked_for(tmp_path: Path, flags: tuple[str, ...], shown: set[str]) -> None:
    with watching(tmp_path, *flags, simulate=4) as monitor:
        assert {part.split(":")[0] for line in monitor.lines(3) for part in line.split(" | ")} == shown
        monitor.end()
    files = list(tmp_path.rglob("gpu_metrics_*.jsonl"))
    kept = {json.loads(line)["gpu_index"] for file in files for line in file.open()}
    assert {f"GPU{index}" for index in kept} == shown


@pytest.mark.parametrize(("flag", "value"), [("--gpu", "9"), ("--gpus", "0,9")])
def test_a_gpu_that_is_not_there_is_a_mistake(tmp_path: Path, flag: str, value: str) -> None:
    answer = run("monitor", "--simulate", "2", flag, value, "--dir", str(tmp_path))
    assert answer.returncode == 2
    assert answer.stderr == f"trainvitals: {flag}: {value!r} cannot be used: the GPUs here are 0,1\n"


def test_a_gpu_that_is_lost_takes_nothing_from_the_others(nvml_folder: Path, tmp_path: Path) -> None:
    scenario = Scenario(tmp_path / "scenario", "gpus 3")
    env = environment(nvml_folder, scenario.path)
    with watching(tmp_path / "journal", "--gpus", "1,2", simulate=0, env=env) as monitor:
        assert "GPU1: " in monitor.lines(1)[0]
        scenario.set(2, "lost")
        wait_for(lambda: monitor.lines(1)[0].startswith("GPU1: ") and "GPU2" not in monitor.lines(1)[0])
        assert all(line.startswith("GPU1: ") for line in monitor.lines(12))
        assert "GPU 2" in monitor.err.get(timeout=5)
        monitor.end()


def test_no_gpu_is_said_once_with_what_to_do(tmp_path: Path) -> None:
    if Path("/proc/driver/nvidia").exists():
        pytest.skip("this machine has a GPU")
    with watching(tmp_path, simulate=0) as monitor:
        assert set(monitor.lines(4)) == {"no GPU answers"}
        assert "--simulate 8" in monitor.err.get(timeout=5)
        assert monitor.err.empty()
        monitor.end()


def test_without_a_line_a_tick_there_are_summaries(tmp_path: Path) -> None:
    with watching(tmp_path, "--no-console", "--summary-interval", "0.3") as monitor:
        assert all(line.startswith("summary: GPU") for line in monitor.lines(6))
        monitor.end()
    with watching(tmp_path / "other", "--no-console", "--summary-interval", "0") as monitor:
        wait_for(lambda: list((tmp_path / "other").rglob("gpu_metrics_*.jsonl")))
        time.sleep(0.5)
        assert monitor.out.empty()
        assert all(line.startswith("summary: ") for line in monitor.end())


def test_the_log_has_the_given_fields(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with watching(tmp_path / "journal", "--log-dir", str(log)) as monitor:
        monitor.lines(5)
        monitor.end()
    (file,) = log.glob("gpu_metrics_*.jsonl")
    assert re.fullmatch(r"gpu_metrics_\d{8}_\d{6}\.jsonl", file.name)
    lines = [json.loads(line) for line in file.open()]
    assert len(lines) >= 8
    for line in lines:
        assert tuple(line)[: len(GIVEN)] == GIVEN
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["timestamp"])
        assert line["memory_percent"] == pytest.approx(100 * line["memory_used_mb"] / line["memory_total_mb"], abs=0.01)
    assert not (tmp_path / "journal" / "gpu").exists()


def test_json_is_an_object_a_line_with_one_id(tmp_path: Path) -> None:
    with watching(tmp_path, "--log-format", "json", "--summary-interval", "0.3") as monitor:
        told = [json.loads(line) for line in [*monitor.lines(6), *monitor.end()]]
    assert all(line.keys() == {"timestamp", "level", "logger", "message", "correlation_id"} for line in told)
    assert len({line["correlation_id"] for line in told}) == 1
    assert LINE.match(told[0]["message"])
    assert told[-1]["message"].startswith("summary: GPU1 ")


def test_metrics_on_a_port_of_their_own(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        busy = run("monitor", "--simulate", "1", "--prometheus-port", str(port), "--dir", str(tmp_path))
    assert busy.returncode == 2
    assert busy.stderr.startswith(f"trainvitals: --prometheus-port: '{port}' cannot be used: the port is taken")
    with watching(tmp_path, "--prometheus-port", str(port)) as monitor:
        monitor.lines(1)
        assert str(port) in monitor.err.get(timeout=5)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            assert b"gpu_utilization_percent{" in answer.read()
        assert any(line.startswith("summary: ") for line in monitor.end())


def test_beside_a_running_agent_it_watches_and_keeps_no_log(tmp_path: Path) -> None:
    with serving(tmp_path, "--simulate", "2"), watching(tmp_path) as monitor:
        assert all(LINE.match(line) for line in monitor.lines(3))
        warning = monitor.err.get(timeout=5)
        assert "no log is kept" in warning
        assert "--log-dir" in warning
        monitor.end()
    assert len(list(tmp_path.rglob("gpu_metrics_*.jsonl"))) == 1


@pytest.mark.parametrize("flags", [(), ("--prometheus-port", "0")])
def test_it_ends_when_nobody_reads_on(tmp_path: Path, flags: tuple[str, ...]) -> None:
    if flags:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            flags = (flags[0], str(listening.getsockname()[1]))
    words = command_line("monitor", "--simulate", "1", "--interval", "0.1", "--dir", str(tmp_path), *flags)
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stderr
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=10) == 0
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()
