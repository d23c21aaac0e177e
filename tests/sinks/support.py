"""Runs as a trainer writes them, and what TensorBoard, W&B and MLflow hold of them, by their own libraries."""

import json
import math
import os
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.collector.support import command_line
from trainvitals.journal import runs
from trainvitals.journal.run_files import RunFiles
from trainvitals.sinks import wandb_file
from trainvitals.sinks.job import Job

# What was read back: how often each (name, step) is there.
Points = Counter[tuple[str, int]]


def needed(library: str) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed: make trainers")


class Trainer:
    """A run of this process: alive until `end`."""

    def __init__(self, root: Path, name: str = "gemma", *, rank: int = 0, world_size: int = 1, run_id: str = "",
                 config: dict[str, Any] | None = None, **facts: Any) -> None:  # fmt: skip
        claimed = runs.claim(root, name, rank=rank, world_size=world_size, run_id=run_id, facts=facts)
        self.files = RunFiles(claimed, name, config=config)
        self.folder, self.run, self.steps = claimed.folder, claimed.run, 0

    def step(self, count: int = 1, **values: Any) -> None:
        """A line with the loss, and one with the step's timing, as the SDK writes them."""
        for _ in range(count):
            self.steps += 1
            self.files.metrics.append({"step": self.steps, "loss": 2 / self.steps, **values})
            self.files.metrics.append({"step": self.steps, "step_duration_seconds": 0.1})

    def end(self, status: str = "finished", **details: Any) -> None:
        self.files.end(status, **details)

    def expected(self, prefix: str = "") -> Points:
        names = (f"{prefix}loss", f"{prefix}step_duration_seconds")
        return Counter((name, step) for name in names for step in range(1, self.steps + 1))


class Busy(threading.Thread):
    """Goes on stepping until it is told to end."""

    def __init__(self, trainer: Trainer) -> None:
        super().__init__(daemon=True)
        self._trainer, self._ended = trainer, threading.Event()
        self.start()

    def run(self) -> None:
        while not self._ended.wait(0.01):
            self._trainer.step(3)

    def end(self) -> None:
        self._ended.set()
        self.join()
        self._trainer.end()


def ended_run(root: Path, steps: int = 10, **settings: Any) -> Trainer:
    trainer = Trainer(root, **settings)
    trainer.step(steps)
    trainer.end()
    return trainer


def sync(root: Path, run: str, *targets: str, environ: dict[str, str] | None = None,
         timeout: float = 120) -> "subprocess.CompletedProcess[str]":  # fmt: skip
    to = [word for target in targets for word in ("--to", target)]
    return subprocess.run(command_line("sync", run, "--dir", str(root), *to), capture_output=True, text=True,
                          timeout=timeout, check=False, env=environment(root, environ))  # fmt: skip


def environment(root: Path, more: dict[str, str] | None = None) -> dict[str, str]:
    """W&B writes beside the journal, and calls nobody."""
    return {**os.environ, "WANDB_MODE": "offline", "WANDB_DIR": str(root), **(more or {})}


def following(root: Path, target: str, **pipes: Any) -> "subprocess.Popen[str]":
    """The process that an agent starts for a target."""
    return Job(target, str(root), "follow").start(stdout=subprocess.DEVNULL, **pipes)


def tensorboard_events(folder: Path) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(str(folder), size_guidance={"scalars": 0, "histograms": 0, "tensors": 0})
    accumulator.Reload()
    return accumulator


def tensorboard_points(place: Path, run: str) -> Points:
    events = tensorboard_events(place / run)
    names = [name for name in events.Tags()["scalars"] if name.startswith("training/")]
    return Counter((name.removeprefix("training/"), point.step) for name in names for point in events.Scalars(name))


def wandb_records(root: Path) -> list[Any]:
    from wandb.proto.wandb_internal_pb2 import Record

    records = []
    for path in sorted(root.glob("wandb/offline-run-*/*.wandb")):
        with path.open("rb") as file:
            file.seek(len(wandb_file.HEADER))
            records += [Record.FromString(content) for content in wandb_file.records(file)]
    return records


def wandb_rows(root: Path) -> list[dict[str, Any]]:
    return [{item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.history.item}
            for record in wandb_records(root) if record.WhichOneof("record_type") == "history"]  # fmt: skip


def wandb_points(root: Path) -> Points:
    rows = wandb_rows(root)
    return Counter((name, row["step"]) for row in rows if "step" in row for name in row
                   if not name.startswith("_") and name != "step")  # fmt: skip


def mlflow_run(uri: str) -> tuple[Any, Any]:
    """The client, and the one run that is there."""
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=uri)
    found = client.search_runs([one.experiment_id for one in client.search_experiments()])
    assert len(found) == 1
    return client, found[0]


def mlflow_points(uri: str) -> Points:
    client, run = mlflow_run(uri)
    return Counter((name, point.step) for name in run.data.metrics if not name.startswith("system/")
                   for point in client.get_metric_history(run.info.run_id, name))  # fmt: skip


def same(value: float, other: float) -> bool:
    return value == other or (math.isnan(value) and math.isnan(other))


def wait_until(ask: Any, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not ask():
        assert time.monotonic() < deadline, f"not within {seconds:g} s"
        time.sleep(0.1)
