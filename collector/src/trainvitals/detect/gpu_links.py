"""NVLink and PCIe: links that are down, slow, or make errors."""

from collections.abc import Iterator

from trainvitals.detect.finding import Finding
from trainvitals.detect.held import Held, Rise, Smooth
from trainvitals.detect.limit import Values
from trainvitals.detect.limits import Limits

_NVLINK = "nvlink_errors_total_"


class Links:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._most_active = 0.0
        self._seconds = limits.gpu_link_errors_seconds
        self._errors, self._replays = Rise(self._seconds), Rise(self._seconds)
        self._told: set[str] = set()
        self._load, self._slow = Smooth(60.0), Held(limits.gpu_pcie_seconds)
        # What a GPU tells is seldom another than the sample before told.
        self._names: frozenset[str] = frozenset()
        self._of_nvlink: list[str] = []

    def update(self, when: float, values: Values) -> Iterator[Finding]:
        yield from self._down(values.get("nvlink_links_active"))
        if values.keys() != self._names:
            self._names = frozenset(values)
            self._of_nvlink = [name for name in values if name.startswith(_NVLINK)]
        if self._of_nvlink:
            errors = sum([values[name] for name in self._of_nvlink])
            yield from self._rate("GpuNvlinkErrors", "NVLink errors", self._errors, when, errors,
                                  self._limits.gpu_nvlink_errors_per_minute)  # fmt: skip
        if (replays := values.get("pcie_replays_total")) is not None:
            yield from self._rate("GpuPcieReplays", "PCIe packets sent again", self._replays, when, replays,
                                  self._limits.gpu_pcie_replays_per_minute)  # fmt: skip
        yield from self._degraded(when, values)

    def _down(self, active: float | None) -> Iterator[Finding]:
        if active is None:
            return
        self._most_active = max(self._most_active, active)
        if active < self._most_active:
            yield Finding("GpuNvlinkDown", "page", f"{active:.0f} of {self._most_active:.0f} NVLinks are up", active,
                          self._most_active)  # fmt: skip

    def _rate(self, kind: str, words: str, rise: Rise, when: float, count: float, limit: float) -> Iterator[Finding]:
        """A single burst is forgiven: errors must have come for half of the window. What was told goes on until they
        are few."""
        per_minute = rise.update(when, count) / (self._seconds / 60)
        if per_minute <= limit:
            self._told.discard(kind)
        elif kind in self._told or rise.lasting >= self._seconds / 2:
            self._told.add(kind)
            yield Finding(kind, "ticket", f"{per_minute:.3g} {words} a minute", per_minute, limit)

    def _degraded(self, when: float, values: Values) -> Iterator[Finding]:
        """Idle links save power."""
        utilization = values.get("utilization_percent")
        if utilization is None:
            return
        load = self._load.update(when, utilization / 100)
        both = [(name, values.get(f"pcie_{name}"), values.get(f"pcie_{name}_max")) for name in ("generation", "width")]
        worse = [(name, now, most) for name, now, most in both if now and most and now < most]
        if self._slow.update(when, bool(worse) and load > self._limits.gpu_load):
            words = ", ".join(f"{name} {now:.0f} of {most:.0f}" for name, now, most in worse)
            _, now, most = worse[0]
            yield Finding("GpuPcieDegraded", "ticket", f"its PCIe link under load: {words}", now, most)
