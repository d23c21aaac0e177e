"""All that is judged of a machine and its GPUs, from readings as they come."""

from collections.abc import Iterator
from typing import Any

from trainvitals.detect.finding import Finding, Place
from trainvitals.detect.gpu_errors import MemoryErrors, states
from trainvitals.detect.gpu_heat import Slowdown, ThermalMargin
from trainvitals.detect.gpu_idle import Idle, Shared
from trainvitals.detect.gpu_links import Links
from trainvitals.detect.gpu_memory import GpuMemory
from trainvitals.detect.held import Held, Rise, Smooth
from trainvitals.detect.host import Disk, OomKills, Swap
from trainvitals.detect.limit import GPU_ROWS, HOST_ROWS, Above, Values
from trainvitals.detect.limits import Limits
from trainvitals.detect.stalled import Load

LOAD_SECONDS = 15.0


class GpuWatch:
    def __init__(self, gpu: str, uuid: str, limits: Limits) -> None:
        self.place = Place(gpu=gpu, uuid=uuid)
        self._ones: list[Any] = [ThermalMargin(limits), Slowdown(limits), *(Above(row, limits) for row in GPU_ROWS)]
        self._many: list[Any] = [MemoryErrors(limits), Links(limits)]
        self.memory, self._idle, self._shared = GpuMemory(limits), Idle(limits), Shared(limits)
        self._utilization, self._power = Smooth(LOAD_SECONDS), Smooth(LOAD_SECONDS)
        self._values: dict[str, Any] = {}
        self.load: Load | None = None

    def update(self, when: float, values: Values, price: float | None = None, ranks: int = 0) -> Iterator[Finding]:
        self._values = dict(values)
        self.load = self._loaded(when, values)
        for detector in self._ones:
            if finding := detector.update(when, values):
                yield self._placed(finding)
        for finding in (self._idle.update(when, values, price), self._shared.update(when, values, ranks)):
            if finding:
                yield self._placed(finding)
        for detector in (*self._many, self.memory):
            for finding in detector.update(when, values):
                yield self._placed(finding)
        for finding in states(values):
            yield self._placed(finding)

    @property
    def used(self) -> float | None:
        used, total = self._values.get("memory_used_mb"), self._values.get("memory_total_mb")
        return used / total if used is not None and total else None

    def _loaded(self, when: float, values: Values) -> Load | None:
        busy, watts, limit = (values.get(name) for name in ("utilization_percent", "power_draw_watts",
                                                            "power_limit_watts"))  # fmt: skip
        if busy is None or watts is None or not limit:
            return None
        return Load(self._utilization.update(when, busy / 100), self._power.update(when, watts / limit))

    def _placed(self, finding: Finding) -> Finding:
        part = finding.place.part
        return finding._replace(place=self.place._replace(part=part) if part else self.place)


class NodeWatch:
    """One machine, and each of its GPUs."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self.host = limits, HostWatch(limits)
        self.gpus: dict[str, GpuWatch] = {}

    def gpu(self, gpu: str, uuid: str) -> GpuWatch:
        if uuid not in self.gpus:
            self.gpus[uuid] = GpuWatch(gpu, uuid, self._limits)
        return self.gpus[uuid]


class HostWatch:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        # Dollars an hour.
        self.price: float | None = None
        # Of its GPUs those that are gone, as far as somebody says which: UUID -> number.
        self.gone: dict[str, str] = {}
        # Somebody tells how many there are.
        self.counts = False
        self._ones: list[Any] = [Swap(limits), OomKills(limits), *(Above(row, limits) for row in HOST_ROWS)]
        self._disks: dict[str, Disk] = {}
        self._sources: dict[str, Held] = {}
        self._dropped, self._unread = Rise(limits.event_seconds), Rise(limits.event_seconds)
        self._missing = Held(limits.gpu_missing_seconds)
        self._began: float | None = None

    def update(self, when: float, values: Values) -> Iterator[Finding]:
        self._began = when if self._began is None else self._began
        self.price = values.get("node_price_dollars_per_hour", self.price)
        for detector in self._ones:
            if finding := detector.update(when, values):
                yield finding
        yield from self._too_few(when, values.get("gpu_count"), values.get("gpu_expected_count"))

    def _too_few(self, when: float, count: float | None, expected: float | None) -> Iterator[Finding]:
        if count is None or expected is None:
            return
        self.counts = True
        if count >= expected:
            self.gone.clear()
        is_early = when - (self._began or 0.0) < self._limits.gpu_finding_seconds
        if not is_early and self._missing.update(when, count < expected):
            named = ", ".join(f"GPU {gpu} ({uuid})" for uuid, gpu in self.gone.items())
            which = f": {named} {'is' if len(self.gone) == 1 else 'are'} missing" if named else ""
            yield Finding("GpuMissing", "page", f"{count:.0f} of {expected:.0f} GPUs answer{which}", count, expected)

    def disk(self, when: float, values: Values, mountpoint: str) -> Iterator[Finding]:
        disk = self._disks.setdefault(mountpoint, Disk(self._limits))
        return disk.update(when, values, mountpoint)

    def source(self, when: float, name: str, is_up: bool) -> Iterator[Finding]:
        held = self._sources.setdefault(name, Held(self._limits.source_seconds))
        if held.update(when, not is_up):
            yield Finding("SourceDown", "ticket", f"nothing can be read from {name}", 0.0, 1.0, Place(part=name))

    def journal(self, when: float, dropped: float | None, unread: float | None) -> Iterator[Finding]:
        """Either may be unknown; both at once are one finding."""
        risen = [0.0 if total is None else rise.update(when, total)
                 for rise, total in ((self._dropped, dropped), (self._unread, unread))]  # fmt: skip
        words = [f"{count:.0f} records could not be {what}" for count, what in zip(risen, ("kept", "read"), strict=True)
                 if count > 0]  # fmt: skip
        if words:
            yield Finding("JournalErrors", "ticket", f"{' and '.join(words)} lately", sum(risen), 0.0)
