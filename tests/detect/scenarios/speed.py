"""Runs that become slower, single slow steps, and waiting for data."""

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

from tests.detect.scenarios.scenario import Build, Recording, Row, Scenario, family
from tests.detect.scenarios.shapes import Shape, between, training
from tests.detect.scenarios.timing import DATA_SHARE, Pace, Pause, Restart, Stretch
from tests.detect.scenarios.training import Training
from tests.detect.scenarios.truth import INFO, NO_WORKER, PAGE, TICKET, Allowed, Expected

# An hour or two each: what is slow for a quarter of an hour has a before and an after.
HOURS = (
    Shape(5000, 1.0, 1, "language", 64.0),
    Shape(14000, 0.25, 1, "vision", 256.0),
    Shape(420, 12.0, 8, "language", 1024.0),
    Shape(2500, 2.0, 2, "heavy", 32.0),
)
PHASES = ("forward_seconds", "backward_seconds", "optimizer_seconds")
SLOWED = (Allowed("TrainingThroughputRegression"), Allowed("TrainingStepTimeOutlier"), NO_WORKER)


def every(steps: int, factor: float) -> Callable[[int], float]:
    """Some optimizers, and logging, are slow each so many steps by design."""
    return lambda step: factor if step % steps == 0 else 1.0


# A quarter of an hour at less than nine tenths of what it did: the bill grows, and something changed.
def slower(share: float, rhythm: Callable[[int], float] | None = None, minutes: float = 40.0) -> Build:
    """`share` of its own throughput, from the middle on."""

    def build(seed: int, rng: random.Random) -> Recording:
        shape = HOURS[seed % len(HOURS)]
        at = int(shape.steps * rng.uniform(0.35, 0.5))
        last = at + int(minutes * 60 * share / shape.step_seconds)
        pace = Pace(rhythm=rhythm or (lambda step: 1.0), stretches=(Stretch(at, last, 1 / share, "all"),))
        run = training(seed, shape=shape, pace=pace)
        expected = Expected(
            "TrainingThroughputRegression", TICKET, run.at(at), 60 * min(minutes, 28.0), run.run, step=at
        )
        return Recording((run,), expected=(expected,), allowed=SLOWED[1:], bare=seed == 1)

    return build


# A few per cent, some minutes, the drift of days, pauses, and a longer step that does as much more.
def as_fast(seed: int, rng: random.Random) -> Recording:
    return (_six_per_cent, _nine_minutes, _drift_of_days, _doubled_batch, _evaluates_often, _drift_of_a_week)[seed % 6](
        seed
    )


def _six_per_cent(seed: int) -> Recording:
    return Recording((training(seed, shape=HOURS[0], pace=Pace(stretches=(Stretch(2200, 5000, 1.06, "all"),))),))


def _nine_minutes(seed: int) -> Recording:
    """A neighbour's backup, over before anybody has looked."""
    run = training(seed, shape=HOURS[0], pace=Pace(stretches=(Stretch(2500, 2850, 1.5, "all"),)))
    return Recording((run,), allowed=(Allowed("TrainingStepTimeOutlier"),))


def _drift_of_days(seed: int) -> Recording:
    """Two per cent a day, over three days."""
    days = Shape(4300, 60.0, 1, "language", 4096.0)
    return Recording((training(seed, shape=days, pace=Pace(rhythm=lambda step: 1 + 0.02 * step / 1440)),))


def _drift_of_a_week(seed: int) -> Recording:
    """Less than two per cent a day, which is more than a tenth in the end."""
    week = Shape(5000, 120.0, 1, "language", 4096.0)
    return Recording((training(seed, shape=week, pace=Pace(rhythm=lambda step: 1 + 0.018 * step / 720)),))


def _doubled_batch(seed: int) -> Recording:
    """Twice as many micro-batches a step: as many samples a second."""
    run = training(seed, shape=HOURS[0], steps=3500, pace=Pace(stretches=(Stretch(2000, 9000, 2.0, "all"),)))
    run.edits = (between(2000, 9000, _twice_the_samples),)
    return Recording((run,), allowed=(Allowed("TrainingStepTimeOutlier"),))


def _twice_the_samples(step: int, line: dict[str, Any]) -> None:
    line["throughput_samples_per_sec"] *= 2


def _evaluates_often(seed: int) -> Recording:
    pauses = tuple(Pause(step, 75.0, "evaluation") for step in range(400, 5000, 400))
    return Recording((training(seed, shape=HOURS[0], pace=Pace(pauses=pauses)),))


# One slow step that nothing explains: to be seen on the page, where a third one would make a pattern.
def slow_step(factor: float, beside_round: bool = False) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        shape = (HOURS[:2] if beside_round else HOURS)[seed % (2 if beside_round else len(HOURS))]
        at = int(shape.steps * rng.uniform(0.5, 0.9)) + 3
        if beside_round:
            at = at // 500 * 500 + (125, 249, 301)[seed % 3]
        run = training(seed, shape=shape, pace=Pace(stretches=(Stretch(at, at, factor, "all"),)))
        expected = Expected(
            "TrainingStepTimeOutlier",
            INFO,
            run.at(at - 1),
            max(60, (factor + 12) * shape.step_seconds),
            run.run,
            step=at,
        )
        return Recording((run,), expected=(expected,))

    return build


# An epoch is of any length, and its first step waits for a loader that is started anew, or is a short last batch.
def each_epoch(seed: int, rng: random.Random) -> Recording:
    shape, epoch = HOURS[seed % 2], (937, 1413, 611)[seed % 3]
    pace = Pace(rhythm=lambda step: 6.0 if step > 1 and step % epoch == 1 else 1.0)
    run = training(seed, shape=shape, pace=pace)
    # The first one cannot be known as such.
    return Recording((run,), allowed=(Allowed("TrainingStepTimeOutlier", until=run.at(2 * epoch)),))


RHYTHMS = (every(5, 2.2), every(10, 3.0), every(100, 6.0), every(25, 4.0))


# By design: each fifth, tenth or hundredth step, the first ones, announced pauses, and steps of unequal length.
def rhythmic(seed: int, rng: random.Random) -> Recording:
    shape = HOURS[seed % len(HOURS)]
    return Recording((training(seed, shape=shape, pace=Pace(rhythm=RHYTHMS[seed % len(RHYTHMS)])),))


def uneven(seed: int, rng: random.Random) -> Recording:
    """Sequences of unequal length; and a compilation in the first steps."""

    def lengths(step: int) -> float:
        return random.Random(f"length/{seed}/{step}").lognormvariate(0, 0.22)

    def compiles(step: int) -> float:
        return 25.0 if step <= 3 else 1.0

    shape = HOURS[seed % len(HOURS)]
    return Recording((training(seed, shape=shape, pace=Pace(rhythm=compiles if seed % 2 else lengths)),))


def saves_and_evaluates(seed: int, rng: random.Random) -> Recording:
    """At odd moments, but announced."""
    pauses = (Pause(700, 40.0, "checkpoint"), Pause(1210, 65.0, "evaluation"), Pause(1900, 40.0, "checkpoint"))
    return Recording((training(seed, shape=HOURS[seed % 2 * 3], steps=2400, pace=Pace(pauses=pauses)),))


def starving(share: float) -> Stretch:
    """The factor on the usual wait that makes it this share of the wall time."""
    return Stretch(0, 10**9, (1 - DATA_SHARE) * share / (1 - share) / DATA_SHARE / math.exp(0.011), "data_wait")


# More than a tenth of the time, a third at worst, goes into waiting for a loader that a person can mend.
def starved(share: float, severities: tuple[str, ...], from_start: bool = False, shape: Shape | None = None) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        of = shape or (HOURS[0], HOURS[1], HOURS[3])[seed % 3]
        at = 1 if from_start else int(of.steps * 0.4)
        stretch = starving(share)
        run = training(seed, shape=of, pace=Pace(stretches=(Stretch(at, 10**9, stretch.factor, "data_wait"),)))
        within = min(1500.0, run.line.last - run.at(at))
        expected = Expected("TrainingDataStarved", severities, run.at(at), within, run.run, step=at)
        return Recording((run,), expected=(expected,), allowed=SLOWED)

    return build


# A few per cent, an epoch's first batch, and the first minute while caches are cold.
def fed(seed: int, rng: random.Random) -> Recording:
    shape = HOURS[seed // 3 % 2]
    stretches: tuple[Stretch, ...] = (Stretch(1, 10**9, starving(0.065).factor, "data_wait"),)
    if seed % 3 == 1:
        stretches = tuple(Stretch(step, step, 600.0, "data_wait") for step in range(600, shape.steps, 600))
    if seed % 3 == 2:
        stretches = (Stretch(1, int(60 / shape.step_seconds), starving(0.4).factor, "data_wait"),)
    return Recording((training(seed, shape=shape, pace=Pace(stretches=stretches)),))


# Each epoch's first batch takes its time, two minutes once an hour or seconds each few minutes: all below a tenth.
def epochs(seed: int, rng: random.Random) -> Recording:
    shape, wait, every = (
        (Shape(16000, 0.3, 1, "language", 64.0), 150.0, 7000),
        (Shape(9000, 0.3, 1, "vision", 64.0), 60.0, 3000),
        (Shape(4000, 0.3, 1, "language", 64.0), 7.0, 500),
        (Shape(3000, 1.0, 8, "language", 512.0), 45.0, 700),
        (Shape(900, 5.0, 2, "heavy", 64.0), 120.0, 300),
    )[seed % 5]
    factor = wait / (DATA_SHARE * shape.step_seconds)
    stretches = tuple(Stretch(step, step, factor, "data_wait") for step in range(every, shape.steps, every))
    run = training(seed, shape=shape, pace=Pace(stretches=stretches))
    return Recording((run,), allowed=(Allowed("TrainingStepTimeOutlier"),))


# Epochs so short that every sixth minute is spent between them: by day, and for nobody's night.
def short_epochs(seed: int, rng: random.Random) -> Recording:
    shape = Shape(2700, 0.3, 1, "language", 64.0)
    factor = 25.0 / (DATA_SHARE * shape.step_seconds)
    stretches = tuple(Stretch(step, step, factor, "data_wait") for step in range(450, shape.steps, 450))
    run = training(seed, shape=shape, pace=Pace(stretches=stretches))
    expected = Expected("TrainingDataStarved", TICKET, run.at(450), 900.0, run.run, step=450)
    return Recording((run,), expected=(expected,), allowed=SLOWED)


# A loader's workers are started anew after a restart or an evaluation: one long wait each time, by design.
def first_batches(seed: int, rng: random.Random) -> Recording:
    pauses = tuple(Pause(step, 360.0, "evaluation") for step in (700, 1400))
    paces = (
        Pace(first_batch=10.0, restarts=(Restart(900, 850), Restart(1200, 1150, seconds=600.0))),
        Pace(first_batch=22.0, pauses=pauses),
    )
    shape = Shape(2000, 1.0, (8, 1)[seed % 2], "language", 64.0)
    return Recording((training(seed, shape=shape, pace=paces[seed % 2]),))


def without_times(run: Training) -> Training:
    """As where a trainer tells how long a step took and no more."""
    return _without(run, ("data_wait_seconds", *PHASES))


def without_phases(run: Training) -> Training:
    """As a loop with `run.data` and `run.step` tells it: the wait for data, and how long the step took."""
    return _without(run, PHASES)


def _without(run: Training, names: tuple[str, ...]) -> Training:
    def edit(step: int, rank: int, line: dict[str, Any]) -> None:
        for name in names:
            line.pop(name, None)

    run.edits = (*run.edits, edit)
    return run


def scenarios() -> Iterator[Scenario]:
    yield from family(
        "throughput",
        "TrainingThroughputRegression",
        (
            Row("clear", "two-thirds", slower(0.66), times=5),
            Row("clear", "and-rhythm", slower(0.7, every(10, 2.5)), times=2),
            Row("faint", "just-under", slower(0.86, minutes=38), times=5),
            Row("near", "as-fast", as_fast, times=6),
        ),
    )
    yield from family(
        "step-time",
        "TrainingStepTimeOutlier",
        (
            Row("clear", "eight-times", slow_step(8.0), times=6),
            Row("clear", "beside-a-round-number", slow_step(8.0, beside_round=True), times=3),
            Row("faint", "three-times", slow_step(3.0), times=6),
            Row("near", "rhythmic", rhythmic, times=4),
            Row("near", "each-epoch", each_epoch, times=3),
            Row("near", "uneven", uneven, times=4),
            Row("near", "announced", saves_and_evaluates, times=2),
        ),
    )
    yield from family(
        "data-wait",
        "TrainingDataStarved",
        (
            Row("clear", "page", starved(0.45, PAGE), times=3),
            Row("clear", "ticket", starved(0.19, TICKET), times=3),
            Row("clear", "since-start", starved(0.42, PAGE, from_start=True), times=2),
            Row("faint", "just-over", starved(0.125, TICKET), times=4),
            Row("clear", "slow-steps", starved(0.42, PAGE, shape=HOURS[2]), times=1),
            Row("faint", "short-epochs", short_epochs, times=2),
            Row("near", "fed", fed, times=6),
            Row("near", "epochs", epochs, times=5),
            Row("near", "first-batches", first_batches, times=4),
        ),
    )
