"""Runs of many sizes, losses of many kinds, and schedules: what the families vary.

training(seed=3)   ->  a run of 3,000 steps of 0.4 s with a heavy-tailed loss, as SHAPES[3] has it
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from tests.detect.scenarios import curves
from tests.detect.scenarios.curves import Curve, Noise
from tests.detect.scenarios.timing import Pace
from tests.detect.scenarios.training import Training
from tests.detect.scenarios.truth import ANY, Expected


@dataclass(frozen=True)
class Look:
    """A loss: its course, and the noise around it."""

    curve: Curve
    noise: Noise


LOOKS = {
    "language": Look(curves.falling(10.8, 2.4), curves.gaussian(0.03)),
    "vision": Look(curves.falling(2.3, 0.35, 0.5), curves.gaussian(0.02)),
    "heavy": Look(curves.falling(10.8, 2.6), curves.heavy_tailed(0.03)),
    # What a policy's loss is: the negative of what it earns, and loud.
    "policy": Look(lambda step: -100.0 - 0.06 * step, curves.gaussian(6.0)),
    "near-zero": Look(curves.falling(0.02, 0.0008, 0.6), curves.relative(0.15)),
    "tuning": Look(curves.falling(1.9, 1.1, 0.25), curves.gaussian(0.04)),
}


@dataclass(frozen=True)
class Shape:
    steps: int
    step_seconds: float
    ranks: int
    look: str
    batch: float


SHAPES = (
    Shape(1800, 0.8, 4, "language", 512.0),
    Shape(12000, 0.05, 1, "vision", 128.0),
    Shape(320, 45.0, 8, "language", 4096.0),
    Shape(3000, 0.4, 1, "heavy", 32.0),
    Shape(1400, 6.0, 2, "policy", 64.0),
    Shape(5000, 0.1, 1, "near-zero", 16.0),
    Shape(500, 3.0, 64, "language", 2048.0),
    Shape(60, 60.0, 2, "tuning", 8.0),
    Shape(20000, 0.06, 1, "language", 256.0),
)
# What a shape may be where a loss has to be seen over more than a thousand steps.
LONG, MANY_RANKS = (0, 1, 3, 4, 5, 8), 6


def schedule(seed: int, steps: int) -> Curve:
    peak, warm = 3e-4, max(2, steps // 20)
    return (curves.cosine(peak, steps, warm, last=0.1 * peak), curves.constant(peak, warm),
            curves.cosine(peak, steps, warm), curves.warmup_stable_decay(peak, steps, warm),
            curves.step_decay(peak, max(1, steps // 3)), curves.linear(peak, steps, warm))[seed % 6]  # fmt: skip


def training(seed: int, *, shape: Shape | int | None = None, **settings: Any) -> Training:
    """A run of the seed's shape, whose schedule is that of the whole of it."""
    if not isinstance(shape, Shape):
        shape = SHAPES[(seed if shape is None else shape) % len(SHAPES)]
    look = LOOKS[shape.look]
    pace = settings.pop("pace", None) or Pace()
    if "step_seconds" not in settings:
        pace = replace(pace, step_seconds=shape.step_seconds)
    settings.pop("step_seconds", None)
    steps, ranks = settings.pop("steps", shape.steps), settings.pop("ranks", shape.ranks)
    hosts = tuple(f"node-{letter}" for letter in "abcdefgh"[: math.ceil(ranks / 8)])
    made = {"curve": look.curve, "noise": look.noise, "rate": schedule(seed, steps), "planned": steps,
            "batch": shape.batch, "all_ranks_tell": ranks <= 8, "hosts": hosts} | settings  # fmt: skip
    return Training(steps=steps, ranks=ranks, seed=seed, pace=pace, **made)


def restarts(seed: int) -> tuple[Training, int]:
    """A small model that is as good as done at the end of each cycle, and ten times as bad at the next one's begin;
    and how long a cycle is."""
    run = training(seed, shape=Shape(6000, 0.2, 1, "vision", 128.0))
    period = (2000, 1500, 1000)[seed % 3]
    run.rate, run.noise = curves.restarting(0.1, period), curves.relative(0.03)

    def follows(step: int) -> float:
        """The loss takes some dozens of steps."""
        return run.rate(step) / 0.1 * (1 - math.exp(-(step % period) / (15, 5, 40)[seed % 3]))

    run.curve = lambda step: 0.05 + 0.45 * follows(step) + 1.8 * math.exp(-step / 300)
    return run, period


def usual(run: Training, at: int) -> tuple[float, float]:
    """Median and robust sigma of the loss over the thousand steps before, its fall included."""
    rng = random.Random(f"usual/{run.seed}/{at}")
    values = [run.noise(rng, run.curve(step)) for step in range(max(1, at - 1000), at)]
    middle = median(values)
    return middle, 1.4826 * median(abs(value - middle) for value in values)


def noise_sigma(run: Training, at: int) -> float:
    """Robust sigma of the noise alone."""
    rng = random.Random(f"noise/{run.seed}/{at}")
    level = run.curve(at)
    return 1.4826 * median(abs(run.noise(rng, level) - level) for _ in range(2000))


def between(first: int, last: int, change: Callable[[int, dict[str, Any]], None],
            ranks: tuple[int, ...] = ()) -> Callable[[int, int, dict[str, Any]], None]:  # fmt: skip
    """An edit of the lines of some steps, on some ranks or all."""

    def edit(step: int, rank: int, line: dict[str, Any]) -> None:
        if first <= step <= last and (not ranks or rank in ranks):
            change(step, line)

    return edit


def setting(name: str, value: float) -> Callable[[int, dict[str, Any]], None]:
    """Where the line tells of it at all."""

    def change(step: int, line: dict[str, Any]) -> None:
        if name in line:
            line[name] = value

    return change


def adding(name: str, value: Callable[[int], float]) -> Callable[[int, dict[str, Any]], None]:
    def change(step: int, line: dict[str, Any]) -> None:
        if name in line:
            line[name] += value(step)

    return change


def told(run: Training, kind: str, severities: tuple[str, ...], step: int, steps: float, *, rank: int | None = ANY,
         seconds: float = 10.0) -> Expected:  # fmt: skip
    """To be told within so many steps, or seconds where steps are short."""
    within = max(seconds, steps * run.pace.step_seconds)
    return Expected(kind, severities, run.at(step), within, run.run, rank, step=step)
