"""GpuThermalMargin, GpuHardwareSlowdown and GpuPowerBrake: what heat and power do to a GPU's clocks."""

from collections import deque
from itertools import pairwise

from trainvitals.detect.finding import Finding
from trainvitals.detect.held import Held
from trainvitals.detect.limit import Values
from trainvitals.detect.limits import Limits
from trainvitals.detect.stalled import minutes
from trainvitals.model import Severity

_SLOW = frozenset({"hw_slowdown", "hw_thermal_slowdown"})
_BRAKE = "hw_power_brake"


class ThermalMargin:
    """Beside the device's own limit: 83 °C are nothing to one GPU and the end of another."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._near, self._over = Held(limits.gpu_thermal_seconds), Held(limits.gpu_thermal_seconds)
        self._is_open = False

    def update(self, when: float, values: Values) -> Finding | None:
        celsius, slowdown = values.get("temperature_celsius"), values.get("temperature_slowdown_celsius")
        if celsius is None or not slowdown:
            return None
        margin, limits = slowdown - celsius, self._limits
        is_over = self._over.update(when, margin <= 0)
        eases = limits.gpu_thermal_ease if self._is_open else 0.0
        self._is_open = self._near.update(when, margin <= limits.gpu_thermal_margin + eases)
        if not self._is_open:
            return None
        where = f"{margin:.0f} °C below" if margin > 0 else "at"
        what = f"the GPU is at {celsius:.0f} °C, {where} its own slowdown limit"
        return Finding("GpuThermalMargin", "page" if is_over else "ticket", what, margin, limits.gpu_thermal_margin)


class Slowdown:
    """How long within the last ten minutes the clocks were held down, or how often that began."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._seen: deque[tuple[float, bool, bool]] = deque()

    def update(self, when: float, values: Values) -> Finding | None:
        reasons = values.get("throttle_active")
        if reasons is None:
            return None
        seen, limits = self._seen, self._limits
        seen.append((when, _BRAKE in reasons, not _SLOW.isdisjoint(reasons)))
        while seen[0][0] < when - limits.gpu_slowdown_seconds:
            seen.popleft()
        if not (seen[-1][1] or seen[-1][2]) or when - seen[0][0] < limits.gpu_slowdown_seen_seconds:
            return None
        span = when - seen[0][0]
        if brake := self._finding("GpuPowerBrake", "the power brake was on", [brake for _, brake, _ in seen], span):
            return brake
        slow = [slow for _, _, slow in seen]
        return self._finding("GpuHardwareSlowdown", "the hardware held its clocks down", slow, span)

    def _finding(self, kind: str, words: str, active: list[bool], span: float) -> Finding | None:
        """By the share of the time; or, for what comes and goes, by how often a minute it began."""
        limit, begun = self._limits.gpu_slowdown, sum(now and not before for before, now in pairwise(active))
        share, often = sum(active) / len(active), begun / (self._limits.gpu_slowdown_seconds / 60)
        if max(share, often) < limit:
            return None
        how = f"for {share:.0%} of the" if share >= limit else f"{begun} times within the"
        severity: Severity = "page" if kind == "GpuHardwareSlowdown" else "ticket"
        return Finding(kind, severity, f"{words} {how} last {minutes(span)}", max(share, min(1.0, often)), limit,
                       stays=self._limits.gpu_slowdown_told_seconds)  # fmt: skip
