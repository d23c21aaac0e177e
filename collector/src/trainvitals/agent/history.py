"""The last month of each GPU and the host in a few MiB: 1 s for an hour, 10 s for a day, 1 min for 30 days.

Values lie as 16-bit numbers in memory that the kernel hands out only when it is first written.
Coarse lanes hold mean and peak, so that a spike of a second still shows after a month.
"""

import math
import mmap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from trainvitals.model import Reading


class Scale(NamedTuple):
    """How a value becomes a whole number, and how one or the mean of several is read back."""

    number: Callable[[float], float]
    mean: Callable[[Sequence[float]], float]


def even(unit: float) -> Scale:
    """`unit`: what one step of the stored number is worth."""
    return Scale(lambda value: value / unit, lambda numbers: sum(numbers) / len(numbers) * unit)


# From a byte to petabytes, to a twentieth of a percent.
_LOG_STEPS = 1400.0
BYTES = Scale(lambda value: _LOG_STEPS * math.log2(1 + value),
              lambda numbers: sum(2 ** (number / _LOG_STEPS) for number in numbers) / len(numbers) - 1)  # fmt: skip

HISTORY_FIELDS: dict[str, Scale] = {
    "utilization_percent": even(0.01),
    "memory_percent": even(0.01),
    "temperature_celsius": even(0.01),
    "power_draw_watts": even(0.0625),
}
HOST = "host"
HOST_FIELDS: dict[str, Scale] = {
    "cpu_usage_percent": even(0.01),
    "cpu_iowait_ratio": even(0.0001),
    "memory_used_bytes": BYTES,
    "disk_read_bytes_per_second": BYTES,
    "disk_written_bytes_per_second": BYTES,
    "disk_busy_ratio": even(0.0001),
    "network_receive_bytes_per_second": BYTES,
    "network_transmit_bytes_per_second": BYTES,
}
LANES = ((1, 3600), (10, 8640), (60, 43200))
_MOST = 65535
_LATE_SLOTS = 5
_SLACK = 1.02


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

    def __init__(self, width: int, slots: int, scale: Scale) -> None:
        self.width, self._slots, self._scale = width, slots, scale
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

    def points(self, start: float, end: float, together: int) -> list[Point]:
        """Of so many slots `together`, counted from the epoch on: points stay where they are as time goes on."""
        first = -(-max(int(start // self.width), self._newest - self._slots + 1) // together) * together
        last = min(int(end // self.width), self._newest)
        means, peaks = (self._stretch(stored, first, last + 1 - first) for stored in (self._means, self._peaks))
        parts = [(at, slice(at, at + together)) for at in range(0, len(means), together)]
        return [Point((first + at) * float(self.width), self._mean(means[part]), self._mean([max(peaks[part])]))
                for at, part in parts]  # fmt: skip

    def _stretch(self, stored: memoryview, first: int, count: int) -> list[int]:
        begin = first % self._slots
        found: list[int] = stored[begin : begin + max(0, count)].tolist()
        return found + stored[: max(0, count) - len(found)].tolist()

    def _mean(self, stored: list[int]) -> float | None:
        known = [number - 1 for number in stored if number]
        return round(self._scale.mean(known), 4) if known else None

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
        return min(_MOST, max(0, round(self._scale.number(max(0.0, value)))) + 1)


@dataclass(slots=True)
class History:
    _lanes: dict[tuple[str, str], tuple[_Lane, ...]] = field(default_factory=dict)

    def add(self, readings: Iterable[Reading]) -> None:
        """Of GPUs and the host."""
        for reading in readings:
            self.put(HOST if reading.scope == HOST else reading.labels[0][1], reading.timestamp, reading.values)

    def put(self, key: str, when: float, values: object, replayed: bool = False) -> None:
        """`key`: a GPU's number, or HOST. `values` is a mapping; of other fields than theirs it is left alone."""
        if not isinstance(values, dict):
            return
        for name in _fields(key):
            value = values.get(name)
            if isinstance(value, (int, float)) and math.isfinite(value):
                for lane in self._of(key, name):
                    lane.put(when, value, replayed)

    def gpus(self) -> list[str]:
        return sorted({key for key, _ in self._lanes} - {HOST}, key=lambda gpu: (len(gpu), gpu))

    def points(self, key: str, name: str, start: float, end: float, now: float,
               most: float = math.inf) -> tuple[int, list[Point]]:  # fmt: skip
        """The finest lane that reaches back to `start`, about `most` points of it, and how wide each is. Whoever asks
        for the last hour has another clock than the last tick."""
        lane = next((at for at, (width, slots) in enumerate(LANES) if start >= now - _SLACK * width * slots), -1)
        width = LANES[lane][0]
        together = max(1, math.ceil((end - start) / width / most))
        lanes = self._lanes.get((key, name))
        return width * together, lanes[lane].points(start, end, together) if lanes else []

    def _of(self, key: str, name: str) -> tuple[_Lane, ...]:
        if (key, name) not in self._lanes:
            scale = _fields(key)[name]
            self._lanes[key, name] = tuple(_Lane(width, slots, scale) for width, slots in LANES)
        return self._lanes[key, name]


def _fields(key: str) -> dict[str, Scale]:
    return HOST_FIELDS if key == HOST else HISTORY_FIELDS
