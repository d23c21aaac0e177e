"""A journal of an agent that has run for long: an hour of readings of each second, a hundred runs, one that lives with
eight ranks whose values are never round, and what was found of all that.

with busy(folder): ...        # the run that lives does so within
"""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.web_page.recorded import HOST
from trainvitals.detect.finding import Finding, Place
from trainvitals.journal import layout, runs
from trainvitals.journal.record import encode, timestamp_at
from trainvitals.journal.run_files import RunFiles

SECONDS, GPUS, RANKS, STEPS, OTHERS, OPEN, PAST = 3600, 8, 8, 2000, 100, 24, 200
LIVE = "busy"
_SPREAD = {"utilization_percent": (97, 2), "memory_percent": (77, 0.4), "temperature_celsius": (66, 3),
           "power_draw_watts": (640, 25)}  # fmt: skip
_HOST = {"cpu_usage_percent": (40, 9), "cpu_iowait_ratio": (0.02, 0.01), "memory_used_bytes": (8e11, 3e9),
         "disk_busy_ratio": (0.2, 0.08), "disk_read_bytes_per_second": (2e8, 6e7),
         "disk_written_bytes_per_second": (3e6, 9e5), "network_receive_bytes_per_second": (4e5, 9e4),
         "network_transmit_bytes_per_second": (5e4, 9e3)}  # fmt: skip
_FIELDS = {"loss": (2, 0.2), "gradient_norm": (0.8, 0.1), "learning_rate": (3e-4, 1e-5),
           "tokens_per_second": (4e4, 900), "step_duration_seconds": (0.3, 0.02), "data_wait_seconds": (0.02, 0.005),
           "forward_seconds": (0.1, 0.01), "backward_seconds": (0.12, 0.01), "optimizer_seconds": (0.03, 0.005),
           "memory_allocated_mb": (6e4, 90), "memory_reserved_mb": (6.2e4, 90),
           "throughput_samples_per_sec": (20, 1)}  # fmt: skip
_WORDS = ("GPU is at 86.4 °C, and its limit is 87 °C: it has been so for 12 minutes, and its clock fell by a third",
          "Look at the fans and at the air that comes to them; what else this machine does; whether its room is warmer "
          "than it was. Slower is safe: a limit of power keeps it from being stopped by its own heat.")  # fmt: skip


@contextmanager
def busy(root: Path) -> Iterator[None]:
    chance, now = random.Random(7), time.time()
    folder = layout.gpu_folder(root, HOST)
    folder.mkdir(parents=True)
    _readings(folder, chance, now)
    _findings(folder, chance, now)
    for number in range(OTHERS):
        _run(root, f"a-run-of-before-{number}", 1, 20, chance, now - 3600).end("finished")
    files = _run(root, LIVE, RANKS, STEPS, chance, now - 600)
    try:
        yield
    finally:
        files.end("finished")


def _noise(chance: random.Random, spread: dict[str, tuple[float, float]]) -> dict[str, float]:
    return {name: abs(chance.gauss(*about)) for name, about in spread.items()}


def _readings(folder: Path, chance: random.Random, now: float) -> None:
    stamp = time.strftime("%Y%m%d_%H%M%S", time.gmtime(now - SECONDS))
    with (folder / f"gpu_metrics_{stamp}.jsonl").open("wb") as gpus, (
          folder / f"host_metrics_{stamp}.jsonl").open("wb") as host:  # fmt: skip
        for second in range(SECONDS):
            when = {"timestamp": timestamp_at(now - SECONDS + second)}
            host.write(encode({**when, **_noise(chance, _HOST)}))
            for gpu in range(GPUS):
                gpus.write(encode({**when, "gpu_index": gpu, **_noise(chance, _SPREAD)}))


def _findings(folder: Path, chance: random.Random, now: float) -> None:
    what, todo = _WORDS
    told = {"kind": "GpuThermalMargin", "severity": "ticket", "what": what, "todo": todo, "value": 86.4123,
            "threshold": 80.0, "runbook": "https://runbooks.example/GpuThermalMargin"}  # fmt: skip
    kept = Finding("GpuThermalMargin", "ticket", what, 86.4123, 80.0, advice=todo)._asdict()
    some = [{**kept, "kind": f"OfTheUsersOwn{number}", "opened": now - chance.uniform(0, 9e4),
             "place": list(Place(gpu=str(number % GPUS)))} for number in range(OPEN)]  # fmt: skip
    (folder / "findings.json").write_bytes(encode({"open": some}))
    with (folder / "events.jsonl").open("wb") as file:
        for number in range(PAST):
            opened = now - 600 * (PAST - number) - chance.uniform(0, 300)
            for state, when in (("open", opened), ("close", opened + chance.uniform(60, 600))):
                file.write(encode({**told, "timestamp": timestamp_at(when), "event": "finding", "state": state,
                                   "opened": timestamp_at(opened), "gpu": str(number % GPUS)}))  # fmt: skip


def _run(root: Path, name: str, ranks: int, steps: int, chance: random.Random, began: float) -> Any:
    """The files of its first rank; those of the others have ended."""
    found = []
    for rank in range(ranks):
        claimed = runs.claim(root, name, rank=rank, world_size=ranks, run_id=name, environ={})
        found.append(RunFiles(claimed, name, planned_steps=2 * steps))
        for step in range(1, steps + 1):
            found[-1].metrics.append({"timestamp": timestamp_at(began + 0.3 * step), "step": step,
                                      **_noise(chance, _FIELDS)})  # fmt: skip
    for files in found[1:]:
        files.end("finished")
    found[0].describe(start=timestamp_at(began))
    return found[0]
