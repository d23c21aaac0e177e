"""Losses that run away, at once or over hundreds of steps, and those that only look like it."""

import math
import random
from collections.abc import Iterator

from tests.detect.scenarios import curves
from tests.detect.scenarios.scenario import Build, Recording, Row, Scenario, family
from tests.detect.scenarios.shapes import SHAPES, Shape, adding, between, restarts, told, training
from tests.detect.scenarios.training import Training
from tests.detect.scenarios.truth import PAGE, TICKET, Allowed

# Those that are long enough for a rise over hundreds of steps to be seen whole.
SLOW_RISES = (0, 3, 5, 8)
ALSO = (Allowed("TrainingLossSpike"), Allowed("TrainingLossNotDecreasing"), Allowed("TrainingLossPlateau"))


# Five times its level and not coming back: the run is lost from there on.
def runaway(times: float, ramp: int, shapes: tuple[int, ...] = (0, 1, 3, 5, 6, 8)) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        run = training(seed, shape=SHAPES[shapes[seed % len(shapes)]])
        at = int(run.steps * rng.uniform(0.5, 0.7))
        run.curve = curves.rising(run.curve, times, at, ramp)
        return _diverges(run, at, ramp + 150)

    return build


def _diverges(run: Training, at: int, within: float) -> Recording:
    return Recording((run,), expected=(told(run, "TrainingLossDiverging", PAGE, at, within),), allowed=ALSO)


# A rate just too high: each step makes it a little worse, and in the end it is a million times what it was.
def doubles(seed: int, rng: random.Random) -> Recording:
    run = training(seed, shape=SHAPES[SLOW_RISES[seed % 4]])
    at, before, every = int(run.steps * rng.uniform(0.4, 0.6)), run.curve, (20, 40, 70, 100)[seed % 4]
    run.curve = lambda step: before(min(step, at)) * min(1e6, 2 ** (max(0, step - at) / every))
    return _diverges(run, at, 4 * every + 150)


# It goes on without an end, by some hundredths of its level with each step.
def grows_evenly(seed: int, rng: random.Random) -> Recording:
    run = training(seed, shape=SHAPES[SLOW_RISES[seed % 4]])
    at, before, share = int(run.steps * rng.uniform(0.4, 0.6)), run.curve, (0.02, 0.05, 0.1)[seed % 3]
    run.curve = lambda step: before(min(step, at)) * (1 + share * max(0, step - at))
    return _diverges(run, at, 6 / share + 150)


# What a policy earns is below nothing as a loss: it loses all it had learned, and more.
def policy_breaks(seed: int, rng: random.Random) -> Recording:
    run = training(seed, shape=SHAPES[4])
    at, before = int(run.steps * rng.uniform(0.5, 0.7)), run.curve
    run.curve = lambda step: before(step) if step < at else (250.0, 900.0)[seed % 2]
    return Recording((run,), expected=(told(run, "TrainingLossDiverging", PAGE, at, 150),), allowed=ALSO)


# It earns half of what it did: to be looked at by day.
def policy_earns_less(seed: int, rng: random.Random) -> Recording:
    run = training(seed, shape=SHAPES[4])
    run.curve = curves.lifted(run.curve, int(run.steps * 0.6), 70.0)
    return Recording((run,), allowed=ALSO)


# Three times its level is a reason to look at it by day, as the spike that it is.
def higher_level(seed: int, rng: random.Random) -> Recording:
    run = training(seed, shape=SHAPES[(0, 3)[seed % 2]])
    at = int(run.steps * 0.7)
    run.curve = curves.rising(run.curve, 3.0, at)
    return Recording((run,), expected=(told(run, "TrainingLossSpike", TICKET, at, 100),), allowed=ALSO)


# And where it climbs there over hundreds of steps it may be no spike to anybody.
def climbs_by_day(seed: int, rng: random.Random) -> Recording:
    run = training(seed, shape=SHAPES[SLOW_RISES[seed % 4]])
    run.curve = curves.rising(run.curve, 3.0, int(run.steps * 0.6), (100, 200, 400)[seed % 3])
    return Recording((run,), allowed=ALSO)


# Eight times its level for four steps: a ticket, but nobody is to get up for what is over.
def tall_and_over(seed: int, rng: random.Random) -> Recording:
    run = training(seed, shape=SHAPES[(0, 3, 8)[seed % 3]])
    at = int(run.steps * 0.8)
    run.edits = (between(at, at + 3, adding("loss", lambda step: 7 * run.curve(at))),)
    return Recording((run,), expected=(told(run, "TrainingLossSpike", TICKET, at, 100),))


# Around zero five times the level means nothing: it is the noise.
def loud_zero(seed: int, rng: random.Random) -> Recording:
    run = training(seed, shape=Shape(4000, 0.2, 1, "near-zero", 8.0), noise=curves.relative(0.7))
    if seed % 2:
        run.curve, run.noise = (lambda step: 0.02 - 0.00002 * step), curves.gaussian(0.04)
    return Recording((run,))


# A schedule that begins anew takes the loss back to where it was under that rate.
def warm_restarts(seed: int, rng: random.Random) -> Recording:
    return Recording((restarts(seed)[0],))


# But one that is many times as high as it ever was under that rate does not come back.
def lost_at_a_restart(times: float, faster: float = 1.0) -> Build:
    """`faster`: the rate is so many times that of the cycles before."""

    def build(seed: int, rng: random.Random) -> Recording:
        run, period = restarts(seed)
        at, before, rate = 2 * period, run.curve, run.rate
        run.rate = lambda step: rate(step) * (faster if step >= at else 1.0)
        run.curve = lambda step: before(step) if step < at else before(step) + 0.5 * times * min(1, (step - at) / 50)
        expected = told(run, "TrainingLossDiverging", PAGE, at, 200)
        also = (*ALSO, Allowed("TrainingLearningRateTooHigh")) if faster > 1 else ALSO
        return Recording((run,), expected=(expected,), allowed=also)

    return build


# So few steps tell little, and enough to know that this is not what they were.
def lost_at_first(times: float) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        run = training(seed, shape=Shape(40 + 20 * (seed % 2), 5.0, 1, "tuning", 8.0))
        at = 12 + 2 * (seed % 3)
        run.curve = curves.rising(run.curve, times, at)
        return _diverges(run, at, 20)

    return build


# First losses fall by half within some steps, or rise with the rate before they fall.
def first_losses(seed: int, rng: random.Random) -> Recording:
    run = training(seed, shape=Shape(40, 5.0, 1, "tuning", 8.0), noise=curves.relative((0.1, 0.25)[seed % 2]))
    run.curve = (lambda step: 2.0 + 9.0 * math.exp(-step / 6), lambda step: 1.0 + 2.0 * min(1.0, step / 15))[seed % 2]
    return Recording((run,), allowed=(Allowed("TrainingLossSpike"),) if seed % 2 else ())


def scenarios() -> Iterator[Scenario]:
    yield from family(
        "loss-diverging",
        "TrainingLossDiverging",
        (
            Row("clear", "climbs", runaway(12, 60), times=6),
            Row("clear", "jumps", runaway(9, 1), times=3),
            Row("clear", "climbs-for-long", runaway(15, 200, SLOW_RISES), times=4),
            Row("clear", "doubles", doubles, times=4),
            Row("clear", "grows-evenly", grows_evenly, times=3),
            Row("clear", "below-nothing", policy_breaks, times=2),
            Row("clear", "at-a-restart", lost_at_a_restart(12), times=3),
            Row("clear", "at-a-higher-rate", lost_at_a_restart(8, 5.0), times=3),
            Row("clear", "at-first", lost_at_first(9), times=3),
            Row("faint", "at-first-just-over", lost_at_first(6.5), times=3),
            Row("faint", "just-over", runaway(6.2, 1), times=4),
            Row("faint", "creeps-over", runaway(6.5, 300, SLOW_RISES), times=3),
            Row("faint", "climbs-for-very-long", runaway(9, 500, SLOW_RISES), times=4),
            Row("near", "three-times", higher_level, times=2),
            Row("near", "climbs-to-three-times", climbs_by_day, times=3),
            Row("near", "tall-and-over", tall_and_over, times=3),
            Row("near", "warm-restarts", warm_restarts, times=6),
            Row("near", "first-losses", first_losses, times=4),
            Row("near", "around-zero", loud_zero, times=4),
            Row("near", "earns-less", policy_earns_less, times=2),
        ),
    )
