"""What is said of the last N values, or of those of the last seconds, at the cost of one value.

window = WINDOWS["mean"](Span(steps=3))
for value in (1.0, 2.0, 3.0): window.push(step, value)
window.value()  ->  2.0      None until N values are there, or the seconds have passed
"""

import math
from bisect import bisect_left, insort
from collections import deque

from trainvitals.detect.rules.spans import Span

# Of a stretch of time no more values are held: what comes faster is passed over.
MOST_HELD = 600


class Window:
    """`x` is the step where steps are counted, else the time in seconds."""

    def __init__(self, span: Span) -> None:
        self._steps, self._seconds = span.steps, span.seconds
        self._least_gap = span.seconds / MOST_HELD
        self._count = 0
        self._began = self._last = -math.inf
        self._held: deque[tuple[float, float]] = deque()

    def push(self, x: float, value: float) -> None:
        if x < self._last or (self._seconds and x - self._last > self._seconds):
            self._start_anew(x)
        elif self._seconds and x - self._kept_at() < self._least_gap and not self._counts(value):
            self._last = x
            self._leave(x)
            return
        self._last = x
        self._count += 1
        self._add(x, value)
        self._leave(x)

    def value(self) -> float | None:
        is_full = self._last - self._began >= self._seconds if self._seconds else self._count >= self._steps
        return self._value() if is_full and self._held else None

    def _start_anew(self, x: float) -> None:
        """After a gap, or where a run is resumed from an earlier step."""
        self._began, self._count = x, 0
        self._held.clear()
        self._clear()

    def _kept_at(self) -> float:
        return self._held[-1][0] if self._held else -math.inf

    def _leave(self, x: float) -> None:
        if self._seconds:
            while self._held and x - self._held[0][0] > self._seconds:
                self._remove(*self._held.popleft())
        elif len(self._held) > self._steps:
            self._remove(*self._held.popleft())

    def _counts(self, value: float) -> bool:
        """Although it comes so soon after the one before."""
        return False

    def _add(self, x: float, value: float) -> None:
        self._held.append((x, value))

    def _remove(self, x: float, value: float) -> None:
        pass

    def _clear(self) -> None:
        pass

    def _value(self) -> float:
        raise NotImplementedError


class Mean(Window):
    _sum = 0.0
    _until_exact = 0

    def _add(self, x: float, value: float) -> None:
        super()._add(x, value)
        self._sum += value
        self._until_exact -= 1
        if self._until_exact < 0:  # a sum that is only added to and taken from drifts
            self._until_exact = len(self._held)
            self._sum = sum(held for _, held in self._held)

    def _remove(self, x: float, value: float) -> None:
        self._sum -= value

    def _clear(self) -> None:
        self._sum, self._until_exact = 0.0, 0

    def _value(self) -> float:
        return self._sum / len(self._held)


class Median(Window):
    def __init__(self, span: Span) -> None:
        super().__init__(span)
        self._sorted: list[float] = []

    def _add(self, x: float, value: float) -> None:
        super()._add(x, value)
        insort(self._sorted, value)

    def _remove(self, x: float, value: float) -> None:
        del self._sorted[bisect_left(self._sorted, value)]

    def _clear(self) -> None:
        self._sorted.clear()

    def _value(self) -> float:
        middle = len(self._sorted) >> 1
        if len(self._sorted) & 1:
            return self._sorted[middle]
        return self._sorted[middle - 1] / 2 + self._sorted[middle] / 2


class Least(Window):
    """Holds what may still become the least: what is followed by less never will."""

    _sign = 1.0

    def _counts(self, value: float) -> bool:
        return not self._held or value * self._sign < self._held[-1][1]

    def _add(self, x: float, value: float) -> None:
        value *= self._sign
        while self._held and self._held[-1][1] >= value:
            self._held.pop()
        self._held.append((x if self._seconds else self._count, value))

    def _leave(self, x: float) -> None:
        if self._seconds:
            super()._leave(x)
            return
        while self._held[0][0] <= self._count - self._steps:
            self._held.popleft()

    def _value(self) -> float:
        return self._held[0][1] * self._sign


class Most(Least):
    _sign = -1.0


class Slope(Window):
    """Of the straight line with the least squares, per step or per second."""

    _until_exact = 0
    _origin = _x = _y = _xx = _xy = 0.0

    def _add(self, x: float, value: float) -> None:
        super()._add(x, value)
        self._until_exact -= 1
        if self._until_exact < 0:
            self._until_exact = len(self._held)
            self._sum_up()
        else:
            self._count_in(x, value, 1.0)

    def _remove(self, x: float, value: float) -> None:
        self._count_in(x, value, -1.0)

    def _clear(self) -> None:
        self._until_exact = 0

    def _sum_up(self) -> None:
        self._origin, self._x, self._y, self._xx, self._xy = self._held[0][0], 0.0, 0.0, 0.0, 0.0
        for x, value in self._held:
            self._count_in(x, value, 1.0)

    def _count_in(self, x: float, value: float, weight: float) -> None:
        x -= self._origin
        self._x += weight * x
        self._y += weight * value
        self._xx += weight * x * x
        self._xy += weight * x * value

    def _value(self) -> float:
        count = len(self._held)
        spread = count * self._xx - self._x * self._x
        return (count * self._xy - self._x * self._y) / spread if spread > 0 else 0.0


WINDOWS: dict[str, type[Window]] = {"mean": Mean, "min": Least, "max": Most, "slope": Slope, "median": Median}
