"""TrainingStalled and TrainingHangSuspected: a run that lives and makes no steps."""

from collections.abc import Sequence
from typing import NamedTuple

from trainvitals.detect.finding import Finding
from trainvitals.detect.limits import Limits
from trainvitals.detect.progress import Progress

STAYS = 30.0


class Load(NamedTuple):
    """A GPU over the last minute: how busy it looked, and its power as a share of its limit."""

    utilization: float
    power: float


class Stalled:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def update(self, now: float, progress: Progress) -> Finding | None:
        silent, limits = progress.silent(now), self._limits
        if silent is None:
            return self._never(now, progress)
        budget = progress.budget(now, limits.stall_seconds, limits.stall_steps)
        if silent <= budget or progress.is_in_phase(now):
            return None
        what = f"no step for {minutes(silent)}; a step usually takes {progress.typical():.3g} s"
        return Finding("TrainingStalled", "page", what, silent, budget, stays=STAYS)

    def _never(self, now: float, progress: Progress) -> Finding | None:
        """Steps may be compiled until the first ones are made."""
        since = progress.began if progress.last is None else progress.last
        budget = progress.budget(now, self._limits.first_step_seconds, self._limits.stall_steps)
        if since is None or (silent := now - since) <= budget or progress.is_in_phase(now):
            return None
        what = f"no first step {minutes(silent)} after the start" if progress.last is None else (
            f"no step for {minutes(silent)}, after the first ones")  # fmt: skip
        return Finding("TrainingStalled", "page", what, silent, budget, stays=STAYS)


class HangSuspected:
    """All of its GPUs look busy and draw next to nothing: they wait in a collective."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def update(self, now: float, progress: Progress, loads: Sequence[Load]) -> Finding | None:
        silent, limits = progress.silent(now), self._limits
        if silent is None or not loads or silent <= progress.budget(now, limits.hang_seconds, limits.hang_steps):
            return None
        busy, power = min(load.utilization for load in loads), max(load.power for load in loads)
        if busy < limits.hang_utilization or power >= limits.hang_power or progress.is_in_phase(now):
            return None
        what = (f"no step for {minutes(silent)} while its GPUs look {busy:.0%} busy and draw {power:.0%} of their "
                "power: a collective hangs, it seems")  # fmt: skip
        return Finding("TrainingHangSuspected", "page", what, silent, limits.hang_seconds, stays=STAYS)


def hours(seconds: float) -> str:
    return minutes(seconds) if seconds < 7200 else f"{seconds / 3600:.1f} h"


def minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
