"""TrainingStepTimeOutlier: a single slow step that no rhythm and no phase explains."""

from collections import deque

from trainvitals.detect.finding import Finding
from trainvitals.detect.limits import Limits
from trainvitals.detect.line import Line
from trainvitals.detect.stats import Window

LEARNING_STEPS, PEAK_STEPS = 100, 500
# What is done every so many steps is done at a round number, or at the one beside it, and is slow for the first time
# there. What comes more often than the slowest of the last steps reach back is known by those.
ROUND, ROUND_LATER = 25, 500
# An epoch's length is not always the same.
BESIDE, KEPT = 2, 16


class StepTimeOutlier:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._slowest = Window(PEAK_STEPS)
        # The numbers of slow steps; the first one begins an epoch too.
        self._slow = deque([1], maxlen=KEPT)
        self.begin()

    def begin(self) -> None:
        """The first steps of a process compile and fill caches."""
        self._usual = Window(LEARNING_STEPS)

    def update(self, line: Line) -> Finding | None:
        took = line.took
        if took is None or "checkpoint_seconds" in line.values or "evaluation_seconds" in line.values:
            return None
        found = self._judge(line, took) if self._usual.is_full else None
        self._usual.push(took)
        self._slowest.push(took)
        return found

    def _judge(self, line: Line, took: float) -> Finding | None:
        usual = self._usual.median()
        limit = max(self._limits.step_outlier * usual, self._limits.step_outlier_peak * self._slowest.highest())
        if took <= limit or self._is_in_rhythm(line.step):
            return None
        times = f"{took / usual:.0f} times as long as usual" if usual else "where steps usually take no time"
        what = f"step {line.step:,} took {took:.3g} s, {times}"
        return Finding("TrainingStepTimeOutlier", "info", what, took, limit, step=line.step, stays=60.0)

    def _is_in_rhythm(self, step: int) -> bool:
        """As long after a slow step as that was after another."""
        before = list(self._slow)
        self._slow.append(step)
        every = ROUND_LATER if self._slowest.is_full else ROUND
        return min(step % every, -step % every) <= 1 or any(
            abs(step - 2 * middle + first) <= BESIDE for middle in before for first in before if first < middle < step
        )
