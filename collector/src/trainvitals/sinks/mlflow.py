"""MLflow: a run in the experiment MLFLOW_EXPERIMENT_NAME, else of the run's own name; series as metrics.

`loss` at the run's steps, `system/gpu_0_temperature_c` at the seconds since its start, the config as params. A run is
known again by its tag `trainvitals.id`. Points that may be there after a kill are looked up before they are sent.
"""

import glob
import logging
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from mlflow.entities import Experiment, Metric, Param, Run
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient
from mlflow.utils.mlflow_tags import MLFLOW_RUN_NAME

from trainvitals.journal import layout
from trainvitals.sinks.config_values import flat
from trainvitals.sinks.rows import Row
from trainvitals.sinks.run_info import RunInfo

MAX_METRICS, MAX_PARAMS, MAX_NAME, MAX_VALUE = 1000, 100, 250, 6000
TAG = "trainvitals.id"
_STATUS = {"finished": "FINISHED", "killed": "KILLED", "preempted": "KILLED", "crashed": "FAILED"}
_UNFIT = re.compile(r"[^/\w.\- :]")
_DRAFT = re.compile(r"(\d+)\.new(-journal|-wal|-shm)?", re.ASCII)

log = logging.getLogger("trainvitals.sinks")


class MLflow:
    def __init__(self, place: str) -> None:
        self._place = place
        self.kept: dict[str, Any] = {}
        self._client: Any = None
        self._run = ""
        self._rows = 0

    def open(self, info: RunInfo, identity: str, kept: dict[str, Any], rows: int) -> int:
        _make_database(self._place)
        self._client = MlflowClient(tracking_uri=self._place)
        run = self._find(identity)
        self._rows = rows if run else 0
        run = run or self._create(info, identity)
        self._run = run.info.run_id
        self.kept = {"run": self._run}
        if run.info.status != "RUNNING":
            self._client.update_run(self._run, "RUNNING")
        self._tell_config(info, run.data.params)
        return self._rows

    def write(self, rows: list[Row], first: int, doubtful: bool) -> None:
        metrics = [metric for row in rows for metric in _metrics(row)]
        if doubtful:
            metrics = self._missing(metrics)
        for part in _parts(metrics, MAX_METRICS):
            self._send(part)
        self._rows = first + len(rows)

    def held(self) -> int:
        return self._rows

    def finish(self, info: RunInfo) -> None:
        self._tell_config(info, self._client.get_run(self._run).data.params)
        if info.error:
            self._client.set_tag(self._run, "error", info.error[:MAX_VALUE])
        if info.is_over:
            self._client.set_terminated(self._run, _STATUS.get(info.status, "FAILED"), _milliseconds(info.ended))

    def abandon(self) -> None:
        self._client = None

    def _find(self, identity: str) -> Run | None:
        """Wherever it is: its experiment may have got another name."""
        experiments = [experiment.experiment_id for experiment in self._client.search_experiments()]
        found = self._client.search_runs(experiments, f"tags.`{TAG}` = '{identity}'", max_results=1)
        return found[0] if found else None

    def _create(self, info: RunInfo, identity: str) -> Run:
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or info.name
        tags = {TAG: identity, MLFLOW_RUN_NAME: info.run, **{_fit(tag): "" for tag in info.tags}}
        return self._client.create_run(self._experiment(name), int(1000 * info.began), tags)

    def _experiment(self, name: str) -> str:
        found: Experiment | None = self._client.get_experiment_by_name(name)
        if found and found.lifecycle_stage == "deleted":
            self._client.restore_experiment(found.experiment_id)
        return str(found.experiment_id if found else self._client.create_experiment(name))

    def _tell_config(self, info: RunInfo, there: dict[str, str]) -> None:
        """A param is never changed: what a resumed run changed keeps its first value."""
        wanted = {_fit(name): str(value)[:MAX_VALUE] for name, value in flat(info.config).items()}
        params = [Param(name, value) for name, value in wanted.items() if name not in there]
        for part in _parts(params, MAX_PARAMS):
            self._client.log_batch(self._run, params=part)

    def _missing(self, metrics: list[Metric]) -> list[Metric]:
        known = self._client.get_run(self._run).data.metrics
        there = {name: {(point.step, point.timestamp) for point in self._client.get_metric_history(self._run, name)}
                 for name in {metric.key for metric in metrics} & set(known)}  # fmt: skip
        return [metric for metric in metrics if (metric.step, metric.timestamp) not in there.get(metric.key, ())]

    def _send(self, metrics: list[Metric]) -> None:
        """What the server refuses for good must not hold back the rest."""
        try:
            self._client.log_batch(self._run, metrics=metrics)
        except MlflowException as error:
            if error.error_code != "INVALID_PARAMETER_VALUE":
                raise
            if len(metrics) == 1:
                log.warning("mlflow refuses %s: %s", metrics[0].key, error.message)
                return
            for part in _parts(metrics, len(metrics) // 2):
                self._send(part)


def _make_database(place: str) -> None:
    """MLflow makes its tables one by one: one that a kill left half made could never be used again."""
    path = place.removeprefix("sqlite:///")
    if path == place or "?" in path:
        return
    drafts = f"{path}.{layout.host_name()}."
    _remove_drafts(drafts)
    if not os.path.exists(path):
        draft = f"{drafts}{os.getpid()}.new"
        MlflowClient(tracking_uri=f"sqlite:///{draft}")
        os.rename(draft, path)


def _remove_drafts(beginning: str) -> None:
    """Of this host's processes that ended before theirs was a database; this process has begun none yet."""
    for draft in glob.glob(glob.escape(beginning) + "*.new*"):
        of = _DRAFT.fullmatch(draft.removeprefix(beginning))
        if of and (int(of[1]) == os.getpid() or not os.path.exists(f"/proc/{of[1]}")):
            with suppress(OSError):
                os.remove(draft)


def _metrics(row: Row) -> Iterable[Metric]:
    """Histograms are nothing that MLflow has."""
    if row.kind != "histograms":
        prefix, when = "system/" if row.kind == "resources" else "", _milliseconds(row.time)
        for name, value in row.values.items():
            yield Metric(_fit(prefix + name), value, when, row.step)


def _fit(name: str) -> str:
    """The nearest name that MLflow takes: it must also do as a path."""
    parts = [part for part in _UNFIT.sub("_", name).split("/") if part.strip(".")]
    return "/".join(parts)[:MAX_NAME] or "_"


def _milliseconds(when: float | None) -> int | None:
    return None if when is None else round(1000 * when)


def _parts(things: list[Any], size: int) -> Iterable[list[Any]]:
    return (things[start : start + size] for start in range(0, len(things), size))
