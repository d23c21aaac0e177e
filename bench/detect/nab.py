"""The detector of jumps on twelve series of the Numenta Anomaly Benchmark, as information: no field of ours.

measure(folder)  ->  Nab(score=31.0, series=12, windows=…, found=…, false=…)
The scoring is that of NAB's standard profile, simplified: the first word in a window scores from 1 at its begin to 0 at
its end, each word outside costs 0.11 wherever it is, a window without one costs 1; the first 15 % of a series are not
judged; and a detector that says nothing has 0, one that says all at once 100.
"""

import csv
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

FALSE_COST, MISSED_COST, PROBATION = 0.11, 1.0, 0.15
Stamped = tuple[float, float]
# From a series to the times at which it has something to say.
Detector = Callable[[Sequence[Stamped]], Iterator[float]]


@dataclass
class Nab:
    score: float = 0.0
    series: int = 0
    windows: int = 0
    found: int = 0
    false: int = 0


def measure(folder: Path, detect: Detector) -> Nab:
    told, points = Nab(), 0.0
    for name, windows in json.loads((folder / "windows.json").read_text(encoding="utf-8")).items():
        values = read(folder / name)
        spans = [(_seconds(begin), _seconds(end)) for begin, end in windows]
        found, false, gained = score(values, spans, list(detect(values)))
        told.series += 1
        told.windows += len(spans)
        told.found += found
        told.false += false
        points += gained
    nothing, all_at_once = -MISSED_COST * told.windows, float(told.windows)
    told.score = 100 * (points - nothing) / (all_at_once - nothing) if told.windows else 0.0
    return told


def read(path: Path) -> list[Stamped]:
    with path.open(encoding="utf-8", newline="") as file:
        return [(_seconds(row["timestamp"]), float(row["value"])) for row in csv.DictReader(file)]


def score(values: Sequence[Stamped], windows: Sequence[Stamped], said: Sequence[float]) -> tuple[int, int, float]:
    """Windows found, words outside of any, and points."""
    judged = [when for when in said if when >= values[int(PROBATION * len(values))][0]]
    found, points = 0, 0.0
    for begin, end in windows:
        first = min((when for when in judged if begin <= when <= end), default=None)
        found += first is not None
        points += -MISSED_COST if first is None else _early(first, begin, end)
    false = sum(not any(begin <= when <= end for begin, end in windows) for when in judged)
    return found, false, points - FALSE_COST * false


def _early(when: float, begin: float, end: float) -> float:
    place = (when - end) / max(1.0, end - begin)
    return 2 / (1 + math.exp(5 * place)) - 1


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def spikes(values: Sequence[Stamped]) -> Iterator[float]:
    """The loss's detector, for which a series is a loss like any other. Only the first word of several in a row counts,
    as of one finding."""
    detector, last = _loss_spike(), -10
    for step, (when, value) in enumerate(values):
        if detector(when, step, value):
            if step - last > 3:
                yield when
            last = step


def _loss_spike() -> Callable[[float, int, float], Any]:
    from trainvitals.detect.limits import Limits
    from trainvitals.detect.line import Line
    from trainvitals.detect.loss_spike import LossSpike

    detector = LossSpike(Limits())
    return lambda when, step, value: detector.update(Line(when, step, {"loss": value}, loss=value))
