"""What lasts: a condition that holds for some seconds, a counter that rises too fast, memory that grows without end."""

import math
from collections import deque
from itertools import pairwise

from trainvitals.detect.stats import slope

MINUTE = 60.0
# So long without a reading, and so many times as long as between the two before it.
PAUSE_SECONDS, PAUSE_GAPS = 300.0, 3.0
FALL, ABOVE = 0.95, 1.02


class Held:
    """A condition that has held for `seconds` without a break. Of what nobody told for long nobody knows: that is one,
    but where readings come that seldom."""

    __slots__ = ("_gap", "_last", "_seconds", "_since")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: float | None = None
        self._last: float | None = None
        self._gap = 0.0

    def update(self, when: float, holds: bool) -> bool:
        gap = 0.0 if self._last is None else when - self._last
        if not holds:
            self._since = None
        elif self._since is None or gap > max(PAUSE_SECONDS, PAUSE_GAPS * self._gap):
            self._since = when
        self._last, self._gap = when, gap
        return self._since is not None and when - self._since >= self._seconds


class Smooth:
    """A mean of the last `seconds` or so, the latest counting most."""

    __slots__ = ("_at", "_seconds", "value")

    def __init__(self, seconds: float) -> None:
        self._seconds, self._at, self.value = seconds, 0.0, 0.0

    def update(self, when: float, value: float) -> float:
        passed, self._at = when - self._at, when
        # After a while without a word nothing of what was is worth keeping.
        share = 1.0 if passed > 10 * self._seconds else 1 - math.exp(-max(0.0, passed) / self._seconds)
        self.value += share * (value - self.value)
        return self.value


class Rise:
    """How much a counter rose within the last `seconds`; one that begins anew begins at nothing."""

    __slots__ = ("_points", "_seconds", "_slot")

    def __init__(self, seconds: float, slots: int = 60) -> None:
        self._seconds, self._slot = seconds, seconds / slots
        self._points: deque[tuple[float, float]] = deque()

    def update(self, when: float, value: float) -> float:
        points = self._points
        if points and value < points[-1][1]:
            points.clear()
        if not points or when - points[-1][0] >= self._slot:
            points.append((when, value))
        while len(points) > 1 and points[1][0] <= when - self._seconds:
            points.popleft()
        return value - points[0][1]

    @property
    def lasting(self) -> float:
        """Seconds from the first rise within them to the last: nothing for a single burst."""
        risen = [when for (_, before), (when, value) in pairwise(self._points) if value > before]
        return risen[-1] - risen[0] if risen else 0.0

    @property
    def covered(self) -> float:
        return self._points[-1][0] - self._points[0][0] if self._points else 0.0


class Growth:
    """Bytes in use by the minute: whether they grow quarter by quarter, and how many a second."""

    def __init__(self, minutes: int) -> None:
        self._minutes: deque[tuple[float, float, float]] = deque(maxlen=minutes)
        self._at: float | None = None
        self._low = self._high = 0.0
        # How high it was before it fell by itself.
        self._peak = self._crest = 0.0
        self.per_second = 0.0

    def update(self, when: float, value: float) -> None:
        minute = when // MINUTE
        if minute == self._at:
            self._low, self._high = min(self._low, value), max(self._high, value)
            return
        if self._at is not None:
            self._minutes.append((self._at * MINUTE, self._low, self._high))
            self._note_fall()
            self.per_second = self._judge() if self._high > ABOVE * self._peak else 0.0
        self._at, self._low, self._high = minute, value, value

    def _note_fall(self) -> None:
        """What grows to where it was before it fell is no leak."""
        self._crest = max(self._crest, self._high)
        if self._high < FALL * self._crest:
            self._peak, self._crest = max(self._peak, self._crest), self._high

    def _judge(self) -> float:
        """0 where it does not grow: each quarter lies above the one before, peaks and lows alike."""
        minutes = list(self._minutes)
        quarter = (self._minutes.maxlen or 0) // 4
        if len(minutes) < 4 * quarter:
            return 0.0
        parts = [minutes[at * quarter : (at + 1) * quarter] for at in range(4)]
        lows = [min(low for _, low, _ in part) for part in parts]
        highs = [max(high for _, _, high in part) for part in parts]
        if not all(later > before for line in (lows, highs) for before, later in pairwise(line)):
            return 0.0
        return max(0.0, slope([(when, high) for when, _, high in minutes[:: max(1, len(minutes) // 30)]]))
