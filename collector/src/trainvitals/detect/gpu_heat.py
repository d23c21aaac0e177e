"""GpuThermalMargin, GpuHardwareSlowdown and GpuPowerBrake: what heat and power do to a GPU's clocks."""

from collections import deque

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


class Lately:
    """Of the samples of the last `seconds` how many were so, and how often that began."""

    __slots__ = ("_seconds", "_seen", "begun", "held")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._seen: deque[tuple[float, bool]] = deque()
        self.held = self.begun = 0

    def add(self, when: float, is_so: bool) -> None:
        seen = self._seen
        self.begun += bool(seen) and is_so and not seen[-1][1]
        self.held += is_so
        seen.append((when, is_so))
        while seen[0][0] < when - self._seconds:
            _, was_so = seen.popleft()
            self.held -= was_so
            self.begun -= seen[0][1] and not was_so

    @property
    def share(self) -> float:
        return self.held / len(self._seen)

    @property
    def span(self) -> float:
        return self._seen[-1][0] - self._seen[0][0]


class Slowdown:
    """How long within the last ten minutes the clocks were held down, or how often that began."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._brake, self._slow = Lately(limits.gpu_slowdown_seconds), Lately(limits.gpu_slowdown_seconds)

    def update(self, when: float, values: Values) -> Finding | None:
        reasons = values.get("throttle_active")
        if reasons is None:
            return None
        is_braked, is_slow = _BRAKE in reasons, not _SLOW.isdisjoint(reasons)
        self._brake.add(when, is_braked)
        self._slow.add(when, is_slow)
        if not (is_braked or is_slow) or self._slow.span < self._limits.gpu_slowdown_seen_seconds:
            return None
        return (self._finding("GpuPowerBrake", "the power brake was on", self._brake)
                or self._finding("GpuHardwareSlowdown", "the hardware held its clocks down", self._slow))  # fmt: skip

    def _finding(self, kind: str, words: str, lately: Lately) -> Finding | None:
        """By the share of the time; or, for what comes and goes, by how often a minute it began."""
        limit, share = self._limits.gpu_slowdown, lately.share
        often = lately.begun / (self._limits.gpu_slowdown_seconds / 60)
        if max(share, often) < limit:
            return None
        how = f"for {share:.0%} of the" if share >= limit else f"{lately.begun} times within the"
        severity: Severity = "page" if kind == "GpuHardwareSlowdown" else "ticket"
        return Finding(kind, severity, f"{words} {how} last {minutes(lately.span)}", max(share, min(1.0, often)), limit,
                       stays=self._limits.gpu_slowdown_told_seconds)  # fmt: skip
