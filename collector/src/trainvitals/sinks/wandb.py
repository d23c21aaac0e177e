"""Weights & Biases, online or, with WANDB_MODE=offline, into ./wandb/offline-run-…, which `wandb sync` uploads.

Every row is a history line whose `_step` is its number, 0, 1, 2, …; the run's own step is the field `step`. So the
last `_step` that W&B has tells how far it came, and a restart goes on behind it.
"""

import glob
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import wandb

from trainvitals.journal.gpu_keys import GIB_IN_MIB
from trainvitals.sinks import SinkError
from trainvitals.sinks.resources import ALLOCATOR
from trainvitals.sinks.rows import Row, of_rank
from trainvitals.sinks.run_info import RunInfo
from trainvitals.sinks.wandb_file import OfflineFile, is_open

MAX_NAMED_AXES = 1000
MAX_BINS = wandb.Histogram.MAX_LENGTH
ASK_SECONDS = {"offline": 2.0, "online": 20.0}
LAST_WORDS_SECONDS = 5.0
_STEPS = {"training": "step", "histograms": "step", "resources": "elapsed_seconds"}


class WeightsAndBiases:
    def __init__(self, place: str, run_name: str = "") -> None:
        self._entity, _, self._project = place.rpartition("/")
        self._run_name = run_name
        self.kept: dict[str, Any] = {}
        self._run: Any = None
        self._id = ""
        self._is_finished = True
        self._held = self._next = 0
        self._ask_at = 0.0
        self._axes: set[str] = set()
        self._gpus: Mapping[int, str] = {}
        self._files: dict[str, OfflineFile] = {}

    def open(self, info: RunInfo, identity: str, kept: dict[str, Any], rows: int) -> int:
        self._id, self._is_finished = identity, False
        self.kept = {"folder": kept.get("folder") or os.environ.get("WANDB_DIR") or os.getcwd()}
        Path(self.kept["folder"]).mkdir(parents=True, exist_ok=True)
        self._gpus = info.gpus
        self._wait_for_writers()
        self._held = max(rows, self._count())
        self._cut_torn_ends()
        self._start(info)
        if not self._offline:
            self._held = max(self._held, int(self._run.starting_step))
        self._next = self._held
        return self._held

    def write(self, rows: list[Row], first: int, doubtful: bool) -> None:
        for number, row in enumerate(rows, first):
            axis = _STEPS[row.kind]
            self._name_axes(row, axis)
            self._run.log(self._values(row) | {axis: row.step, "_timestamp": row.time}, step=number, commit=True)
        self._next = first + len(rows)

    def held(self) -> int:
        if self._run is None or self._held == self._next:
            return self._held
        if time.monotonic() >= self._ask_at:
            self._ask_at = time.monotonic() + ASK_SECONDS["offline" if self._offline else "online"]
            self._held = max(self._held, self._count() if self._offline else self._ask())
        return self._held

    def finish(self, info: RunInfo) -> None:
        if self._run is not None:
            run, self._run = self._run, None
            run.config.update(_config(info), allow_val_change=True)
            if info.is_over and info.error:
                run.summary["error"] = info.error
            run.finish(exit_code=0 if info.status in ("finished", "running") else 1)
            self._held, self._is_finished = self._next, True

    def abandon(self) -> None:
        """After an error W&B's helper process may be gone, and the library would not start another."""
        if not self._is_finished:
            self._run, self._is_finished = None, True
            with suppress(Exception):
                wandb.teardown(exit_code=1)

    def _start(self, info: RunInfo) -> None:
        settings = wandb.Settings(console="off", silent=True, x_disable_stats=True, x_disable_meta=True,
                                  x_save_requirements=False, disable_git=True, disable_code=True,
                                  disable_job_creation=True)  # fmt: skip
        try:
            self._run = wandb.init(
                entity=self._entity or None, project=self._project, id=self._id, name=self._run_name or info.name,
                tags=list(info.tags) or None, config=_config(info), dir=self.kept["folder"], reinit="create_new",
                resume="allow", settings=settings)  # fmt: skip
        except wandb.errors.UsageError as error:
            raise SinkError(f"wandb={self._project}: {error}: run `wandb login`, or set WANDB_MODE=offline") from error
        self._run.config.update(_config(info), allow_val_change=True)

    @property
    def _offline(self) -> bool:
        return bool(self._run is not None and self._run.settings.mode != "online")

    def _name_axes(self, row: Row, axis: str) -> None:
        for name in row.values:
            if name not in self._axes and len(self._axes) < MAX_NAMED_AXES and "*" not in name:
                self._axes.add(name)
                self._run.define_metric(name, step_metric=axis)

    def _values(self, row: Row) -> dict[str, Any]:
        if row.kind == "histograms":
            return {name: wandb.Histogram(np_histogram=(told["counts"], told["edges"]))
                    for name, told in row.values.items() if len(told["counts"]) <= MAX_BINS}  # fmt: skip
        # A name that begins with an underscore is W&B's own.
        values: dict[str, Any] = {name.lstrip("_") or "_": value for name, value in row.values.items()}
        for rank, gpu in self._gpus.items():
            values |= {f"{gpu}_{name}": values[of_rank(rank, field)] / GIB_IN_MIB
                       for field, name in ALLOCATOR.items() if of_rank(rank, field) in values}  # fmt: skip
        return values

    def _ask(self) -> int:
        """The server's last step; the rest is on its way."""
        with suppress(Exception):
            run = wandb.Api(timeout=10).run(f"{self._run.entity}/{self._project}/{self._id}")
            return int(run.lastHistoryStep) + 1
        return 0

    def _paths(self) -> list[str]:
        folder = Path(self.kept["folder"]) / "wandb"
        # Of two folders that were begun in one second W&B names the second one …-1.
        return glob.glob(str(folder / f"offline-run-*-{self._id}*" / f"run-{self._id}.wandb"))

    def _count(self) -> int:
        """One more than the last `_step` in the files of this run."""
        for path in self._paths():
            self._files.setdefault(path, OfflineFile(path)).read_on()
        return max((file.rows for file in self._files.values()), default=0)

    def _wait_for_writers(self) -> None:
        """The helper of a process that was killed lives on for a second or two, and may write then."""
        deadline = time.monotonic() + LAST_WORDS_SECONDS
        while any(map(is_open, self._paths())) and time.monotonic() < deadline:
            time.sleep(0.1)

    def _cut_torn_ends(self) -> None:
        for path, file in self._files.items():
            if not is_open(path):
                file.cut()


def _config(info: RunInfo) -> dict[str, Any]:
    return {name: value for name, value in info.config.items() if not name.startswith("_")}
