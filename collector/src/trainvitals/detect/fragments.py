"""GpuOutOfMemorySoon, of fragments: the allocator holds much more than it handed out, and came to hold
more for no more.
"""

from trainvitals.detect.finding import Finding
from trainvitals.detect.limits import Limits
from trainvitals.detect.line import Line
from trainvitals.detect.stats import Window

MINUTE, KEPT_MINUTES, LEAST_MINUTES = 60.0, 60, 15


class Fragments:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._reserved, self._allocated = Window(KEPT_MINUTES), Window(KEPT_MINUTES)
        self._at: float | None = None

    def update(self, line: Line, used: float | None) -> Finding | None:
        """`used`: the share of the GPU's memory that is in use."""
        reserved, allocated = line.number("memory_reserved_mb"), line.number("memory_allocated_mb")
        if not reserved or not allocated:
            return None
        if line.when // MINUTE != self._at:
            self._at = line.when // MINUTE
            self._reserved.push(reserved)
            self._allocated.push(allocated)
        limits = self._limits
        if used is None or used <= limits.gpu_out_of_memory_used or len(self._reserved) < LEAST_MINUTES:
            return None
        ratio, growth = reserved / allocated, limits.gpu_out_of_memory_growth
        held_more = reserved >= growth * self._reserved.lowest() and allocated < growth * self._allocated.lowest()
        if ratio <= limits.gpu_out_of_memory_reserved or not held_more:
            return None
        what = f"{used:.0%} of its memory is in use, and the allocator holds {ratio:.1f} times what it handed out"
        return Finding("GpuOutOfMemorySoon", "page", what, used, limits.gpu_out_of_memory_used, step=line.step)
