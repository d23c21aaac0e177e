"""TrainingLearningRateTooLow, and TrainingLearningRateTooHigh: it grew, and then the loss rose."""

from collections import deque

from trainvitals.detect.finding import Finding
from trainvitals.detect.limits import Limits
from trainvitals.detect.line import Line
from trainvitals.detect.stats import median, sigma

GROWTH_STEPS, EVERY = 200, 10
LEVEL_STEPS = 32
RISING_STEPS = 10
STAYS = 300.0


class LearningRateTooLow:
    """A schedule that ends at nothing is there for a few steps; one that was made for another number of steps stays."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._low, self._seen = limits, 0, 0

    def update(self, line: Line) -> Finding | None:
        rate = line.learning_rate
        if rate is None:
            return None
        limits = self._limits
        self._seen += 1
        self._low = self._low + 1 if rate < limits.learning_rate_low and not line.at_end else 0
        if self._low < max(limits.learning_rate_low_steps, limits.learning_rate_low_share * self._seen):
            return None
        what = f"the learning rate is {rate:.3g} for {self._low} steps although the schedule is not at its end"
        return Finding("TrainingLearningRateTooLow", "ticket", what, rate, limits.learning_rate_low, step=line.step,
                       stays=STAYS)  # fmt: skip


class LearningRateTooHigh:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._rates: deque[float] = deque(maxlen=GROWTH_STEPS // EVERY)
        self._losses: deque[float] = deque(maxlen=LEVEL_STEPS)
        self._lowest: float | None = None
        # The highest that the run had longer ago, and bore.
        self._least_rate = self._borne = 0.0
        self._grew = self._rising = self._step = self._seen = 0

    def update(self, line: Line) -> Finding | None:
        rate, loss = line.learning_rate, line.loss
        if rate is None or loss is None:
            return None
        if line.step < self._step:
            # Resumed from a checkpoint: rate and loss are where they were then.
            self._rates.clear()
            self._losses.clear()
            self._grew = 0
        self._step = line.step
        if not self._rates or not self._seen % EVERY:
            if len(self._rates) == self._rates.maxlen:
                self._borne = max(self._borne, self._rates[0])
            self._rates.append(rate)
            self._least_rate = min(self._rates)
        self._seen += 1
        has_grown = self._has_grown(rate)
        if has_grown and self._lowest is None and self._losses:
            self._lowest = median(self._losses)
        self._losses.append(loss)
        if not has_grown or len(self._losses) < LEVEL_STEPS:
            self._lowest, self._rising = None, 0
            return None
        return self._judge(line, rate)

    def _judge(self, line: Line, rate: float) -> Finding | None:
        level = median(self._losses)
        self._lowest = lowest = level if self._lowest is None else min(self._lowest, level)
        limit = max(self._limits.learning_rate_rise * abs(lowest), 2 * sigma(self._losses))
        self._rising = self._rising + 1 if level - lowest > limit else 0
        if self._rising < RISING_STEPS:
            return None
        what = (f"the learning rate grew from {self._least_rate:.3g} to {rate:.3g}, and the loss rose from "
                f"{lowest:.4g} to {level:.4g}")  # fmt: skip
        return Finding("TrainingLearningRateTooHigh", "ticket", what, rate,
                       self._limits.learning_rate_growth * self._least_rate, step=line.step, stays=STAYS)  # fmt: skip

    def _has_grown(self, rate: float) -> bool:
        """Within the last steps, and beyond what it was before, as warm restarts are not; it is remembered for as many
        more, for a loss takes its time."""
        if self._least_rate > 0 and rate > self._limits.learning_rate_growth * max(self._least_rate, self._borne):
            self._grew = GROWTH_STEPS
        elif self._grew:
            self._grew -= 1
        return self._grew > 0
