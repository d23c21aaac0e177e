"""Published traces of slow workers: who is named, when, and nobody else.

measure(folder)  ->  [Trace("job_1", expected=6, named={6: 11}, …), …]
"""

import csv
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyarrow import parquet

from bench.detect.folders import Line, stamp, write_run
from bench.detect.replaying import Found, replayed

# A row is a sample each ten seconds; times are normalised, so that a step is as long as its sample at most.
SAMPLE_SECONDS = 10.0
MOST_DELAY = 20
KIND = "TrainingStraggler"


@dataclass
class Trace:
    """`named`: each worker that was, to the step it was first named at; `since`: the first slow step of the one that is
    slow. `expected` None: for information only."""

    name: str
    expected: int | None
    since: int = 0
    named: dict[int, int] = field(default_factory=dict)
    # Those that say of no worker that it is slow.
    others: list[str] = field(default_factory=list)

    @property
    def delay(self) -> int | None:
        return None if self.expected not in self.named else self.named[self.expected] - self.since

    @property
    def is_right(self) -> bool:
        return set(self.named) == {self.expected} and self.delay is not None and 0 <= self.delay <= MOST_DELAY


def measure(folder: Path) -> list[Trace]:
    traces = [_alibaba(folder / "job_1_norm.csv", 6, since=1811.0), _alibaba(folder / "job_3_norm.csv", None)]
    return [*traces, _bytedance(folder / "bytedance_AR.parquet")]


def _alibaba(path: Path, expected: int | None, since: float = 0.0) -> Trace:
    """A line a sample and worker: how long its mini-batches took, whole, because these workers run freely."""
    ranks: dict[int, list[Line]] = {}
    times: list[float] = []
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            when, step = float(row["time"]), int(float(row["time"]) // SAMPLE_SECONDS) + 1
            times.append(when)
            line = {"timestamp": stamp(when), "step": step,
                    "step_duration_seconds": SAMPLE_SECONDS * float(row["batch_time_norm"]) / 1000}  # fmt: skip
            ranks.setdefault(int(row["worker"]), []).append(line)
    trace = Trace(path.name.removesuffix("_norm.csv"), expected, int(since // SAMPLE_SECONDS) + 1)
    return _judged(trace, ranks, max(times) + 1)


def _bytedance(path: Path) -> Trace:
    """A line a recorded step and worker: its computing before the collectives by itself, the step whole."""
    steps: dict[int, dict[int, list[dict[str, Any]]]] = {}
    for row in parquet.read_table(path).to_pylist():
        steps.setdefault(row["step"], {}).setdefault(row["rank"], []).append(row)
    ranks: dict[int, list[Line]] = {}
    now = 0.0
    for number, (_, step) in enumerate(sorted(steps.items()), start=1):
        took = max(row["start_ts"] + row["duration"] for rows in step.values() for row in rows)
        now += took
        for rank, rows in step.items():
            ranks.setdefault(rank, []).append(_bytedance_line(rows, number, now, took))
    return _judged(Trace("bytedance", 0, since=1), ranks, now + 1)


def _bytedance_line(rows: list[dict[str, Any]], number: int, now: float, took: float) -> Line:
    spent: Counter[str] = Counter()
    for row in rows:
        spent[row["optype"]] += row["duration"]
    return {"timestamp": stamp(now), "step": number, "step_duration_seconds": took,
            "forward_seconds": spent["forward-compute"], "backward_seconds": spent["backward-compute"],
            "optimizer_seconds": spent["optimizer"]}  # fmt: skip


def _judged(trace: Trace, ranks: dict[int, list[Line]], ended: float) -> Trace:
    with tempfile.TemporaryDirectory(prefix="trainvitals-stragglers-") as root:
        write_run(Path(root), trace.name, ranks, ended)
        found = replayed(Path(root))
    steps = {line["timestamp"]: line["step"] for lines in ranks.values() for line in lines}
    for one in sorted(found, key=lambda one: one.first):
        if one.kind == KIND and one.rank is not None and one.severity != "info":
            trace.named.setdefault(one.rank, _step_at(steps, one))
        else:
            trace.others.append(f"{one.severity} {one.kind}{'' if one.rank is None else f' of rank {one.rank}'}")
    return trace


def _step_at(steps: dict[str, int], one: Found) -> int:
    """The last step that had ended when it was told."""
    from trainvitals.journal.record import timestamp_at

    told = timestamp_at(one.first)
    return max((step for when, step in steps.items() if when <= told), default=0)
