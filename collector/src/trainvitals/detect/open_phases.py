"""The evaluations and savings that a run's ranks are in: what their silence may be for.

phases.take(0, {"timestamp": "…", "event": "phase", "step": 7, "phase": "evaluation", "open": True})
phases.of(0, since=0.0, timed={})  ->  {"phase_open_timestamp_seconds_evaluation": 1753878896.7}
"""

from typing import NamedTuple

from trainvitals.catalog import LASTING_PHASES
from trainvitals.journal.record import Record, as_number, seconds
from trainvitals.model import Value

# One may lie within another; more than so many were left open by whoever wrote them.
MAX_OPEN = 16


class Opened(NamedTuple):
    phase: str
    when: float
    step: float


class OpenPhases:
    def __init__(self) -> None:
        self._open: dict[int, list[Opened]] = {}

    def take(self, rank: int, event: Record) -> None:
        kind, phase = event.get("event"), event.get("phase")
        if kind == "end":
            self._open.pop(rank, None)
        elif kind == "phase" and phase in LASTING_PHASES:
            opened = self._open.get(rank, [])
            if event.get("open") is True:
                opened = [*opened, *_opened(str(phase), event)][-MAX_OPEN:]
            else:
                last = max((at for at, one in enumerate(opened) if one.phase == phase), default=None)
                opened = [one for at, one in enumerate(opened) if at != last]
            self._open[rank] = opened

    def ranks(self) -> list[int]:
        return list(self._open)

    def of(self, rank: int, since: float, timed: Record) -> dict[str, Value]:
        """Since when each is open. `since`: when the rank was started; what a former life left open is over. So is what
        a step was timed after (`timed` is the last line of one), though its end could not be written."""
        values: dict[str, Value] = {}
        for one in self._open.get(rank, ()):
            if one.when >= since and not _is_past(one, timed):
                values.setdefault(f"phase_open_timestamp_seconds_{one.phase}", one.when)
        return values


def _opened(phase: str, event: Record) -> list[Opened]:
    when, step = seconds(event.get("timestamp")), as_number(event.get("step"))
    return [] if when is None else [Opened(phase, when, step or 0.0)]


def _is_past(one: Opened, timed: Record) -> bool:
    """The line of the step before may be written within the phase, by the first `log` in it."""
    step, when = as_number(timed.get("step")), seconds(timed.get("timestamp"))
    return step is not None and when is not None and step > one.step and when >= one.when
