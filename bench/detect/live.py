"""From a fault to the request at a webhook, of a real agent on the stand-in for NVML; and what a line costs.

measure()  ->  Live(nan=[0.21, …], xid=[…], lost=[…], passed=[3.2, …], micros={1: 17.2, …}, gpu=12.1, kib=302.0)
"""

import math
import os
import random
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bench.alerts import tool
from tests.alerting.support import Recorder, alertmanager, recording
from tests.fakenvml import Scenario, build, environment
from trainvitals.detect.engine import Engine
from trainvitals.journal import runs
from trainvitals.journal.record import Record, timestamp_at
from trainvitals.journal.run_files import RunFiles

NANS, GPUS, LOSSES, PASSED = 100, 8, 5, 10
# The agent's own first seconds are no measure of it, and a GPU is missed only after them.
STARTS_SECONDS = 14.0
PATIENCE_SECONDS = 20.0
# Lines of as many ranks as a run may have, none of which waits for another's.
LINES, RANKS, WORLDS = 20_000, 8, (1, 8, 64)


@dataclass
class Live:
    """Seconds from the fault to the webhook, of a NaN that Alertmanager passes on too; microseconds of a line with all
    detectors, by the run's ranks, and of a GPU's sample, well or held down; KiB of a run of eight ranks."""

    nan: list[float] = field(default_factory=list)
    xid: list[float] = field(default_factory=list)
    lost: list[float] = field(default_factory=list)
    passed: list[float] = field(default_factory=list)
    micros: dict[int, float] = field(default_factory=dict)
    gpu: float = 0.0
    throttled: float = 0.0
    floor: float = 0.0
    kib: float = 0.0


H100: dict[str, Any] = {
    "utilization_percent": 95.0, "memory_used_mb": 60_000.0, "memory_total_mb": 80_000.0, "temperature_celsius": 65.0,
    "power_draw_watts": 600.0, "power_limit_watts": 700.0, "temperature_slowdown_celsius": 87.0,
    "memory_temperature_celsius": 80.0, "throttle_active": (), "pcie_generation": 5.0, "pcie_generation_max": 5.0,
    "pcie_width": 16.0, "pcie_width_max": 16.0, "pcie_replays_total": 3.0, "nvlink_links_active": 18.0,
    "nvlink_errors_total_replay": 0.0, "nvlink_errors_total_recovery": 0.0, "nvlink_errors_total_crc_flit": 0.0,
    "ecc_volatile_errors_total_corrected": 0.0, "ecc_volatile_errors_total_uncorrected": 0.0,
    "remapped_rows_pending": 0.0, "remapped_rows_failed": 0.0, "recovery_action": 0.0, "compute_processes": 1.0,
}  # fmt: skip


class Hook:
    """When a webhook first heard of each kind of each place."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder, self._read = recorder, 0
        self._came: dict[tuple[str, str], float] = {}
        self.url = f"{recorder.url}/hook"

    def after(self, kind: str, place: str, fault: Callable[[], object]) -> float:
        began = time.time()
        fault()
        while (kind, place) not in self._came:
            if time.time() - began > PATIENCE_SECONDS:
                raise TimeoutError(f"{kind} of {place or 'the machine'} did not come within {PATIENCE_SECONDS:g} s")
            time.sleep(0.001)
            self._listen()
        return self._came[kind, place] - began

    def _listen(self) -> None:
        for post in self._recorder.posts[self._read :]:
            self._read += 1
            for kind, place in _told(post.json()):
                self._came.setdefault((kind, place.get("run") or place.get("gpu", "")), post.at)


def _told(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    """By the agent itself, or by Alertmanager."""
    for one in body.get("findings", ()):
        yield one["kind"], one.get("place", {})
    for one in body.get("alerts", ()):
        yield one["labels"]["alertname"], one["labels"]


@contextmanager
def agent(library: Path, folder: Path, *, by_alertmanager: bool = False) -> Iterator[tuple[Scenario, Hook]]:
    scenario = Scenario(folder / "scenario", f"gpus {GPUS}\n")
    with recording() as recorder, ExitStack() as more:
        hook = Hook(recorder)
        way = f"webhook={hook.url}"
        if by_alertmanager:
            tool("alertmanager")
            (folder / "alertmanager").mkdir()
            running = more.enter_context(alertmanager(folder / "alertmanager", {"WEBHOOK_URL": hook.url}))
            way = f"alertmanager={running.url}"
        told = {"TRAINVITALS_DIR": str(folder / "journal"), "TRAINVITALS_NOTIFY": way}
        env = {**os.environ, **environment(library.parent, scenario.path), **told}
        process = subprocess.Popen([sys.executable, "-m", "trainvitals", "serve", "--port", "0"], env=env,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        try:
            time.sleep(STARTS_SECONDS)
            yield scenario, hook
        finally:
            process.terminate()
            process.wait(30)


def measure() -> Live:
    live = Live()
    with tempfile.TemporaryDirectory() as root:
        library = build(Path(root))
        # What follows from an Xid is told along with it: GPUs are lost to agents that heard of none.
        for number in range(2 + LOSSES):
            folder = Path(root) / str(number)
            folder.mkdir()
            with agent(library, folder, by_alertmanager=number == 1) as (scenario, hook):
                if number == 1:
                    live.passed = [_nan(folder / "journal", hook, each) for each in range(PASSED)]
                elif number == 0:
                    live.nan = [_nan(folder / "journal", hook, each) for each in range(NANS)]
                    live.xid = [_xid(scenario, hook, gpu) for gpu in range(GPUS)]
                else:
                    fault = partial(scenario.write, f"gpus {GPUS - 1}\n")
                    live.lost.append(hook.after("GpuMissing", "", fault))
    live.micros = {ranks: _micros(partial(_judge, _records(LINES // ranks), ranks)) for ranks in WORLDS}
    live.gpu, live.throttled = (_micros(partial(_sample, LINES, reasons)) for reasons in ((), ("hw_slowdown",)))
    live.floor = _micros(partial(_mean, _records(LINES)))
    live.kib = _kib()
    return live


def _nan(root: Path, hook: Hook, number: int) -> float:
    name = f"run{number}"
    files = RunFiles(runs.claim(root, name), name)
    for step in range(3):
        files.metrics.append({"step": step, "loss": 3.0})
        time.sleep(0.1 + random.random() * 0.2)
    try:
        return hook.after("TrainingNonFinite", name, lambda: files.metrics.append({"step": 3, "loss": math.nan}))
    finally:
        files.end("finished")


def _xid(scenario: Scenario, hook: Hook, gpu: int) -> float:
    time.sleep(1.0 + random.random())
    return hook.after("GpuXidFatal", str(gpu), lambda: scenario.xid(gpu, 79))


def _micros(action: Callable[[], object]) -> float:
    """Of processor time, a line, the best of three."""
    return min(_timed(action) for _ in range(3)) / LINES * 1e6


def _kib() -> float:
    records = _records(LINES)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    engine = _judge(records, RANKS)
    kib = (tracemalloc.get_traced_memory()[0] - before) / 1024
    tracemalloc.stop()
    assert not engine.failures
    return kib


def _timed(action: Callable[[], object]) -> float:
    began = time.process_time()
    action()
    return time.process_time() - began


def _sample(count: int, reasons: tuple[str, ...]) -> None:
    """A GPU at work, each second."""
    engine, values = Engine(), H100 | {"throttle_active": reasons}
    for second in range(count):
        values["temperature_celsius"] = 60.0 + second % 5
        values["memory_used_mb"] = 60_000.0 + second % 7
        engine.gpu(1.75e9 + second, "3", "GPU-3", values)
    assert not engine.failures


def _judge(records: list[Record], ranks: int) -> Engine:
    engine = Engine()
    for record in records:
        for rank in range(ranks):
            engine.training("gemma", rank, (record,))
    engine.tick(0.0)
    return engine


def _mean(records: list[Record]) -> float:
    mean = 0.0
    for record in records:
        mean += 0.01 * (record["loss"] - mean)
    return mean


def _records(count: int) -> list[Record]:
    return [_record(step) for step in range(count)]


def _record(step: int) -> Record:
    noise = random.Random(step).gauss
    return {"timestamp": timestamp_at(1.75e9 + 0.3 * step), "step": step, "loss": 2 + 6 * 0.9995**step + noise(0, 0.05),
            "learning_rate": 3e-4, "gradient_norm": 1 + abs(noise(0, 0.1)), "throughput_samples_per_sec": 100.0,
            "memory_allocated_mb": 6e4, "memory_reserved_mb": 6.3e4, "step_duration_seconds": 0.3 + noise(0, 0.003),
            "data_wait_seconds": 0.005, "forward_seconds": 0.1, "backward_seconds": 0.15,
            "optimizer_seconds": 0.04}  # fmt: skip
