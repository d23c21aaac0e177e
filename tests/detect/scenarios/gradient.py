"""Gradient norms that explode, are high, or vanish; learning rates that are too low or too high."""

import random
from collections.abc import Iterator
from typing import Any

from tests.detect.scenarios import curves
from tests.detect.scenarios.curves import settling
from tests.detect.scenarios.scenario import Build, Recording, Row, Scenario, family
from tests.detect.scenarios.shapes import LONG, SHAPES, Shape, between, setting, told, training
from tests.detect.scenarios.truth import PAGE, TICKET, Allowed

LAST = 10**9
HIGH = (Allowed("TrainingGradientNormHigh"),)
PLAIN = Shape(2500, 0.6, 1, "language", 64.0)


def _norms(first: int, last: int, value: float, share: float = 0.08) -> Any:
    def edit(step: int, rank: int, line: dict[str, Any]) -> None:
        if first <= step <= last and "gradient_norm" in line:
            line["gradient_norm"] = value * random.Random(f"{step}/{rank}").lognormvariate(0, share)

    return edit


# Well above ten, many times its usual height, for steps on end: the weights are being thrown about.
def explosion(median: float, times: float, length: int, ramp: bool = False) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        run = training(seed, shape=SHAPES[(0, 1, 2, 3, 5)[seed % 5]], norm=settling(median, first=2.0))
        at = int(run.steps * rng.uniform(0.5, 0.8))
        run.edits = (_norms(at, at + length, median * times),)
        if ramp:
            run.edits = (_norms(at, at + 5, median * times / 2), _norms(at + 6, at + length, median * times))
        return Recording((run,), expected=(told(run, "TrainingGradientExplosion", PAGE, at, 40),), allowed=HIGH)

    return build


# Below ten it is clipped and forgotten, however far from its median.
def below_ten(seed: int, rng: random.Random) -> Recording:
    run = training(seed, shape=SHAPES[LONG[seed % len(LONG)]], norm=settling(1.2, first=2.0))
    at = int(run.steps * 0.6)
    run.edits = (_norms(at, at + 25, 7.8, share=0.06),)
    return Recording((run,))


# Over ten is what was asked to be told of; for a run that has always been there it is not an explosion.
def high(median: float, value: float, share: float = 0.05) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        run = training(seed, shape=SHAPES[(0, 1, 3, 2)[seed % 4]], norm=settling(median, first=1.0, share=share))
        at = int(run.steps * 0.5)
        run.edits = (_norms(at, LAST, value, share=0.03),)
        return Recording((run,), expected=(told(run, "TrainingGradientNormHigh", TICKET, at, 120, seconds=300),))

    return build


def always_high(seed: int, rng: random.Random) -> Recording:
    run = training(seed, shape=SHAPES[(3, 0)[seed % 2]], norm=settling(26.0, first=1.0, share=0.1))
    return Recording((run,), expected=(told(run, "TrainingGradientNormHigh", TICKET, 1, 200, seconds=300),))


def nearly_ten(seed: int, rng: random.Random) -> Recording:
    run = training(seed, shape=seed, norm=settling(8.6, first=1.0, share=0.02))
    return Recording((run,))


# Nothing reaches the weights any more, in all or in watched layers: hours of a model that does not learn.
def vanished(value: float) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        run = training(seed, shape=SHAPES[(0, 1, 2, 3)[seed % 4]])
        at = int(run.steps * rng.uniform(0.3, 0.6))
        run.edits = (_norms(at, LAST, value),)
        return Recording(
            (run,),
            expected=(told(run, "TrainingGradientVanishing", TICKET, at, 120, seconds=300),),
            allowed=(Allowed("TrainingLossPlateau"),),
        )

    return build


def vanished_layers(seed: int, rng: random.Random) -> Recording:
    """As `run.watch` tells of layers, each tenth step."""
    run = training(seed, shape=PLAIN)
    at = 1210

    def edit(step: int, rank: int, line: dict[str, Any]) -> None:
        if step % 10 == 0:
            line |= {"vanishing_layers": 6.0 if step >= at else 0.0, "exploding_layers": 0.0, "update_ratio": 1e-3}

    run.edits = (edit,)
    names = [f"encoder.layers.{number}" for number in range(6)]
    run.events = ((at, {"event": "gradients", "vanishing": names, "exploding": []}),)
    return Recording((run,), expected=(told(run, "TrainingGradientVanishing", TICKET, at, 200, seconds=300),))


# Small but alive; or a single step without a gradient, as one that was skipped.
def small_or_single(seed: int, rng: random.Random) -> Recording:
    run = training(seed, shape=PLAIN, norm=settling(6e-7, first=2.0))
    if seed % 2:
        run = training(seed, shape=SHAPES[LONG[seed % len(LONG)]])
        run.edits = tuple(between(at, at, setting("gradient_norm", 0.0)) for at in (run.steps // 3, run.steps // 2))
    return Recording((run,))


# Far from the end of any schedule, and nothing moves: the rest of the money buys nothing.
def low_rate(value: float, share: float) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        run = training(seed, shape=(PLAIN, SHAPES[2], SHAPES[1])[seed % 3], rate=curves.constant(3e-4, warm=50))
        at, before = max(1, int(run.steps * share)), run.rate
        run.planned = run.steps * 5
        run.rate = lambda step: before(step) if step < at else value
        also = (Allowed("TrainingLossPlateau"), Allowed("TrainingLossNotDecreasing"))
        return Recording(
            (run,), expected=(told(run, "TrainingLearningRateTooLow", TICKET, at, 300, seconds=900),), allowed=also
        )

    return build


# A schedule that ends in zero, told of or not, and a warm-up that begins there.
def ends_in_zero(seed: int, rng: random.Random) -> Recording:
    run = training(seed, shape=SHAPES[(0, 1, 2, 3, 7, 8)[seed % 6]])
    schedules = (
        curves.cosine(3e-4, run.steps, 40),
        curves.linear(2e-5, run.steps),
        curves.warmup_stable_decay(3e-4, run.steps, 40),
    )
    run.rate = schedules[seed % 3]
    run.planned = run.steps if seed % 2 else None
    return Recording((run,))


def long_warm_up(seed: int, rng: random.Random) -> Recording:
    """Its first steps lie under 1e-8, as 2e-6 over 2,000 steps do."""
    run = training(seed, shape=PLAIN, rate=curves.constant(2e-6, warm=2000))
    return Recording((run,))


# The rate was raised and the loss went up with it: one setting is the cause, and a person can mend it.
def high_rate(times: float, climb: float, ramp: int) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        run = training(seed, shape=(PLAIN, SHAPES[0], SHAPES[3])[seed % 3])
        at, before = int(run.steps * 0.5), run.curve
        run.rate = lambda step: 1e-4 * (1 + (times - 1) * min(1.0, max(0, step - at) / ramp))
        run.curve = curves.rising(before, 1 + climb, at + ramp // 2, ramp)
        expected = told(run, "TrainingLearningRateTooHigh", TICKET, at, 4 * ramp + 300)
        also = (Allowed("TrainingLossSpike"), Allowed("TrainingLossNotDecreasing"), Allowed("TrainingLossPlateau"))
        return Recording((run,), expected=(expected,), allowed=also)

    return build


# A warm-up under which the loss falls, or a loss that rises (other data) while the rate has long been falling.
def rate_is_not_why(seed: int, rng: random.Random) -> Recording:
    run = training(seed, shape=PLAIN, rate=curves.constant(6e-4, warm=800))
    if seed % 2:
        run.rate = curves.cosine(3e-4, run.steps, 50)
        run.curve = curves.lifted(run.curve, 1500, 0.35)
        return Recording((run,), allowed=(Allowed("TrainingLossSpike"), Allowed("TrainingLossPlateau")))
    return Recording((run,))


def scenarios() -> Iterator[Scenario]:
    yield from family(
        "gradient-explosion",
        "TrainingGradientExplosion",
        (
            Row("clear", "far-out", explosion(1.0, 200, 60), times=5),
            Row("clear", "in-two-jumps", explosion(1.4, 60, 80, True), times=2),
            Row("faint", "just-over", explosion(2.2, 6.4, 40), times=5),
            Row("near", "below-ten", below_ten, times=4),
            Row("near", "three-times", high(9.0, 29.0, 0.02), times=2),
        ),
    )
    yield from family(
        "gradient-size",
        "TrainingGradientNormHigh",
        (
            Row("clear", "rises", high(7.5, 28.0), times=4),
            Row("clear", "always", always_high, times=2),
            Row("faint", "just-over", high(7.0, 11.5), times=4),
            Row("near", "nearly-ten", nearly_ten, times=4),
        ),
    )
    yield from family(
        "gradient-size",
        "TrainingGradientVanishing",
        (
            Row("clear", "in-all", vanished(2e-10), times=4),
            Row("clear", "in-layers", vanished_layers, times=2),
            Row("faint", "just-under", vanished(4e-8), times=4),
            Row("near", "small-or-single", small_or_single, times=4),
        ),
    )
    yield from family(
        "learning-rate",
        "TrainingLearningRateTooLow",
        (
            Row("clear", "from-the-start", low_rate(2e-9, 0.0), times=3),
            Row("clear", "midway", low_rate(0.0, 0.4), times=3),
            Row("faint", "just-under", low_rate(7e-9, 0.5), times=3),
            Row("near", "schedule-ends", ends_in_zero, times=6),
            Row("near", "warm-up", long_warm_up, times=2),
        ),
    )
    yield from family(
        "learning-rate",
        "TrainingLearningRateTooHigh",
        (
            Row("clear", "doubles-the-loss", high_rate(10, 1.1, 60), times=3),
            Row("faint", "a-third-more", high_rate(3, 0.35, 100), times=3),
            Row("near", "not-why", rate_is_not_why, times=4),
        ),
    )
