"""The machine: swap, disks, killed processes, memory of a run's processes that grows without end."""

from collections import deque
from collections.abc import Iterator

from trainvitals.detect.finding import Finding, Place
from trainvitals.detect.held import MINUTE, Growth, Held, Rise
from trainvitals.detect.limit import Values
from trainvitals.detect.limits import Limits
from trainvitals.detect.stalled import hours, minutes
from trainvitals.detect.stats import slope

HOUR_MINUTES = 60
# Of a slope that is soon at its end, and of one that takes its time: so many minutes, of which so many must be known.
SOON_MINUTES, SOON_LEAST = 60, 30
DISK_MINUTES, DISK_LEAST = 360, 60


class Swap:
    """In and out: out alone is tidying up."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._in, self._out = Rise(limits.host_swap_seconds), Rise(limits.host_swap_seconds)

    def update(self, when: float, values: Values) -> Finding | None:
        came, went = values.get("swap_bytes_total_in"), values.get("swap_bytes_total_out")
        if came is None or went is None:
            return None
        seconds, limit = self._limits.host_swap_seconds, self._limits.host_swap
        rate = min(self._in.update(when, came), self._out.update(when, went)) / seconds
        if rate <= limit or self._in.covered < seconds / 2:
            return None
        what = f"{rate / 2**20:.1f} MiB a second come back from swap while as much goes out"
        return Finding("HostSwapThrash", "ticket", what, rate, limit)


class OomKills:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._before: float | None = None

    def update(self, when: float, values: Values) -> Finding | None:
        count = values.get("oom_kills_total")
        if count is None:
            return None
        before, self._before = self._before, count
        if before is None or count <= before:
            return None
        what = f"the kernel killed {count - before:.0f} processes for want of memory"
        return Finding("HostOomKill", "ticket", what, count - before, 0.0, stays=self._limits.event_seconds)


class Disk:
    """One file system: nearly full, or soon to be by how it fills. A copy that is made once is no slope."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._free: deque[tuple[float, float]] = deque(maxlen=DISK_MINUTES)
        self._at: float | None = None
        self._soon = self._later = float("inf")
        self._filling = Held(limits.host_disk_filling_held_seconds)
        self._full = Held(limits.host_disk_full_held_seconds)

    def update(self, when: float, values: Values, mountpoint: str) -> Iterator[Finding]:
        size, free = values.get("size_bytes"), values.get("free_bytes")
        if not size or free is None:
            return
        if when // MINUTE != self._at:
            self._at = when // MINUTE
            self._free.append((when, free))
            self._soon = self._seconds_left(SOON_MINUTES, SOON_LEAST)
            self._later = self._seconds_left(DISK_MINUTES, DISK_LEAST)
        yield from self._found(when, free / size, mountpoint)

    def _found(self, when: float, ratio: float, mountpoint: str) -> Iterator[Finding]:
        limits, place = self._limits, Place(part=mountpoint)
        soon, later = self._soon, self._later
        is_full = ratio < limits.host_disk_full
        is_soon = ratio < limits.host_disk_low and soon < limits.host_disk_full_seconds
        if is_full or self._full.update(when, is_soon):
            when_full = "" if is_full else f", and it is full in {minutes(soon)}"
            yield Finding("HostDiskFull", "page", f"{mountpoint} has {ratio:.1%} of its space left{when_full}", ratio,
                          limits.host_disk_full, place)  # fmt: skip
        fills = ratio < limits.host_disk_watched and later < limits.host_disk_filling_seconds
        if self._filling.update(when, fills):
            yield Finding("HostDiskFillingUp", "ticket", f"{mountpoint} is full in {hours(later)}", later,
                          limits.host_disk_filling_seconds, place)  # fmt: skip

    def _seconds_left(self, span: int, least: int) -> float:
        """There must be less now than there ever was in the first half."""
        points = list(self._free)[-span:]
        if len(points) < least or points[-1][1] >= min(free for _, free in points[: len(points) // 2]):
            return float("inf")
        fall = -slope(points[:: max(1, len(points) // 30)])
        return points[-1][1] / fall if fall > 0 else float("inf")


class RunMemory:
    """HostMemoryLeak: what a run's processes hold, beside what the machine has left."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._hour = limits, Growth(HOUR_MINUTES)
        self._began: float | None = None

    def update(self, when: float, resident: float, available: float) -> Finding | None:
        self._began = when if self._began is None else self._began
        if when - self._began < self._limits.leak_warm_up_seconds:
            return None
        self._hour.update(when, resident)
        left = available / self._hour.per_second if self._hour.per_second else float("inf")
        if left >= self._limits.leak_seconds:
            return None
        what = f"its processes hold {resident / 2**30:.1f} GiB and grow steadily: memory is full in {hours(left)}"
        return Finding("HostMemoryLeak", "ticket", what, left, self._limits.leak_seconds, stays=120.0)
