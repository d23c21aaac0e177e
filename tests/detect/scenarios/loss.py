"""Losses that are not finite, jump, or no longer fall."""

import math
import random
from collections.abc import Iterator

from tests.detect.scenarios import curves
from tests.detect.scenarios.scenario import Build, Recording, Row, Scenario, family
from tests.detect.scenarios.shapes import (
    LONG,
    SHAPES,
    Shape,
    adding,
    between,
    noise_sigma,
    setting,
    told,
    training,
    usual,
)
from tests.detect.scenarios.training import Training
from tests.detect.scenarios.truth import ANY, INFO, PAGE, TICKET, Allowed, Expected

LAST = 10**9
STUCK = (Allowed("TrainingLossPlateau"), Allowed("TrainingLossNotDecreasing"))


# A number that is none: whatever the run computes from here on is lost, each minute of it is paid for in vain.
def lost(value: float, field: str, steps: int, ranks: int = 0) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        run = training(seed, shape=SHAPES[(0, 1, 2, 3, 6)[seed % 5]])
        at = int(run.steps * rng.uniform(0.4, 0.8))
        which = (run.ranks - 2,) if ranks and run.ranks > 2 and run.all_ranks_tell else ()
        run.edits = (between(at, at + steps, setting(field, value), which),)
        # A norm alone may be a loss scaler's for as long as it can halve its scale, which is 32 times.
        slack = 3 if field == "loss" else 64
        expected = told(run, "TrainingNonFinite", PAGE, at, slack, rank=which[0] if which else ANY)
        return Recording((run,), expected=(expected,), bare=seed == 3)

    return build


# A loss scaler tries larger scales until gradients overflow, skips that step and goes on: part of good health.
def overflows(seed: int, rng: random.Random) -> Recording:
    run = training(seed, shape=SHAPES[(0, 1, 8)[seed % 3]])

    def edit(step: int, rank: int, line: dict[str, float]) -> None:
        if "gradient_norm" in line and (step <= 12 or step % 2000 == 0):
            line["gradient_norm"] = math.inf

    run.edits = (edit,)
    return Recording((run,))


# A score that has no value before the first evaluation is not the loss.
def users_nan(seed: int, rng: random.Random) -> Recording:
    run = training(seed, shape=seed)
    run.edits = (
        between(1, run.steps // 2, lambda step, line: line.update({"val_accuracy": math.nan, "bleu": math.inf})),
    )
    return Recording((run,))


# Somebody is to look at the batch, within a working day: it jumped far out of its own noise and stayed for steps.
def spike(sigmas: float, length: int) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        run = training(seed, shape=SHAPES[LONG[seed % len(LONG)]])
        at = int(run.steps * rng.uniform(0.75, 0.9))
        return _spiked(run, at, sigmas, length)

    return build


def _spiked(run: Training, at: int, sigmas: float, length: int) -> Recording:
    middle, sigma = usual(run, at)
    height = middle - run.curve(at) + sigmas * sigma
    run.edits = (between(at, at + length - 1, adding("loss", lambda step: height)),)
    return Recording((run,), expected=(told(run, "TrainingLossSpike", TICKET, at, 100),))


def early_spike(seed: int, rng: random.Random) -> Recording:
    """In a run of 60 steps, and in the warm-up of a long one."""
    shape = (SHAPES[7], Shape(2500, 0.5, 1, "tuning", 8.0))[seed % 2]
    run = training(seed, shape=shape, rate=curves.constant(2e-5, warm=200))
    return _spiked(run, (44, 120)[seed % 2], 18, 8)


# Harder data lifts the level for good, which is told; the next jump, above the new level, is another one.
def spike_on_a_new_level(seed: int, rng: random.Random) -> Recording:
    run = training(seed, shape=SHAPES[(0, 3, 8)[seed % 3]])
    lifted, at = int(run.steps * 0.4), int(run.steps * 0.85)
    run.curve = curves.lifted(run.curve, lifted, 0.8)
    recording = _spiked(run, at, 22, 12)
    jump = told(run, "TrainingLossSpike", TICKET, lifted, 100)
    also = Allowed("TrainingLossNotDecreasing"), Allowed("TrainingLossPlateau")
    return Recording((run,), expected=(jump, *recording.expected), allowed=also)


# In the first steps of all, where only what is many times as high is known to be one.
def spike_at_first(seed: int, rng: random.Random) -> Recording:
    run = training(seed, shape=SHAPES[7])
    at = 12 + 2 * (seed % 3)
    run.edits = (between(at, at + 5, adding("loss", lambda step: 7 * run.curve(at))),)
    return Recording((run,), expected=(told(run, "TrainingLossSpike", TICKET, at, 10),))


def spike_of_a_rounded_loss(seed: int, rng: random.Random) -> Recording:
    run = training(seed, shape=SHAPES[(0, 3, 8)[seed % 3]])
    run.noise = curves.rounded(curves.gaussian(0.02), 1 / 32)
    at = int(run.steps * 0.8)
    run.edits = (between(at, at + 11, adding("loss", lambda step: 16 / 32)),)
    return Recording((run,), expected=(told(run, "TrainingLossSpike", TICKET, at, 100),))


# A step of what a number is rounded to, or some batches of many that are not nothing, are what such a loss is made of.
def coarse(seed: int, rng: random.Random) -> Recording:
    run = training(seed, shape=SHAPES[(0, 3, 8)[seed % 3]])
    if seed % 3 == 0:
        run.noise = curves.rounded(curves.gaussian(0.02), 1 / 32)
    elif seed % 3 == 1:
        run.curve, run.noise = lambda step: 0.05 * math.exp(-step / 500) + 1e-4, curves.rounded(
            curves.gaussian(5e-5), 1e-4)  # fmt: skip
    else:
        run.curve, run.noise = curves.flat(1.0), curves.sparse(0.2)
    return Recording((run,), allowed=STUCK)


# A penalty that is nothing until the policy moves.
def begins_at_nothing(seed: int, rng: random.Random) -> Recording:
    run = training(seed, shape=SHAPES[0])
    run.curve = lambda step: 1e-6 * max(0, step - 80)
    run.noise = curves.rounded(curves.relative(0.3), (1e-4, 1e-9)[seed % 2])
    return Recording((run,), allowed=STUCK)


# One bad batch, or a wobble within the noise: tomorrow nobody would find anything.
def wobble(sigmas: float, length: int) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        run = training(seed, shape=SHAPES[LONG[seed % len(LONG)]])
        at = int(run.steps * rng.uniform(0.75, 0.9))
        height = sigmas * noise_sigma(run, at)
        run.edits = (between(at, at + length - 1, adding("loss", lambda step: height)),)
        return Recording((run,))

    return build


# A curriculum that goes over to easier data: a fall, however sudden, is no spike.
def easier_data(seed: int, rng: random.Random) -> Recording:
    run = training(seed, shape=SHAPES[(0, 3, 8)[seed % 3]])
    run.curve = curves.lifted(run.curve, run.steps // 2, -0.9)
    return Recording((run,))


STEADY = Shape(9000, 1.5, 1, "language", 256.0)


# Hours at a constant rate without any fall, and most of the plan ahead: this is not going to become a model.
def stuck(share: float) -> Build:
    """From this share of the run on it does not fall any more; 0: it never did."""

    def build(seed: int, rng: random.Random) -> Recording:
        run = training(seed, shape=STEADY, rate=curves.constant(3e-4, warm=200), planned=100_000)
        at = max(1, int(run.steps * share))
        run.curve = curves.stops_falling(run.curve, at) if share else curves.flat(10.82)
        expected = Expected(
            "TrainingLossNotDecreasing", TICKET, run.at(at), run.line.last - run.at(at), run.run, step=at
        )
        return Recording((run,), expected=(expected,), allowed=STUCK)

    return build


# Slow as a power law is after thousands of steps, or flat because the schedule has come to its end.
def still_falling(seed: int, rng: random.Random) -> Recording:
    run = training(seed, shape=STEADY, rate=curves.constant(3e-4, warm=200), planned=100_000)
    if seed % 2:
        run.curve = curves.stops_falling(run.curve, 8300)
        run.rate, run.planned = curves.cosine(3e-4, run.steps, 200), run.steps
    return Recording((run,))


# Worth a look on the page: its sibling with other settings still falls at the same step, or it did itself.
def plateau(siblings: bool, share: float) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        run = training(seed, shape=STEADY, rate=curves.constant(3e-4, warm=200), planned=100_000)
        at = int(run.steps * share)
        run.curve = curves.stops_falling(run.curve, at)
        expected = Expected("TrainingLossPlateau", INFO, run.at(at), run.line.last - run.at(at), run.run, step=at)
        # The sibling is older: where it was at this step is known.
        others = (training(seed + 50, shape=STEADY, run="gemma-2", start=run.start - 86400.0),) if siblings else ()
        for other in others:
            other.rate, other.planned = run.rate, run.planned
        return Recording((run, *others), expected=(expected,), allowed=STUCK)

    return build


def both_fall(seed: int, rng: random.Random) -> Recording:
    runs = tuple(
        training(
            seed + number,
            shape=Shape(4000, 0.5, 1, "language", 64.0),
            run=f"gemma-{number}",
            start=1772438400.0 + 7200 * number,
        )
        for number in (1, 2)
    )
    return Recording(runs)


def scenarios() -> Iterator[Scenario]:
    nan, inf = math.nan, math.inf
    yield from family(
        "nonfinite",
        "TrainingNonFinite",
        (
            Row("clear", "loss-nan", lost(nan, "loss", LAST), times=5),
            Row("clear", "loss-inf", lost(-inf, "loss", LAST), times=2),
            Row("clear", "one-rank", lost(nan, "loss", LAST, ranks=1), times=3),
            Row("faint", "one-step", lost(nan, "loss", 0), times=3),
            Row("faint", "norm-stays-infinite", lost(inf, "gradient_norm", LAST), times=2),
            Row("near", "scaler-overflows", overflows, times=4),
            Row("near", "metric-of-the-users", users_nan, times=3),
        ),
    )
    yield from family(
        "loss-spike",
        "TrainingLossSpike",
        (
            Row("clear", "tall", spike(22, 12), times=6),
            Row("clear", "early", early_spike, times=4),
            Row("clear", "on-a-new-level", spike_on_a_new_level, times=3),
            Row("faint", "just-over", spike(9, 5), times=6),
            Row("near", "one-step", wobble(14, 1), times=4),
            Row("near", "two-steps", wobble(12, 2), times=2),
            Row("near", "within-noise", wobble(3.5, 12), times=5),
            Row("clear", "at-first", spike_at_first, times=3),
            Row("clear", "rounded", spike_of_a_rounded_loss, times=3),
            Row("near", "coarse", coarse, times=6),
            Row("near", "begins-at-nothing", begins_at_nothing, times=2),
            Row("near", "easier-data", easier_data, times=3),
        ),
    )
    yield from family(
        "loss-trend",
        "TrainingLossNotDecreasing",
        (
            Row("clear", "never-fell", stuck(0.0), times=4),
            Row("faint", "fell-at-first", stuck(0.3), times=4),
            Row("near", "slow-or-at-the-end", still_falling, times=4),
        ),
    )
    yield from family(
        "loss-trend",
        "TrainingLossPlateau",
        (
            Row("clear", "sibling-falls", plateau(True, 0.25), times=3),
            Row("faint", "own-past", plateau(False, 0.4), times=3),
            Row("near", "both-fall", both_fall, times=3),
        ),
    )
