"""GpuIdleAllocated: somebody holds a GPU's memory and does nothing with it; GpuSharedByOthers: two do."""

from trainvitals.detect.finding import Finding
from trainvitals.detect.held import Held
from trainvitals.detect.limit import Values
from trainvitals.detect.limits import Limits


class Idle:
    def __init__(self, limits: Limits) -> None:
        self._limits, self._held = limits, Held(limits.gpu_idle_seconds)
        self._since: float | None = None

    def update(self, when: float, values: Values, price: float | None) -> Finding | None:
        """`price`: dollars an hour of this GPU."""
        utilization, used = values.get("utilization_percent"), values.get("memory_used_mb")
        if utilization is None or used is None:
            return None
        limits = self._limits
        idles = utilization < 100 * limits.gpu_idle and used > limits.gpu_idle_memory
        if not self._held.update(when, idles):
            self._since = None
            return None
        self._since = when - limits.gpu_idle_seconds if self._since is None else self._since
        hours = (when - self._since) / 3600
        cost = f"; that has cost {hours * price:.2f} dollars, {price:.2f} an hour" if price else ""
        what = f"the GPU idles for {hours * 60:.0f} min while {used / 1024:.1f} GiB of its memory are held{cost}"
        return Finding("GpuIdleAllocated", "ticket", what, utilization / 100, limits.gpu_idle, stays=60.0)


class Shared:
    """More processes on a GPU of a run than runs have ranks there: in a container their numbers say nothing."""

    def __init__(self, limits: Limits) -> None:
        self._held = Held(limits.gpu_shared_seconds)

    def update(self, when: float, values: Values, ranks: int) -> Finding | None:
        processes = values.get("compute_processes")
        if processes is None or not self._held.update(when, bool(ranks) and processes > ranks):
            return None
        what = f"{processes - ranks:.0f} processes that are not the run's are on its GPU"
        return Finding("GpuSharedByOthers", "info", what, processes, float(ranks))
