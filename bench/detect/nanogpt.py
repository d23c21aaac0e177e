"""Public training logs of which none failed: whatever wakes somebody there is false.

measure(folder)  ->  Nanogpt(logs=20, pages=[], tickets=[Ticket("12", "TrainingLossSpike", 1204, is_true=True)])
"""

import csv
import gzip
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench.detect.folders import Line, stamp, write_run
from bench.detect.replaying import Found, replayed

# Where a log tells of no times.
STEP_SECONDS = 0.3
LEAST_SECONDS = 0.001
# Far enough to know the noise, near enough for the fall to be none of it.
LOOKED_BACK = 100


@dataclass
class Log:
    number: str
    steps: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    # Cumulative, in seconds.
    times: list[float | None] = field(default_factory=list)


@dataclass(frozen=True)
class Ticket:
    """`is_true`: of a spike, that the loss was seven robust sigma above the hundred steps before, for three steps."""

    log: str
    kind: str
    step: int | None
    is_true: bool


@dataclass
class Nanogpt:
    logs: int = 0
    steps: int = 0
    pages: list[Ticket] = field(default_factory=list)
    tickets: list[Ticket] = field(default_factory=list)
    infos: int = 0
    # Those that were there by the same measure, told of or not.
    spikes: int = 0


def measure(folder: Path) -> Nanogpt:
    told = Nanogpt()
    for log in read(folder / "steps.csv.gz"):
        with tempfile.TemporaryDirectory(prefix="trainvitals-nanogpt-") as root:
            lines = list(_lines(log))
            write_run(Path(root), f"log-{log.number}", {0: lines}, _seconds(log)[-1] + 1)
            found = replayed(Path(root))
        told.logs += 1
        told.steps += len(log.steps)
        told.spikes += spikes_of(log)
        told.infos += sum(one.severity == "info" for one in found)
        for one in found:
            if one.severity in ("page", "ticket"):
                (told.pages if one.severity == "page" else told.tickets).append(_ticket(log, one))
    return told


def read(path: Path) -> Iterator[Log]:
    log = Log("")
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["log"] != log.number:
                if log.steps:
                    yield log
                log = Log(row["log"])
            log.steps.append(int(row["step"]))
            log.losses.append(float(row["train_loss"]))
            log.times.append(float(row["train_time_ms"]) / 1000 if row["train_time_ms"] else None)
    if log.steps:
        yield log


def _seconds(log: Log) -> list[float]:
    """When each step ended. Some logs begin to count anew after the first steps, which compile."""
    now, ends, before = 0.0, [], 0.0
    for time in log.times:
        now += STEP_SECONDS if time is None else max(LEAST_SECONDS, time - before)
        before = before if time is None else time
        ends.append(now)
    return ends


def _lines(log: Log) -> Iterator[Line]:
    before = 0.0
    for step, loss, time, end in zip(log.steps, log.losses, log.times, _seconds(log), strict=True):
        line: Line = {"timestamp": stamp(end), "step": step, "loss": loss}
        if time is not None and end - before > LEAST_SECONDS:
            line["step_duration_seconds"] = end - before
        before = end
        yield line


def _ticket(log: Log, one: Found) -> Ticket:
    return Ticket(log.number, one.kind, one.step, one.kind == "TrainingLossSpike" and is_spike(log, one.step))


def is_spike(log: Log, step: int | None) -> bool:
    """Three steps in a row, up to the one that it was told at, that are far above what came before them."""
    if step is None or step not in log.steps:
        return False
    at = log.steps.index(step)
    return any(_is_far_above(log, first) for first in range(max(1, at - 12), at - 1))


def _is_far_above(log: Log, first: int) -> bool:
    before = log.losses[max(0, first - LOOKED_BACK) : first]
    middle = median(before)
    sigma = 1.4826 * median(abs(value - middle) for value in before)
    return all(value >= middle + 7 * sigma for value in log.losses[first : first + 3])


def spikes_of(log: Log) -> int:
    """Far apart from each other, and looked for only where three steps are above all of the twenty before."""
    count, free = 0, 60
    for first in range(60, len(log.losses) - 2):
        highest = max(log.losses[first - 20 : first])
        if first >= free and min(log.losses[first : first + 3]) > highest and _is_far_above(log, first):
            count, free = count + 1, first + 100
    return count
