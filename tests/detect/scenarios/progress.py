"""Runs that stand still, hang, crash, are killed, or no longer save."""

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.detect.scenarios.node import GpuEdit, beside
from tests.detect.scenarios.scenario import Build, Recording, Row, Scenario, family
from tests.detect.scenarios.shapes import SHAPES, Shape, training
from tests.detect.scenarios.timing import Pace, Pause
from tests.detect.scenarios.training import Training
from tests.detect.scenarios.truth import ANY, PAGE, TICKET, Allowed, Expected

# A run's step in seconds, and how many of them.
PACES = (
    Shape(700, 1.0, 1, "language", 64.0),
    Shape(400, 2.5, 4, "language", 64.0),
    Shape(60, 60.0, 2, "tuning", 8.0),
    Shape(3000, 0.2, 1, "vision", 64.0),
    Shape(150, 12.0, 8, "language", 1024.0),
)
# One slow step, a slower run or a late checkpoint are what standing still looks like to others.
STILL = (
    Allowed("TrainingStepTimeOutlier"),
    Allowed("TrainingThroughputRegression", folded=True),
    Allowed("TrainingCheckpointOverdue"),
    Allowed("GpuIdleAllocated"),
)


def paused(seed: int, seconds: float, phase: str = "", shape: Shape | None = None, **settings: Any) -> Training:
    run = training(seed, shape=shape or PACES[seed % len(PACES)], **settings)
    run.pace = replace(run.pace, pauses=(*run.pace.pauses, Pause(int(run.steps * 0.6), seconds, phase)))
    return run


def _stall(run: Training, kind: str, within: float) -> Expected:
    at = int(run.steps * 0.6)
    return Expected(kind, PAGE, run.at(at), within, run.run, step=at)


def limit(run: Training) -> float:
    return max(300.0, 10 * run.pace.step_seconds)


# Nobody said why no step comes, and the GPUs are paid for: by then somebody is to look.
def stalled(times: float, goes_on: bool) -> Build:
    """For so many times the longer of five minutes and ten steps."""

    def build(seed: int, rng: random.Random) -> Recording:
        run = paused(seed, 0.0)
        run = paused(seed, times * limit(run))
        if not goes_on:
            run = training(seed, shape=PACES[seed % len(PACES)], end="preempted", end_after=times * limit(run))
            run.steps = int(run.steps * 0.6)
        step = run.steps if not goes_on else int(run.steps * 0.6)
        expected = Expected("TrainingStalled", PAGE, run.at(step), 1.15 * limit(run) + 60, run.run, step=step)
        node = beside(run, tick=5.0, gpus=min(2, run.ranks))
        return Recording((run,), (node,), (expected,), STILL)

    return build


# A stall of an hour that went on by itself is no measure for the next one.
def stalled_again(seed: int, rng: random.Random) -> Recording:
    shape = PACES[seed % len(PACES)]
    first, second = int(shape.steps * 0.3), int(shape.steps * 0.7)
    run = training(seed, shape=shape)
    run.pace = replace(run.pace, pauses=(Pause(first, 12 * limit(run)), Pause(second, 3 * limit(run))))
    expected = tuple(
        Expected("TrainingStalled", PAGE, run.at(step), 1.15 * limit(run) + 60, run.run, step=step)
        for step in (first, second)
    )
    return Recording((run,), (beside(run, tick=5.0, gpus=1),), expected, STILL)


# Evaluates for seven minutes each 200 steps and tells nobody: that cannot be known at first, and is a habit later.
def evaluates_unsaid(seed: int, rng: random.Random) -> Recording:
    shape = PACES[(0, 3)[seed % 2]]
    every = shape.steps // 7
    pauses = tuple(Pause(step, 420.0 + 5 * (step % 3)) for step in range(every, shape.steps, every))
    run = training(seed, shape=shape, pace=Pace(pauses=pauses))
    known = run.at(pauses[2].after) - 1.0
    return Recording((run,), allowed=(Allowed("TrainingStalled", until=known), *STILL[:2]))


# Ten thousand samples a step, or a rollout before each: nothing is late, from the first step on.
def steps_of(seconds: float) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        shape = Shape(14, seconds, (1, 8)[seed % 2], "tuning", 8.0)
        return Recording((training(seed, shape=shape, pace=Pace(lead=0.5 * seconds)),), allowed=(STILL[0],))

    return build


# A long evaluation or save that says so, four minutes of silence, slow steps, and the time before and after a run.
def quiet(seed: int, rng: random.Random) -> Recording:
    slow = Shape(60, 60.0, 2, "tuning", 8.0)
    runs = (
        lambda: paused(seed, 900.0, "evaluation"),
        lambda: paused(seed, 700.0, "checkpoint"),
        lambda: paused(seed, 230.0),
        lambda: paused(seed, 480.0, shape=slow),
        lambda: training(seed, shape=PACES[0], end_after=2.0, pace=Pace(lead=240.0)),
    )
    run = runs[seed % len(runs)]()
    return Recording(
        (run,),
        (beside(run, tick=5.0, after=1300.0, gpus=min(2, run.ranks)),),
        allowed=(Allowed("TrainingStepTimeOutlier"),),
    )


def hanging(begin: float, end: float, watts: float, busy: float = 100.0) -> GpuEdit:
    """What the GPUs show while no step comes, in seconds since the start."""

    def edit(since: float, gpu: int, values: dict[str, Any]) -> None:
        if begin < since < end:
            values |= {
                "utilization_percent": busy,
                "power_draw_watts": watts + gpu,
                "clock_hertz_sm": 1.98e9,
                "temperature_celsius": 48.0,
                "throttle_active": [],
                # Who looks busy lets no link sleep.
                "pcie_generation": values["pcie_generation_max"],
            }

    return edit


def in_pause(run: Training, watts: float, busy: float = 100.0) -> GpuEdit:
    begin = run.at(int(run.steps * 0.6)) - run.start
    return hanging(begin, begin + run.pace.pauses[0].seconds, watts, busy)


# Kernels that spin in a collective look busy and draw next to nothing: it will not go on by itself.
def hang(seconds: float, watts: float) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        shape = (PACES[0], PACES[1], PACES[3], PACES[4])[seed % 4]
        run = paused(seed, max(seconds, 6.5 * shape.step_seconds + 20), shape=shape)
        begin = max(60.0, 5 * shape.step_seconds)
        expected = _stall(run, "TrainingHangSuspected", begin * 1.25 + 15)
        node = beside(run, tick=2.0, gpus=min(4, run.ranks), gpu_edits=(in_pause(run, watts),))
        return Recording((run,), (node,), (expected,), (*STILL, Allowed("TrainingStalled", folded=True)))

    return build


# A long compilation on the GPU draws power, preprocessing on the host leaves it idle, 40 seconds are no time.
def no_hang(seed: int, rng: random.Random) -> Recording:
    seconds, watts, busy = ((150.0, 560.0, 99.0), (150.0, 85.0, 0.0), (40.0, 110.0, 100.0), (200.0, 430.0, 100.0))[
        seed % 4
    ]
    run = paused(seed, seconds, shape=PACES[seed % 2])
    node = beside(run, tick=2.0, gpus=min(4, run.ranks), gpu_edits=(in_pause(run, watts, busy),))
    return Recording((run,), (node,), allowed=STILL[:1])


def evaluating(seed: int, rng: random.Random) -> Recording:
    """Busy, drawing little, and announced: evaluation of a small set by one rank does that."""
    run = paused(seed, 200.0, "evaluation", shape=PACES[1])
    return Recording((run,), (beside(run, gpu_edits=(in_pause(run, 130.0),)),), allowed=STILL[:1])


# It ended by an exception, and does nothing more.
def crashed(rank: int, share: float) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        shape = (
            (SHAPES[0], SHAPES[2], SHAPES[3], SHAPES[6])[seed % 4] if rank == 0 else (SHAPES[2], SHAPES[0])[seed % 2]
        )
        steps = max(2, int(shape.steps * share))
        error = ("OutOfMemoryError: CUDA out of memory", "ValueError: shapes differ", "KeyError: 'labels'")[seed % 3]
        run = training(seed, shape=shape, steps=steps, end="crashed", error=error, end_rank=min(rank, shape.ranks - 1))
        run.planned = shape.steps
        return _ended(run, "TrainingCrashed")

    return build


def _ended(run: Training, kind: str) -> Recording:
    expected = Expected(kind, PAGE, run.ended, 10.0, run.run, ANY, step=run.line.numbers[-1])
    return Recording((run,), expected=(expected,))


# It is gone without a word: by `kill -9`, the kernel or its container.
def killed(rank: int, share: float) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        shape = (SHAPES[0], SHAPES[2], SHAPES[3])[seed % 3] if rank == 0 else SHAPES[2]
        run = training(
            seed, shape=shape, steps=max(2, int(shape.steps * share)), end="killed", end_rank=min(rank, shape.ranks - 1)
        )
        run.planned = shape.steps
        return _ended(run, "TrainingKilled")

    return build


# Its plan is done, or a scheduler took the machine back and said so.
def meant_to_end(seed: int, rng: random.Random) -> Recording:
    shape = (SHAPES[0], SHAPES[2], SHAPES[7])[seed % 3]
    run = training(seed, shape=shape, end="preempted", steps=shape.steps * 2 // 3)
    if seed >= 3:  # the signal came, then it was gone before it could say more
        run = training(seed, shape=SHAPES[3], steps=800, end="killed", end_after=20.0)
        run.events = ((800, {"event": "signal", "signal": "SIGTERM"}),)
    run.planned = shape.steps
    return Recording((run,), (beside(run, tick=5.0, after=900.0),))


SAVING = Shape(3000, 4.0, 1, "language", 64.0)


def saves(steps: tuple[int, ...], shape: Shape = SAVING, seed: int = 0) -> Training:
    """Saved after these steps, which takes half a minute."""
    pauses = tuple(Pause(step, 30.0, "checkpoint") for step in steps)
    return training(seed, shape=shape, pace=Pace(pauses=pauses))


# Twice its habit without a checkpoint: a crash now costs far more than was meant.
def overdue(every: int, until: int, again: int) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        shape = (SAVING, Shape(3000, 1.0, 4, "language", 64.0))[seed % 2]
        run = saves(
            (*range(every, until + 1, every), *(range(again, shape.steps, every) if again else ())), shape, seed
        )
        late = run.at(until) + 2 * every * shape.step_seconds
        within = every * shape.step_seconds if not again else run.at(again) - late
        expected = Expected("TrainingCheckpointOverdue", TICKET, late, within + 5, run.run, step=until + 2 * every)
        return Recording((run,), (beside(run, tick=30.0, gpus=1, after=5.0),), (expected,))

    return build


# Habits are not that exact: on improvement only, a bit late, never at all, or the last of the plan.
def saved_in_time(seed: int, rng: random.Random) -> Recording:
    habits = (
        (300, 600, 900, 1200, 1500, 1990, 2290, 2590, 2890),
        (250, 700, 850, 1400, 1650, 2250, 2400, 2900),
        (),
        (500, 1000, 1500, 2000, 2500),
        (80, 130, 210, 338, 543, 870, 1394, 2232),
    )
    run = saves(habits[seed % len(habits)], seed=seed)
    return Recording((run,), (beside(run, tick=30.0, gpus=1, after=5.0),))


def scenarios() -> Iterator[Scenario]:
    yield from family(
        "stall",
        "TrainingStalled",
        (
            Row("clear", "ends-so", stalled(3.5, goes_on=False), times=5),
            Row("clear", "goes-on", stalled(4.0, goes_on=True), times=3),
            Row("clear", "again", stalled_again, times=3),
            Row("faint", "just-over", stalled(1.3, goes_on=True), times=5),
            Row("near", "quiet-for-a-reason", quiet, times=5),
            Row("near", "evaluates-unsaid", evaluates_unsaid, times=2),
            Row("near", "a-quarter-of-an-hour-a-step", steps_of(960.0), times=2),
            Row("near", "forty-minutes-a-step", steps_of(1500.0), times=2),
        ),
    )
    yield from family(
        "stall",
        "TrainingHangSuspected",
        (
            Row("clear", "deadlock", hang(280, 96.0), times=4),
            Row("faint", "ninety-seconds", hang(95, 118.0), times=4),
            Row("near", "not-one", no_hang, times=4),
            Row("near", "evaluating", evaluating, times=2),
        ),
    )
    yield from family(
        "end",
        "TrainingCrashed",
        (
            Row("clear", "first-rank", crashed(0, 0.6), times=4),
            Row("clear", "another-rank", crashed(3, 0.5), times=2),
            Row("faint", "at-once", crashed(0, 0.005), times=3),
            Row("near", "meant-to", meant_to_end, kinds=("TrainingCrashed", "TrainingKilled"), times=5),
        ),
    )
    yield from family(
        "end",
        "TrainingKilled",
        (
            Row("clear", "only-rank", killed(0, 0.6), times=3),
            Row("clear", "another-rank", killed(5, 0.6), times=2),
            Row("faint", "at-once", killed(0, 0.01), times=3),
        ),
    )
    yield from family(
        "checkpoint",
        "TrainingCheckpointOverdue",
        (
            Row("clear", "never-again", overdue(150, 1200, 0), times=4),
            Row("faint", "just-late", overdue(200, 1400, 1960), times=4),
            Row("near", "in-time", saved_in_time, times=5),
        ),
    )
