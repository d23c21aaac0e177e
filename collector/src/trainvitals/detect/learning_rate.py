"""TrainingLearningRateTooLow, and TrainingLearningRateTooHigh: it grew, and then the loss rose."""

from trainvitals.detect.finding import Finding
from trainvitals.detect.limits import Limits
from trainvitals.detect.line import Line
from trainvitals.detect.rates import GROWTH_STEPS, LEVEL_STEPS, Rates
from trainvitals.detect.stats import median, sigma

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
        self._lowest: float | None = None
        self._grew = self._rising = self._step = 0

    def update(self, line: Line) -> Finding | None:
        rate, rates = line.learning_rate, line.rates
        if rate is None or line.loss is None or rates is None:
            return None
        if line.step < self._step:
            self._grew = 0
        self._step = line.step
        if not self._has_grown(rate, rates) or len(rates.losses) < LEVEL_STEPS:
            self._lowest, self._rising = None, 0
            return None
        return self._judge(line, rate, rates)

    def _judge(self, line: Line, rate: float, rates: Rates) -> Finding | None:
        level = median(rates.losses)
        self._lowest = lowest = level if self._lowest is None else min(self._lowest, level)
        limit = max(self._limits.learning_rate_rise * abs(lowest), 2 * sigma(rates.losses))
        # Beside nothing any rise is without measure.
        self._rising = self._rising + 1 if lowest and level - lowest > limit else 0
        if self._rising < RISING_STEPS:
            return None
        what = (f"the learning rate grew from {rates.least:.3g} to {rate:.3g}, and the loss rose from "
                f"{lowest:.4g} to {level:.4g}")  # fmt: skip
        return Finding("TrainingLearningRateTooHigh", "ticket", what, rate,
                       self._limits.learning_rate_growth * rates.least, step=line.step, stays=STAYS)  # fmt: skip

    def _has_grown(self, rate: float, rates: Rates) -> bool:
        """Within the last steps, and beyond what it was before, as warm restarts are not; it is remembered for as many
        more, for a loss takes its time."""
        if rates.least > 0 and rate > self._limits.learning_rate_growth * max(rates.least, rates.borne):
            self._grew = GROWTH_STEPS
        elif self._grew:
            self._grew -= 1
        return self._grew > 0
