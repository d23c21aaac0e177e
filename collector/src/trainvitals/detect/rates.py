"""The learning rates that a run had, and what its loss was under each: a rate that comes back brings another level.

rates = Rates(limits); rates.take(step, rate, loss); rates.level()
"""

import math
from collections import deque

from trainvitals.detect.limits import Limits
from trainvitals.detect.stats import median

GROWTH_STEPS, EVERY = 200, 10
LEVEL_STEPS = 32
# Rates that lie within about a fifth of each other are one.
PER_DOUBLING = 4


class Rates:
    def __init__(self, limits: Limits) -> None:
        self._growth = limits.learning_rate_growth
        self._lately: deque[tuple[float, float]] = deque(maxlen=GROWTH_STEPS // EVERY)
        self.losses: deque[float] = deque(maxlen=LEVEL_STEPS)
        # The highest that the run had longer ago, and bore.
        self.least = self.borne = self._rate = 0.0
        self._levels: dict[int, float] = {}
        self._step = self._seen = 0

    def take(self, step: int, rate: float, loss: float) -> None:
        if step < self._step:
            # Resumed from a checkpoint: rate and loss are where they were then.
            self._lately.clear()
            self.losses.clear()
        self._step, self._rate = step, rate
        self.losses.append(loss)
        if not self._lately or not self._seen % EVERY:
            self._sample(rate)
        self._seen += 1

    def level(self) -> float | None:
        """Of the loss under such a rate or a higher one, where the rate has lately come back to it, as with a warm
        restart."""
        rate = self._rate
        if not self._growth * self.least < rate <= self._growth * self.borne:
            return None
        lowest = _place(rate / self._growth)
        return max((level for at, level in self._levels.items() if at >= lowest), default=None)

    def _sample(self, rate: float) -> None:
        if len(self._lately) == self._lately.maxlen:
            before, level = self._lately[0]
            self.borne = max(self.borne, before)
            self._levels[_place(before)] = level
        self._lately.append((rate, median(self.losses)))
        self.least = min(self._lately)[0]


def _place(rate: float) -> int:
    return round(PER_DOUBLING * math.log2(max(rate, 1e-30)))
