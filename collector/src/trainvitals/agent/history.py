"""The last month of each GPU in a few MiB: 1 s for an hour, 10 s for a day, 1 min for 30 days.

Values lie as 16-bit numbers in memory that the kernel hands out only when it is first written.
Coarse lanes hold mean and peak, so that a spike of a second still shows after a month.
"""

import mmap
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from trainvitals.model import Reading

HISTORY_FIELDS: dict[str, float] = {  # what one step of the stored number is worth
    "utilization_percent": 0.01,
    "memory_percent": 0.01,
    "temperature_celsius": 0.01,
    "power_draw_watts": 0.0625,
}
LANES = ((1, 3600), (10, 8640), (60, 43200))
_MOST = 65535
_LATE_SLOTS = 5


class Point(NamedTuple):
    timestamp: float
    mean: float | None
    peak: float | None


@dataclass(slots=True)
class _Bucket:
    """What came so far for the slot that is being filled."""

    slot: int = -1
    count: int = 0
    total: float = 0.0
    peak: float = 0.0

    def add(self, slot: int, value: float) -> None:
        if slot != self.slot:
            self.slot, self.count, self.total, self.peak = slot, 0, 0.0, value
        self.count += 1
        self.total += value
        self.peak = max(self.peak, value)


class _Lane:
    """A ring of slots of one width. A stored 0 is a gap: values are kept one higher."""

    def __init__(self, width: int, slots: int, unit: float) -> None:
        self.width, self._slots, self._unit = width, slots, unit
        self._means = memoryview(mmap.mmap(-1, slots * 2)).cast("H")
        self._peaks = memoryview(mmap.mmap(-1, slots * 2)).cast("H") if width > 1 else self._means
        self._newest = -1
        self._buckets = (_Bucket(), _Bucket())

    def put(self, when: float, value: float, replayed: bool) -> None:
        slot = int(when // self.width)
        if not replayed and slot < self._newest - _LATE_SLOTS:
            self._go_back(slot)
        if self._newest >= 0 and slot <= self._newest - self._slots:
            return
        self._advance(slot)
        bucket = self._buckets[replayed]
        bucket.add(slot, value)
        self._means[slot % self._slots] = self._stored(bucket.total / bucket.count)
        self._peaks[slot % self._slots] = self._stored(bucket.peak)

    def points(self, start: float, end: float) -> list[Point]:
        first = max(int(start // self.width), self._newest - self._slots + 1)
        return [self._point(slot) for slot in range(first, min(int(end // self.width), self._newest) + 1)]

    def _point(self, slot: int) -> Point:
        at = slot % self._slots
        return Point(slot * float(self.width), self._value(self._means[at]), self._value(self._peaks[at]))

    def _advance(self, slot: int) -> None:
        """Slots that nothing was put into are gaps again when the ring comes round."""
        if slot > self._newest:
            skipped = min(slot - self._newest, self._slots) if self._newest >= 0 else 0
            for passed in range(slot - skipped + 1, slot + 1):
                self._means[passed % self._slots] = self._peaks[passed % self._slots] = 0
            self._newest = slot

    def _go_back(self, slot: int) -> None:
        """The clock was ahead and was set right: what lies in the future would hide the present."""
        for ahead in range(max(slot, self._newest - self._slots) + 1, self._newest + 1):
            self._means[ahead % self._slots] = self._peaks[ahead % self._slots] = 0
        self._newest = slot

    def _stored(self, value: float) -> int:
        return min(_MOST, max(0, round(value / self._unit)) + 1)

    def _value(self, stored: int) -> float | None:
        return round((stored - 1) * self._unit, 4) if stored else None


@dataclass(slots=True)
class History:
    _lanes: dict[tuple[str, str], tuple[_Lane, ...]] = field(default_factory=dict)

    def add(self, readings: Iterable[Reading]) -> None:
        for reading in readings:
            if reading.scope == "gpu":
                self.put(reading.labels[0][1], reading.timestamp, reading.values)

    def put(self, gpu: str, when: float, values: object, replayed: bool = False) -> None:
        """`values` is a mapping with the fields of HISTORY_FIELDS, the rest of it is left alone."""
        if not isinstance(values, dict):
            return
        for name in HISTORY_FIELDS:
            value = values.get(name)
            if isinstance(value, (int, float)):
                for lane in self._of(gpu, name):
                    lane.put(when, value, replayed)

    def gpus(self) -> list[str]:
        return sorted({gpu for gpu, _ in self._lanes}, key=lambda gpu: (len(gpu), gpu))

    def points(self, gpu: str, name: str, start: float, end: float, now: float) -> tuple[int, list[Point]]:
        """The finest lane that reaches back to `start`, and its slot width."""
        lanes = self._lanes.get((gpu, name))
        if lanes is None:
            return LANES[0][0], []
        reach = [lane for lane, (width, slots) in zip(lanes, LANES, strict=True) if start >= now - width * slots]
        lane = reach[0] if reach else lanes[-1]
        return lane.width, lane.points(start, end)

    def _of(self, gpu: str, name: str) -> tuple[_Lane, ...]:
        key = (gpu, name)
        if key not in self._lanes:
            self._lanes[key] = tuple(_Lane(width, slots, HISTORY_FIELDS[name]) for width, slots in LANES)
        return self._lanes[key]
