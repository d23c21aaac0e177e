"""A journal for the page: a run of two ranks with a spike and a gap of NaN, others beside it, one that lives.

with recorded(folder) as journal:
    journal.go_on(3)        # the run that lives takes three steps more
"""

import math
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trainvitals.detect.finding import Place
from trainvitals.detect.quieting import Acknowledgement, Kept, identity
from trainvitals.journal import layout, runs
from trainvitals.journal.record import encode, timestamp_at
from trainvitals.journal.run_files import RunFiles

STEPS, SPIKE, SPIKE_LOSS = 3000, 1500, 9.5
BAD = range(2000, 2041)
SLOW_RANK = 1
HOSTILE = "<script>document.title='owned'</script><img src=x onerror=alert(1)>"
LONG = "llama-3.1-70b-sft-on-a-very-long-name-of-a-dataset-that-nobody-shortened-v17-final-final"
LIVE = "lives"
# As an agent calls itself that simulates its GPUs.
HOST = f"{layout.host_name()}-simulated"


class Journal:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.began = time.time() - 3600
        self._live = self.start(LIVE, planned_steps=1000)
        self.step = 0

    def write(self) -> None:
        self._spiky()
        for name, loss in (("calm", 2.4), (HOSTILE, 3.0), (LONG, 2.0)):
            files = self.start(name)
            for step in range(1, 201):
                tokens = {"tokens_per_second": 40_000.0} if name == "calm" else {}
                more = {"step_duration_seconds": 0.2, **tokens}
                files.metrics.append(self._line(step, loss + 3 * math.exp(-step / 50), more))
            files.end("crashed" if name == LONG else "finished")
        self.go_on(20)
        self._past()
        self._readings()

    def _past(self) -> None:
        """What an agent of before found, and saw end."""
        slower = {"kind": "TrainingSlower", "severity": "info", "run": "spiky", "what": "slower"}
        hot = {"kind": "GpuTemperatureHigh", "severity": "ticket", "gpu": "3", "what": "GPU 3 is at 84 °C",
               "todo": "Look at the fans", "value": 84.0, "threshold": 80.0, "evidence": [slower]}  # fmt: skip
        bad = {
            "kind": "TrainingNonFinite",
            "severity": "page",
            "run": "spiky",
            "what": "NaN last night",
            "step": BAD[0],
        }
        for finding, path in ((hot, layout.gpu_folder(self.root, HOST) / "events.jsonl"),
                              (bad, layout.run_folder(self.root, "spiky") / "agent" / f"{HOST}.jsonl")):  # fmt: skip
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                for state, when in (("open", self.began), ("close", self.began + 600)):
                    file.write(encode({"timestamp": timestamp_at(when), "event": "finding", "state": state, "todo": "",
                                       "opened": timestamp_at(self.began), "runbook": "", **finding}))  # fmt: skip
        opened = timestamp_at(self.began)
        name = identity(str(hot["kind"]), Place(gpu="3"), opened)
        known = Acknowledgement(name, opened, opened, "ada", "ordered")
        path = layout.gpu_folder(self.root, HOST) / "quiet.json"
        path.write_bytes(encode(Kept({known.id: known}, {}).record()))

    def _readings(self) -> None:
        """The hour before, but for some minutes in which no agent ran."""
        stamp = time.strftime("%Y%m%d_%H%M%S", time.gmtime(self.began))
        folder = layout.gpu_folder(self.root, HOST)
        with (folder / f"gpu_metrics_{stamp}.jsonl").open("wb") as gpus, (
              folder / f"host_metrics_{stamp}.jsonl").open("wb") as host:  # fmt: skip
            for after in (*range(0, 2000, 10), *range(2300, 3600, 10)):
                when = {"timestamp": timestamp_at(self.began + after)}
                host.write(encode({**when, "cpu_usage_percent": 40 + 10 * math.sin(after / 300),
                                   "cpu_iowait_ratio": 0.01, "memory_used_bytes": 8e9, "disk_busy_ratio": 0.2,
                                   "disk_read_bytes_per_second": 2e8, "disk_written_bytes_per_second": 3e6,
                                   "network_receive_bytes_per_second": 4e5,
                                   "network_transmit_bytes_per_second": 5e4}))  # fmt: skip
                for gpu in range(8):
                    gpus.write(encode({**when, "gpu_index": gpu, **_reading(gpu, after)}))

    def go_on(self, steps: int) -> None:
        for _ in range(steps):
            self.step += 1
            self._live.metrics.append({"step": self.step, "loss": 5 / self.step, "step_duration_seconds": 0.1})

    def end(self) -> None:
        self._live.end("finished")

    def start(self, name: str, rank: int = 0, ranks: int = 1, run: str = "", **more: Any) -> RunFiles:
        facts = {"gpus": [{"gpu": str(rank), "uuid": f"GPU-{rank}"}]}
        claimed = runs.claim(self.root, name, rank=rank, world_size=ranks, run_id=run, facts=facts, environ={})
        files = RunFiles(claimed, name, framework="recorded", **more)
        if name != LIVE:
            files.describe(start=timestamp_at(self.began))
        return files

    def _line(self, step: int, loss: float, more: dict[str, float]) -> dict[str, Any]:
        return {"timestamp": timestamp_at(self.began + step), "step": step, "loss": loss, **more}

    def _spiky(self) -> None:
        chance = random.Random(7)
        ranks = [self.start("spiky", rank, 2, "spiky", planned_steps=STEPS) for rank in range(2)]
        for step in range(1, STEPS + 1):
            loss = SPIKE_LOSS if step == SPIKE else math.nan if step in BAD else 1.5 + 4 * math.exp(-step / 500)
            for rank, files in enumerate(ranks):
                files.metrics.append(self._line(step, loss, _timing(rank, chance) | _signs(step, loss)))
            if step % 500 == 0:
                ranks[0].events.append({"timestamp": timestamp_at(self.began + step), "event": "checkpoint",
                                        "step": step, "path": f"/checkpoints/{step}"})  # fmt: skip
        for files in ranks:
            files.end("finished")


def _reading(gpu: int, after: float) -> dict[str, float]:
    heat = 84.0 if gpu == 3 and after < 600 else 52 + gpu + 3 * math.sin(after / 200)
    return {"utilization_percent": 95 - gpu, "memory_used_mb": 63_000.0, "memory_total_mb": 81_559.0,
            "memory_percent": 77.2, "temperature_celsius": heat, "power_draw_watts": 600 + 5 * gpu}  # fmt: skip


def _timing(rank: int, chance: random.Random) -> dict[str, float]:
    slower = 1.4 if rank == SLOW_RANK else 1.0
    return {"step_duration_seconds": chance.uniform(0.28, 0.3), "data_wait_seconds": 0.01,
            "forward_seconds": 0.1 * slower, "backward_seconds": 0.12, "optimizer_seconds": 0.02}  # fmt: skip


def _signs(step: int, loss: float) -> dict[str, float]:
    told = {"learning_rate": 3e-4 * min(1, step / 100), "gradient_norm": 0.8 if math.isfinite(loss) else math.nan,
            "tokens_per_second": 40_000.0, "memory_allocated_mb": 60_000.0, "memory_reserved_mb": 62_000.0}  # fmt: skip
    return told | ({"eval/accuracy": step / STEPS} if step % 50 == 0 else {})


@contextmanager
def recorded(root: Path) -> Iterator[Journal]:
    journal = Journal(root)
    journal.write()
    try:
        yield journal
    finally:
        journal.end()
