"""What losses, learning rates and gradient norms look like over a run.

falling(10.8, 2.4)(1000)  ->  3.9      cosine(3e-4, steps=2000, warm=100)(2000)  ->  0.0
"""

import math
import random
from collections.abc import Callable

Curve = Callable[[int], float]
# A value around a level.
Noise = Callable[[random.Random, float], float]


def falling(start: float, floor: float, exponent: float = 0.35, knee: float = 25.0) -> Curve:
    """A power law, which losses of language models follow: it falls for as long as anybody trains."""
    return lambda step: floor + (start - floor) * ((step + knee) / knee) ** -exponent


def flat(level: float) -> Curve:
    return lambda step: level


def stops_falling(curve: Curve, at: int) -> Curve:
    return lambda step: curve(min(step, at))


def rising(curve: Curve, times: float, at: int, steps: int = 1) -> Curve:
    """As it was as far as `at`, then within so many steps so many times as high, for good."""

    def risen(step: int) -> float:
        return curve(min(step, at)) * (1 + (times - 1) * min(1.0, max(0, step - at + 1) / steps))

    return risen


def lifted(curve: Curve, at: int, by: float) -> Curve:
    """Another level from a step on, as a curriculum that changes to other data has it."""
    return lambda step: curve(step) + (by if step >= at else 0.0)


def restarting(peak: float, period: int) -> Curve:
    """A cosine that begins anew each so many steps."""
    fall = cosine(peak, period, last=peak / 1000)
    return lambda step: fall(step % period)


def gaussian(sigma: float) -> Noise:
    return lambda rng, level: level + rng.gauss(0, sigma)


def relative(share: float) -> Noise:
    """As losses near zero have it: never below it."""
    return lambda rng, level: level * rng.lognormvariate(0, share)


def heavy_tailed(scale: float) -> Noise:
    """Student's t with three degrees of freedom: now and then one value is far off."""
    return lambda rng, level: level + scale * rng.gauss(0, 1) / math.sqrt(rng.gammavariate(1.5, 2) / 3)


def rounded(noise: Noise, quantum: float) -> Noise:
    """As half precision and logs with a few digits tell it."""
    return lambda rng, level: quantum * round(noise(rng, level) / quantum)


def sparse(share: float) -> Noise:
    """A hinge's: nothing for most batches."""
    return lambda rng, level: level * abs(rng.gauss(0, 1)) if rng.random() < share else 0.0


# 1.4826 times the median deviation of Student's t with three degrees of freedom, as a Gaussian's is 1.
HEAVY_SIGMA = 1.134


def constant(peak: float, warm: int = 0) -> Curve:
    return lambda step: peak * min(1.0, step / warm) if warm else peak


def cosine(peak: float, steps: int, warm: int = 0, last: float = 0.0) -> Curve:
    def rate(step: int) -> float:
        if step < warm:
            return peak * step / warm
        passed = min(1.0, (step - warm) / max(1, steps - warm))
        return last + (peak - last) * (1 + math.cos(math.pi * passed)) / 2

    return rate


def linear(peak: float, steps: int, warm: int = 0) -> Curve:
    return lambda step: peak * min(step / warm if warm else 1.0, max(0.0, (steps - step) / max(1, steps - warm)))


def step_decay(peak: float, every: int, factor: float = 0.3) -> Curve:
    return lambda step: peak * factor ** (step // every)


def warmup_stable_decay(peak: float, steps: int, warm: int) -> Curve:
    """Constant for most of the run, linear to zero in its last fifth."""
    return lambda step: peak * min(1.0, step / max(1, warm), max(0.0, (steps - step) / (0.2 * steps)))


def settling(level: float, first: float = 3.0, share: float = 0.12) -> Callable[[random.Random, int], float]:
    """A gradient norm: high in the first steps, then around a level."""
    return lambda rng, step: level * (1 + (first - 1) * math.exp(-step / 40)) * rng.lognormvariate(0, share)
