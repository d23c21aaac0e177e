"""The little statistics that detectors need, each cheap enough for every step of every run.

window = Window(1000); window.push(2.31); window.median(); window.sigma()
"""

import math
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable, Sequence

# Quartiles of a normal distribution lie so many sigmas apart.
_QUARTILES = 1.349
# How much less exact a median is than a mean.
MEDIAN_ERROR = 1.25
# Fewer say nothing.
EARLY_STEPS = 10


class Window:
    """The last `size` values, in order of arrival and sorted: quantiles are looked up, not worked out."""

    __slots__ = ("_arrived", "_sorted", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self._arrived: deque[float] = deque(maxlen=size)
        self._sorted: list[float] = []

    def __len__(self) -> int:
        return len(self._sorted)

    @property
    def is_full(self) -> bool:
        return len(self._sorted) == self.size

    def push(self, value: float) -> None:
        arrived, ordered = self._arrived, self._sorted
        if len(ordered) == self.size:
            del ordered[bisect_left(ordered, arrived[0])]
        arrived.append(value)
        insort(ordered, value)

    def highest(self) -> float:
        """Of an empty window there is none: the caller looks at its length."""
        return self._sorted[-1]

    def lowest(self) -> float:
        return self._sorted[0]

    def median(self) -> float:
        return self._sorted[len(self._sorted) >> 1]

    def sigma(self) -> float:
        """Robust: a quarter of the values may be anything."""
        count = len(self._sorted)
        return (self._sorted[3 * count >> 2] - self._sorted[count >> 2]) / _QUARTILES

    def spread(self) -> float:
        """A sigma that is true too where many values are the same, as of what is rounded, or mostly nothing."""
        ordered, middle, count = self._sorted, self.median(), len(self._sorted)
        known = self.sigma()
        if ordered[count >> 2] < middle < ordered[3 * count >> 2]:
            return known
        below, above = bisect_left(ordered, middle) - 1, bisect_right(ordered, middle)
        quanta = [abs(ordered[at] - middle) for at in (below, above) if 0 <= at < count]
        return max(known, math.dist(ordered, [middle] * count) / math.sqrt(count), min(quanta, default=0.0))

    def copy(self, size: int) -> "Window":
        other = Window(size)
        for value in self._arrived:
            other.push(value)
        return other

    def values(self) -> list[float]:
        """The oldest first."""
        return list(self._arrived)


class Timed:
    """Sums over the last `seconds`, kept by slots, so that memory does not grow with the number of steps."""

    __slots__ = ("_kept", "_now", "_number", "_past", "_seconds")

    def __init__(self, seconds: float, width: int, slots: int = 30) -> None:
        self._seconds = seconds / slots
        self._kept: deque[tuple[int, list[float]]] = deque(maxlen=slots)
        self._past, self._now, self._number = [0.0] * width, [0.0] * width, 0

    def add(self, when: float, values: Sequence[float]) -> None:
        number = int(when // self._seconds)
        if number > self._number:
            self._turn(number)
        now = self._now
        for at, value in enumerate(values):
            now[at] += value

    def _turn(self, number: int) -> None:
        slots = self._kept.maxlen or 0
        self._kept.append((self._number, self._now))
        self._past = [math.fsum(slot[at] for old, slot in self._kept if number - old < slots)
                      for at in range(len(self._now))]  # fmt: skip
        self._now, self._number = [0.0] * len(self._now), number

    def sums(self) -> list[float]:
        return [before + now for before, now in zip(self._past, self._now, strict=True)]


def early_limit(past: Window, times: float) -> float:
    """Where little is known yet, what is so many times as high as all of that, which has to be of one level."""
    is_level = len(past) >= EARLY_STEPS and 0 < past.highest() <= times * past.lowest()
    return times * past.median() if is_level else math.inf


def median(values: Iterable[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) >> 1]


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def sigma(values: Sequence[float]) -> float:
    """Robust, as a window's."""
    ordered = sorted(values)
    return (ordered[3 * len(ordered) >> 2] - ordered[len(ordered) >> 2]) / _QUARTILES


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Theil and Sen's: the median of the slopes between all pairs; outliers do not bend it."""
    found = [(y2 - y1) / (x2 - x1) for at, (x1, y1) in enumerate(points) for x2, y2 in points[at + 1 :] if x2 > x1]
    return median(found) if found else 0.0
