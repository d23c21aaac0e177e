"""When the next message may go: at once after quiet, then after a while in which others gather, then seldom."""

from collections import deque

from trainvitals.notify.limits import Pace


class Gate:
    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._passed: deque[float] = deque(maxlen=pace.burst)
        self._is_busy = False

    @property
    def ready_at(self) -> float:
        """By the monotonic clock."""
        if not self._passed:
            return float("-inf")
        return self._passed[-1] + (self._pace.apart_seconds if self._is_busy else self._pace.gather_seconds)

    def passed(self, now: float) -> None:
        pace, before = self._pace, self._passed
        spent = len(before) == pace.burst
        self._is_busy = spent and now - before[0] < pace.gather_seconds + pace.burst * pace.apart_seconds
        before.append(now)
