"""TrainingLossNotDecreasing and TrainingLossPlateau: where the loss has been going for long.

Losses are kept as means of blocks of steps, which grow with the run: half a million steps are as cheap as a thousand.
"""

import math
from collections.abc import Sequence

from trainvitals.detect.finding import Finding
from trainvitals.detect.limits import Limits
from trainvitals.detect.line import Line
from trainvitals.detect.stats import MEDIAN_ERROR, mean, median, sigma

BLOCK_STEPS, MAX_BLOCKS = 25, 512
HOLDS = 0.1
# So many blocks above all of the ones before, by so many sigmas of theirs, are another level.
NEW_BLOCKS, BEFORE_BLOCKS, NEW_SIGMAS = 2, 8, 6.0
STAYS = 300.0


class Blocks:
    """Means of as many steps each; when there are `most`, an even number, two become one."""

    def __init__(self, size: int = BLOCK_STEPS, most: int = MAX_BLOCKS) -> None:
        self.means: list[float] = []
        self.size, self._most = size, most
        self._sum, self._count = 0.0, 0

    @property
    def steps(self) -> int:
        return len(self.means) * self.size

    def add(self, value: float) -> bool:
        """Whether a block is full."""
        self._sum += value
        self._count += 1
        if self._count < self.size:
            return False
        self.means.append(self._sum / self._count)
        self._sum, self._count = 0.0, 0
        if len(self.means) == self._most:
            self.means = [(a + b) / 2 for a, b in zip(self.means[::2], self.means[1::2], strict=True)]
            self.size *= 2
        return True


class LossTrend:
    """The last window in quarters: neither its second half is below its first, nor its last quarter below the third."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._blocks = limits, Blocks()
        self._level_for, self._is_open, self._step = 0, False, 0
        self._peak_rate, self._least_rate = 0.0, math.inf
        self._finding: Finding | None = None

    def update(self, line: Line) -> Finding | None:
        loss, rate = line.loss, line.learning_rate
        if line.step < self._step:
            # Resumed from a checkpoint: some steps are done again.
            self._blocks, self._level_for, self._is_open, self._finding = Blocks(), 0, False, None
        if rate is not None:
            self._take(rate)
        self._step = line.step
        if loss is not None and self._blocks.add(loss):
            is_over = line.at_end or (rate is not None and rate < self._limits.schedule_end_rate * self._peak_rate)
            self._begin_after_jump()
            self._finding = None if is_over else self._look(line)
        return self._finding and self._finding._replace(step=line.step)

    def _take(self, rate: float) -> None:
        """A loss under a higher rate is another one: a warm restart's may be above that of before."""
        self._peak_rate = max(self._peak_rate, rate)
        if rate > self._limits.learning_rate_growth * self._least_rate and not self._is_open:
            self._blocks, self._level_for, self._least_rate = Blocks(), 0, rate
        self._least_rate = min(self._least_rate, rate)

    def _begin_after_jump(self) -> None:
        """Other data have another level, from which the loss may fall as it did before. What does not fall already is
        not made better by a jump."""
        means = self._blocks.means
        before, now = means[-NEW_BLOCKS - BEFORE_BLOCKS : -NEW_BLOCKS], means[-NEW_BLOCKS:]
        if self._is_open or len(before) < BEFORE_BLOCKS:
            return
        least = max(sigma(before), self._limits.loss_least_sigma * abs(median(before)))
        if min(now) > max(before) + NEW_SIGMAS * least:
            self._blocks.means, self._level_for = now, 0

    def _look(self, line: Line) -> Finding | None:
        blocks, limits = self._blocks, self._limits
        wanted = max(limits.window_steps, limits.loss_window * blocks.steps)
        quarter = max(2, round(wanted / blocks.size / 4))
        means = blocks.means
        if len(means) < 4 * quarter:
            return None
        parts = [means[len(means) - (4 - at) * quarter : len(means) - (3 - at) * quarter] for at in range(4)]
        first, second = parts[0] + parts[1], parts[2] + parts[3]
        self._level_for = self._level_for + 1 if self._is_level(first, second, parts) else 0
        self._is_open = self._level_for >= max(4, round(HOLDS * 4 * quarter))
        if self._is_open:
            return self._not_decreasing(mean(first), mean(second), 4 * quarter * blocks.size)
        return self._plateau(means[-8 * quarter : -4 * quarter], first, second)

    def _is_level(self, first: Sequence[float], second: Sequence[float], quarters: Sequence[Sequence[float]]) -> bool:
        """What was called level falls again when that is clear: by chance a half is lower now and then."""
        if self._is_open:
            return _is_no_lower(second, first, self._limits.loss_fall_errors)
        errors = self._limits.loss_level_errors
        return _is_no_lower(second, first, errors) and _is_no_lower(quarters[3], quarters[2], errors)

    def _not_decreasing(self, before: float, now: float, steps: int) -> Finding:
        what = f"the loss does not fall: {now:.4g} on average, {before:.4g} before, over the last {steps:,} steps"
        return Finding("TrainingLossNotDecreasing", "ticket", what, now, before, stays=STAYS)

    def _plateau(self, past: Sequence[float], first: Sequence[float], second: Sequence[float]) -> Finding | None:
        """It fell until lately."""
        half = len(past) // 2
        if half < len(first):
            return None
        fell = mean(past[:half]) - mean(past[half:])
        falls = mean(first) - mean(second)
        is_fall = fell > max(self._limits.plateau_fall_errors * _error(past[:half], past[half:]),
                             self._limits.plateau_fall * abs(mean(past)))  # fmt: skip
        if not is_fall or abs(falls) > _error(first, second):
            return None
        what = f"the loss is level at {mean(second):.4g}: it fell by {fell:.3g} in as many steps before"
        return Finding("TrainingLossPlateau", "info", what, mean(second), mean(first), stays=STAYS)


def _is_no_lower(later: Sequence[float], before: Sequence[float], errors: float) -> bool:
    """By medians: a tall spike that is over is neither a level nor a fall."""
    return median(later) >= median(before) - errors * _error(later, before)


def _error(one: Sequence[float], other: Sequence[float]) -> float:
    """Of the difference of two levels."""
    return MEDIAN_ERROR * math.sqrt(sigma(one) ** 2 / len(one) + sigma(other) ** 2 / len(other))
