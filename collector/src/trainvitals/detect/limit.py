"""Plain limits: a value that is too high for some time, and closes again only when it is clearly lower."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from trainvitals.detect.finding import Finding
from trainvitals.detect.held import Held, Smooth
from trainvitals.detect.limits import Limits
from trainvitals.model import Severity

Values = Mapping[str, Any]


class Row(NamedTuple):
    kind: str
    severity: Severity
    value: Callable[[Values], float | None]
    limit: Callable[[Limits], tuple[float, float]]
    words: str
    # Once told, it is over below this share of the limit.
    ease: float = 0.97


def field(name: str, scale: float = 1.0) -> Callable[[Values], float | None]:
    def value(values: Values) -> float | None:
        found = values.get(name)
        return found * scale if isinstance(found, (int, float)) else None

    return value


def share(part: str, whole: str) -> Callable[[Values], float | None]:
    def value(values: Values) -> float | None:
        found, all_of_it = values.get(part), values.get(whole)
        return found / all_of_it if found is not None and all_of_it else None

    return value


GPU_ROWS = (
    Row("GpuTemperatureHigh", "ticket", field("temperature_celsius"),
        lambda one: (one.gpu_temperature, one.gpu_temperature_seconds), "the GPU is at {:.0f} °C"),
    Row("GpuMemoryTemperatureHigh", "ticket", field("memory_temperature_celsius"),
        lambda one: (one.gpu_memory_temperature, one.gpu_memory_temperature_seconds), "its memory is at {:.0f} °C"),
    Row("GpuMemoryHigh", "ticket", share("memory_used_mb", "memory_total_mb"),
        lambda one: (one.gpu_memory, one.gpu_memory_seconds), "{:.0%} of its memory is in use"),
)  # fmt: skip
HOST_ROWS = (
    Row("HostCpuHigh", "ticket", field("cpu_usage_percent", 0.01),
        lambda one: (one.host_cpu, one.host_cpu_seconds), "{:.0%} of the processors' time is in use"),
    Row("HostMemoryHigh", "ticket", share("memory_used_bytes", "memory_total_bytes"),
        lambda one: (one.host_memory, one.host_memory_seconds), "{:.0%} of memory is in use"),
    Row("HostIowaitHigh", "ticket", field("cpu_iowait_ratio"),
        lambda one: (one.host_iowait, one.host_iowait_seconds), "{:.0%} of the processors' time waits for disks"),
)  # fmt: skip


class Above:
    """One row of the above, for one device; by its value, or its mean, so that a moment's dip changes nothing."""

    def __init__(self, row: Row, limits: Limits) -> None:
        self._row = row
        self._limit, seconds = row.limit(limits)
        self._held, self._mean, self._is_open = Held(seconds), Smooth(seconds / 5), False

    def update(self, when: float, values: Values) -> Finding | None:
        now = self._row.value(values)
        if now is None:
            return None
        value = self._mean.update(when, now)
        is_high = now > self._limit or value > self._limit * (self._row.ease if self._is_open else 1.0)
        self._is_open = self._held.update(when, is_high)
        if not self._is_open:
            return None
        row = self._row
        # The mean may not be there yet.
        told = max(value, now)
        return Finding(row.kind, row.severity, row.words.format(told), told, self._limit)
