"""TrainingCheckpointOverdue: the next checkpoint is later than twice the usual interval."""

from collections import deque

from trainvitals.detect.finding import Finding
from trainvitals.detect.limits import Limits
from trainvitals.detect.stalled import minutes
from trainvitals.detect.stats import median

KEPT, LEAST = 10, 2
# Where it is saved now and then, as with each best loss, the longest time counts.
LONGEST = 0.85
# Some are written twice: as they begin and as they end.
ONE_SECONDS = 1.0


class CheckpointOverdue:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._last: float | None = None
        self._intervals: deque[float] = deque(maxlen=KEPT)

    def begin(self) -> None:
        """The time between two lives is no interval."""
        self._last = None

    def take(self, when: float) -> None:
        if self._last is not None and when - self._last > ONE_SECONDS:
            self._intervals.append(when - self._last)
        self._last = when

    def update(self, now: float) -> Finding | None:
        if self._last is None or len(self._intervals) < LEAST:
            return None
        usual, age = median(self._intervals), now - self._last
        limit = self._limits.checkpoint_overdue * max(usual, LONGEST * max(self._intervals))
        if age <= limit:
            return None
        what = f"the last checkpoint is {minutes(age)} old; one is usually saved every {minutes(usual)}"
        return Finding("TrainingCheckpointOverdue", "ticket", what, age, limit)
