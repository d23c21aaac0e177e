"""TrainingDataStarved: much of a run's wall time goes into waiting for the next batch."""

import math
from collections import deque
from heapq import nlargest

from trainvitals.detect.finding import Finding
from trainvitals.detect.limits import Limits
from trainvitals.detect.line import Line, finite
from trainvitals.detect.stats import Timed

# So much of the time has to be waited for, and so much of it to be spent in steps.
SECONDS, COVERED, FULL = 300.0, 0.9, 0.8
STARTING_SECONDS, PAUSE_SECONDS = 120.0, 30.0
# A single wait that is shorter makes no hundredth of the time.
LONG_SECONDS = SECONDS / 100
# What moves over five minutes need not be asked with each line.
JUDGED_EVERY = 8
# Once told, it is over when the share is clearly lower.
_EASES = 0.9
STAYS = SECONDS
_WORK = ("forward_seconds", "backward_seconds", "optimizer_seconds")


class DataStarved:
    """Over all ranks of the run."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.begin()

    def begin(self) -> None:
        """Another process, with a loader of its own, that is only being started while the first steps are made."""
        self._spent = Timed(SECONDS, 3)
        # When each rank told its last step.
        self._last: dict[int, float] = {}
        # Each rank's long waits, and when: an epoch's first batch comes once.
        self._long: dict[int, deque[tuple[float, float]]] = {}
        self._steps, self._began, self._counted = 0, math.inf, math.inf
        self._is_open = False
        self._finding: Finding | None = None

    def update(self, line: Line, rank: int) -> Finding | None:
        waited, when = line.number("data_wait_seconds"), line.when
        if line.took is None:
            return None
        self._steps += 1
        self._began = min(self._began, when)
        spent = wall(line, waited or 0.0)
        if self._counts(line, rank, spent):
            self._spent.add(when, (waited or 0.0, spent, 1.0))
            self._counted = min(self._counted, when)
            if waited is not None and waited > LONG_SECONDS:
                self._long.setdefault(rank, deque()).append((when, waited))
        self._last[rank] = when
        if waited is not None and not self._steps % JUDGED_EVERY:
            self._finding = self._judge(when) if when - self._counted >= COVERED * SECONDS else None
        return self._finding and self._finding._replace(step=line.step)

    def _counts(self, line: Line, rank: int, spent: float) -> bool:
        """After a pause, as an evaluation, a loader is often started anew: the first batch is its own matter."""
        idle = line.when - self._last.get(rank, line.when) - spent
        learning = self._limits.learning_steps * len(self._last)
        is_first = self._steps <= learning or line.when - self._began <= STARTING_SECONDS
        return not is_first and idle < PAUSE_SECONDS

    def _judge(self, now: float) -> Finding | None:
        waited, spent, steps = self._spent.sums()
        limits, ranks = self._limits, len(self._last)
        # Of slow steps there are never so many.
        is_enough = steps >= limits.data_wait_steps * ranks or spent >= FULL * SECONDS * ranks
        if not is_enough or spent < limits.data_wait_seconds * ranks:
            return None
        longest, second = self._longest(now)
        share = _share(waited, spent, longest - second)
        self._is_open = share > limits.data_wait * (_EASES if self._is_open else 1)
        if not self._is_open:
            return None
        is_page = _share(waited, spent, longest) > limits.data_wait_page
        limit = limits.data_wait_page if is_page else limits.data_wait
        return Finding("TrainingDataStarved", "page" if is_page else "ticket", f"{share:.0%} of the time is spent "
                       "waiting for data", share, limit, stays=STAYS)  # fmt: skip

    def _longest(self, now: float) -> tuple[float, float]:
        """The longest wait of each rank, and the second longest, in all."""
        longest = second = 0.0
        for long in self._long.values():
            while long and long[0][0] <= now - SECONDS:
                long.popleft()
            if long:
                first, other = nlargest(2, [LONG_SECONDS, *(waited for _, waited in long)])
                longest, second = longest + first, second + other
        return longest, second


def _share(waited: float, spent: float, once: float) -> float:
    """`once`: of the waits what comes so seldom that it says nothing of the next minutes."""
    return max(0.0, waited - once) / max(spent - once, 1e-9)


def wall(line: Line, waited: float) -> float:
    """Of the step and its wait: some count the wait into the step, which shows where phases are told."""
    took = line.took or 0.0
    values, work = line.values, 0.0
    for name in _WORK:
        if name in values:
            work += finite(values, name) or 0.0
    return max(took, waited + work) if work else took + waited
