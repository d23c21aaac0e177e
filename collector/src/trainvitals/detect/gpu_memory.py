"""GpuMemoryLeak and GpuOutOfMemorySoon: device memory that grows, and when it is full."""

from collections.abc import Iterator

from trainvitals.detect.finding import Finding
from trainvitals.detect.held import Growth, Smooth
from trainvitals.detect.limit import Values
from trainvitals.detect.limits import Limits
from trainvitals.detect.stalled import hours, minutes

HOUR_MINUTES, SOON_MINUTES = 60, 12
# Of the most that was in use: with less than this share left, whoever held it is gone.
EMPTIED = 0.1


class GpuMemory:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._hour, self._soon = Growth(HOUR_MINUTES), Growth(SOON_MINUTES)
        self._load = Smooth(120.0)
        self._began: float | None = None
        self._most = 0.0

    def begin(self) -> None:
        """Another process: what it takes at first is no leak, and how much the one before it held tells nothing."""
        self._hour, self._soon = Growth(HOUR_MINUTES), Growth(SOON_MINUTES)
        self._began, self._most = None, 0.0

    def update(self, when: float, values: Values) -> Iterator[Finding]:
        used, total = values.get("memory_used_mb"), values.get("memory_total_mb")
        if used is None or not total:
            return
        load = self._load.update(when, (values.get("utilization_percent") or 0.0) / 100)
        self._grow(when, used)
        # A model that is loaded from slow storage grows too, while the GPU idles.
        if self._soon.per_second and load > self._limits.gpu_idle:
            left = (total - used) / self._soon.per_second
            if left < self._limits.gpu_out_of_memory_seconds:
                yield Finding("GpuOutOfMemorySoon", "page", f"{used / total:.0%} of its memory is in use, and it is "
                              f"full in {minutes(left)}", left, self._limits.gpu_out_of_memory_seconds,
                              stays=120.0)  # fmt: skip
        if self._hour.per_second:
            left = (total - used) / self._hour.per_second
            if left < self._limits.leak_seconds:
                what = f"its memory grows steadily and is full in {hours(left)}"
                yield Finding("GpuMemoryLeak", "ticket", what, left, self._limits.leak_seconds, stays=120.0)

    def _grow(self, when: float, used: float) -> None:
        """Caches and allocators grow at first: what is full within minutes is asked about sooner than a slow leak."""
        if used < EMPTIED * self._most:
            self.begin()
        self._began = when if self._began is None else self._began
        self._most, since = max(self._most, used), when - self._began
        if since >= self._limits.gpu_out_of_memory_warm_up_seconds:
            self._soon.update(when, used)
        if since >= self._limits.leak_warm_up_seconds:
            self._hour.update(when, used)
