"""What a GPU itself calls an error: Xids, memory errors, rows put aside, a reset that the driver asks for."""

from collections.abc import Iterator

from trainvitals.detect.finding import Finding, Place
from trainvitals.detect.held import Rise
from trainvitals.detect.limit import Values
from trainvitals.detect.limits import Limits

FATAL = frozenset({46, 48, 62, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158})
WARNING = frozenset({63, 92, 94, 154})
# Alone these are faults of the application.
APPLICATION = frozenset({13, 31, 43, 45})
HOUR = 3600.0
_ACTIONS = ("none", "reset the GPU", "reboot the node", "drain peers", "drain and reset")
_KEPT = 60.0


def xid(number: int, limits: Limits) -> Finding | None:
    """Of an Xid as the driver told it."""
    if number in FATAL:
        return Finding("GpuXidFatal", "page", f"Xid {number}: what runs on the GPU is lost", float(number),
                       stays=limits.event_seconds)  # fmt: skip
    if number in WARNING:
        return Finding("GpuXidWarning", "ticket", f"Xid {number}: the GPU goes on", float(number),
                       stays=limits.event_seconds)  # fmt: skip
    if number in APPLICATION:
        what = f"Xid {number}, as an application's own faults show"
        return Finding("GpuXidWarning", "info", what, float(number), place=Place(part="application"),
                       stays=limits.event_seconds)  # fmt: skip
    return None


class MemoryErrors:
    """By counters, which are as old as the driver: what was there before is no news."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._worst: float | None = None
        self._hour, self._before = Rise(HOUR), Rise(2 * HOUR)

    def update(self, when: float, values: Values) -> Iterator[Finding]:
        yield from self._uncorrected(values.get("ecc_volatile_errors_total_uncorrected"))
        corrected, limit = values.get("ecc_volatile_errors_total_corrected"), self._limits.gpu_ecc_corrected_per_hour
        if corrected is not None:
            risen, both = self._hour.update(when, corrected), self._before.update(when, corrected)
            if risen > limit and risen > both - risen:
                yield Finding("GpuEccCorrectedRate", "ticket", f"{risen:.0f} corrected memory errors within the hour",
                              risen, limit)  # fmt: skip

    def _uncorrected(self, count: float | None) -> Iterator[Finding]:
        if count is None:
            return
        before, self._worst = self._worst, count
        if before is not None and count > before:
            yield Finding("GpuEccUncorrectable", "page", f"{count - before:.0f} new uncorrectable memory errors",
                          count - before, 0.0, stays=self._limits.event_seconds)  # fmt: skip


def states(values: Values) -> Iterator[Finding]:
    """What holds until somebody does something about it."""
    if values.get("remapped_rows_failed"):
        yield Finding("GpuRowRemapFailed", "page", "a bad row of its memory could not be replaced", 1.0, 0.0,
                      stays=_KEPT)  # fmt: skip
    if values.get("remapped_rows_pending"):
        yield Finding("GpuRowRemapPending", "ticket", "bad rows of its memory are replaced at the next reset", 1.0,
                      0.0, stays=_KEPT)  # fmt: skip
    if action := int(values.get("recovery_action") or 0):
        words = _ACTIONS[action] if action < len(_ACTIONS) else f"action {action}"
        yield Finding("GpuRecoveryActionNeeded", "page", f"the driver asks for this: {words}", float(action), 0.0,
                      stays=_KEPT)  # fmt: skip
