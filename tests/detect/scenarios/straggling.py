"""Ranks that are slower than their peers before they meet in a collective, and all that looks like it."""

import random
from collections.abc import Callable, Iterator

from tests.detect.scenarios.scenario import Build, Recording, Row, Scenario, family
from tests.detect.scenarios.shapes import Shape, training
from tests.detect.scenarios.speed import without_phases, without_times
from tests.detect.scenarios.timing import DATA_SHARE, FORWARD_SHARE, Pace, Stretch
from tests.detect.scenarios.training import Training
from tests.detect.scenarios.truth import NO_WORKER, PAGE, TICKET, Allowed, Expected

LAST = 10**9
REST_SHARE = 1 - DATA_SHARE - FORWARD_SHARE
# What of its times a run tells.
Tell = Callable[[Training], Training]
RANKS = (
    Shape(1200, 1.0, 8, "language", 512.0),
    Shape(2500, 0.4, 4, "vision", 256.0),
    Shape(150, 20.0, 16, "language", 2048.0),
    Shape(1500, 0.8, 2, "heavy", 64.0),
    Shape(320, 2.5, 64, "language", 4096.0),
)
# The whole run goes at the slowest one's pace, which may show as its own throughput.
SLOWED = (Allowed("TrainingThroughputRegression"), Allowed("TrainingStepTimeOutlier"))


def forward_for(ratio: float) -> float:
    """The factor on the forward that makes data wait and forward together so many times as long."""
    return (ratio * (DATA_SHARE + FORWARD_SHARE) - DATA_SHARE) / FORWARD_SHARE


def wait_for(ratio: float) -> float:
    return (ratio * (DATA_SHARE + FORWARD_SHARE) - FORWARD_SHARE) / DATA_SHARE


def long_each(every: int, steps: int, longer: float, seed: int = 0) -> tuple[Stretch, ...]:
    """Each so many steps one takes so many steps longer: all save, or with every second seed rank 0 evaluates."""
    share, part, ranks = (FORWARD_SHARE, "forward", (0,)) if seed % 2 else (REST_SHARE, "rest", ())
    return tuple(Stretch(step, step, 1 + longer / share, part, ranks) for step in range(every, steps, every))


# All the others wait for this one in each step: its node is to be looked at, and left out. Nobody would say otherwise
# because the run saves now and then: `longer` says by how many steps it takes longer then.
def straggler(ratio: float, severities: tuple[str, ...], part: str = "forward", noise: float = 0.0,
              longer: float = 0.0) -> Build:  # fmt: skip
    def build(seed: int, rng: random.Random) -> Recording:
        shape = RANKS[seed % len(RANKS)]
        rank = rng.randrange(shape.ranks)
        at = int(shape.steps * rng.uniform(0.3, 0.5))
        factor = forward_for(ratio) if part == "forward" else wait_for(ratio)
        others = long_each(50, shape.steps, longer, seed) if longer else ()
        pace = Pace(stretches=(Stretch(at, LAST, factor, part, (rank,)), *others), forward_noise=noise)
        run = training(seed, shape=shape, pace=pace)
        within = max(200.0, (60 if noise else 20) * shape.step_seconds)
        expected = Expected("TrainingStraggler", severities, run.at(at), within, run.run, rank, step=at)
        also = (*SLOWED, Allowed("TrainingDataStarved", rank=rank)) if part == "data_wait" else SLOWED
        return Recording((run,), expected=(expected,), allowed=also)

    return build


# A loader that is slow on one node, in the plainest loop: no phase is told, and whoever waits has the shorter step.
def slow_loader(ratio: float, severities: tuple[str, ...], count: int = 1) -> Build:
    """`ratio`: of the step with that wait to the step without it."""

    def build(seed: int, rng: random.Random) -> Recording:
        shape = RANKS[1] if count > 1 else RANKS[seed % len(RANKS)]
        ranks = tuple(sorted(rng.sample(range(shape.ranks), count)))
        at = int(shape.steps * rng.uniform(0.3, 0.5))
        stretch = Stretch(at, LAST, 1 + (ratio - 1) / DATA_SHARE, "data_wait", ranks)
        run = without_phases(training(seed, shape=shape, pace=Pace(stretches=(stretch,))))
        within = max(200.0, 20 * shape.step_seconds)
        expected = tuple(
            Expected("TrainingStraggler", severities, run.at(at), within, run.run, rank, step=at) for rank in ranks
        )
        return Recording((run,), expected=expected, allowed=(*SLOWED, Allowed("TrainingDataStarved")))

    return build


# All loaders alike, or each a little otherwise in each step: nobody is to be named.
def loaders_alike(seed: int, rng: random.Random) -> Recording:
    shape = RANKS[(0, 3)[seed % 2]]
    stretch = Stretch(int(shape.steps * 0.4), LAST, 12.0, "data_wait")
    run = without_phases(training(seed, shape=shape, pace=Pace(stretches=(stretch,), wait_noise=0.4)))
    return Recording((run,), allowed=(*SLOWED, NO_WORKER, Allowed("TrainingDataStarved")))


# Ranks that nothing binds to each other, as asynchronous workers: there the whole step tells.
def free_worker(ratio: float, severities: tuple[str, ...], tell: Tell = without_times) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        shape = (RANKS[0], RANKS[1], Shape(300, 10.0, 10, "vision", 128.0))[seed % 3]
        rank, at = rng.randrange(shape.ranks), int(shape.steps * 0.4)
        pace = Pace(stretches=(Stretch(at, LAST, ratio, "all", (rank,)),), is_free=True)
        run = tell(training(seed, shape=shape, pace=pace))
        expected = Expected(
            "TrainingStraggler",
            severities,
            run.at(at, rank),
            max(220.0, 22 * shape.step_seconds),
            run.run,
            rank,
            step=at,
        )
        return Recording((run,), expected=(expected,), allowed=SLOWED)

    return build


# One machine of several, all of its ranks: a hot room, a slow network card, another's work. It is what to leave out.
def slow_node(seed: int, rng: random.Random) -> Recording:
    shape = (Shape(400, 2.5, 32, "language", 2048.0), RANKS[4])[seed % 2]
    node, at = rng.randrange(shape.ranks // 8), int(shape.steps * 0.4)
    ranks = tuple(range(8 * node, 8 * node + 8))
    run = training(seed, shape=shape, pace=Pace(stretches=(Stretch(at, LAST, forward_for(1.5), "forward", ranks),)))
    # Of four machines it may be a stage of the run: by day.
    severities = PAGE if seed % 2 else TICKET
    expected = Expected("TrainingStraggler", severities, run.at(at), 200.0, run.run, None, step=at)
    return Recording((run,), expected=(expected,), allowed=SLOWED)


# A little more work by design, five slow steps, a minute: nobody has a fault.
def within_bounds(seed: int, rng: random.Random) -> Recording:
    shape = RANKS[seed // 3 % 2]
    last_rank = (shape.ranks - 1,)
    stretches = (
        Stretch(1, LAST, forward_for(1.05), "forward", last_rank),
        Stretch(600, 604, forward_for(1.8), "forward", last_rank),
        Stretch(600, 600 + int(60 / shape.step_seconds), forward_for(1.3), "forward", last_rank),
    )
    run = training(seed, shape=shape, pace=Pace(stretches=(stretches[seed % 3],)))
    return Recording((run,), allowed=(Allowed("TrainingStepTimeOutlier"),))


# It saves each fifty steps, or one rank evaluates, and all ranks are alike.
def long_steps(seed: int, rng: random.Random) -> Recording:
    shape = RANKS[seed // 2 % len(RANKS)]
    return Recording((training(seed, shape=shape, pace=Pace(stretches=long_each(50, shape.steps, 5.0, seed))),))


# Two minutes of making samples, then fifteen short steps on them: what a rank loses there is a hundredth of the time.
def short_beside_rollouts(seed: int, rng: random.Random) -> Recording:
    shape = Shape(640, 1.0, 8, "policy", 64.0)
    slow = Stretch(200, LAST, forward_for(1.25), "forward", (rng.randrange(8),))
    pace = Pace(stretches=(slow, *long_each(16, shape.steps, 120.0)))
    return Recording((training(seed, shape=shape, pace=pace),))


# Turns: another rank is the slow one in each step, as unequal sequences make it.
def takes_turns(seed: int, rng: random.Random) -> Recording:
    shape = RANKS[0]
    stretches = tuple(Stretch(step, step, forward_for(1.4), "forward", (rng.randrange(8),)) for step in range(1, 400))
    return Recording((training(seed, shape=shape, steps=400, pace=Pace(stretches=stretches)),))


# Sequences of unequal length on equal machines: each rank is the slow one for some steps, by chance.
def unequal_batches(seed: int, rng: random.Random) -> Recording:
    shape = (RANKS[0], RANKS[1], RANKS[2], RANKS[3], Shape(3000, 0.5, 8, "language", 512.0))[seed % 5]
    pace = Pace(forward_noise=(0.4, 0.2, 0.3, 0.35)[seed % 4])
    return Recording((training(seed, shape=shape, pace=pace),), allowed=SLOWED)


# A whole stage of a pipeline, or a longer batch for all: no worker is at fault, and none may be named.
def whole_stage(seed: int, rng: random.Random) -> Recording:
    shape = Shape(400, 4.0, 16, "language", 2048.0)
    ranks = tuple(range(8, 16)) if seed % 2 else tuple(range(16))
    run = training(seed, shape=shape, pace=Pace(stretches=(Stretch(200, 290, forward_for(1.4), "forward", ranks),)))
    return Recording((run,), allowed=(*SLOWED, NO_WORKER))


def free_but_even(seed: int, rng: random.Random) -> Recording:
    pace = Pace(is_free=True, jitter=0.04, stretches=(Stretch(1, LAST, 1.04, "all", (1,)),))
    return Recording((without_times(training(seed, shape=RANKS[0], pace=pace)),))


def scenarios() -> Iterator[Scenario]:
    yield from family(
        "straggler",
        "TrainingStraggler",
        (
            Row("clear", "page", straggler(1.6, PAGE), times=5),
            Row("clear", "ticket", straggler(1.22, TICKET), times=5),
            Row("clear", "waits-for-data", straggler(1.6, PAGE, "data_wait"), times=3),
            Row("clear", "slow-node", slow_node, times=3),
            Row("clear", "slow-loader", slow_loader(1.7, PAGE), times=5),
            Row("clear", "two-slow-loaders", slow_loader(1.7, PAGE, count=2), times=2),
            Row("clear", "free-worker", free_worker(1.8, PAGE), times=3),
            Row("clear", "free-and-waiting", free_worker(1.8, PAGE, without_phases), times=2),
            Row("clear", "unequal-batches", straggler(2.2, PAGE, noise=0.2), times=4),
            Row("clear", "long-steps", straggler(1.45, PAGE, longer=5.0), times=6),
            Row("faint", "just-over", straggler(1.135, TICKET), times=5),
            Row("faint", "loud-ticket", straggler(1.23, TICKET, noise=0.05), times=5),
            Row("faint", "below-a-page", straggler(1.28, TICKET, noise=0.04), times=5),
            Row("faint", "slow-loader", slow_loader(1.14, TICKET), times=3),
            Row("faint", "free-worker", free_worker(1.16, TICKET), times=3),
            Row("faint", "long-steps", straggler(1.16, TICKET, longer=5.0), times=4),
            Row("near", "long-steps", long_steps, times=4),
            Row("near", "short-beside-rollouts", short_beside_rollouts, times=2),
            Row("near", "within-bounds", within_bounds, times=6),
            Row("near", "takes-turns", takes_turns, times=2),
            Row("near", "unequal-batches", unequal_batches, times=10),
            Row("near", "whole-stage", whole_stage, times=4),
            Row("near", "loaders-alike", loaders_alike, times=2),
            Row("near", "free-but-even", free_but_even, times=2),
        ),
    )
