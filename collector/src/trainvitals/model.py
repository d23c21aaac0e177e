"""The shapes that every part hands on: readings, events, and the snapshot they add up to.

A reading is what one source said of one thing at one time:
    Reading("gpu", (("gpu", "0"), ("uuid", "GPU-5a…")), {"utilization_percent": 97.0}, 1753878896.7)
What a source could not tell is not in `values`: unknown is absent, never 0.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

Tier = Literal["fast", "slow", "rare"]
Labels = tuple[tuple[str, str], ...]
Severity = Literal["page", "ticket", "info"]
# The worst first.
SEVERITIES: tuple[Severity, ...] = ("page", "ticket", "info")


class Histogram(NamedTuple):
    """Counts per bucket, not cumulated; one more of them than bounds, the last is the overflow."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float


Value = float | tuple[str, ...] | Histogram


class Reading(NamedTuple):
    scope: str
    labels: Labels
    values: Mapping[str, Value]
    timestamp: float

    def label(self, name: str) -> str:
        return next((value for key, value in self.labels if key == name), "")

    def number(self, field: str) -> float | None:
        value = self.values.get(field)
        return value if isinstance(value, (int, float)) else None


class Event(NamedTuple):
    """Something that happened to a device at one moment: an Xid, a GPU that went or came."""

    kind: str
    labels: Labels
    details: Mapping[str, str | float]
    timestamp: float


class Snapshot(NamedTuple):
    """Everything known at one tick. Immutable: readers keep it as long as they like."""

    timestamp: float
    readings: tuple[Reading, ...]
    # Runs that ended a while ago: shown, but no series any more.
    past: tuple[Reading, ...] = ()
    # How far each run is, by its name: its speed, its end in sight, its cost.
    progress: Mapping[str, Mapping[str, Any]] = {}

    def of(self, scope: str) -> Iterator[Reading]:
        return (reading for reading in self.readings if reading.scope == scope)


EMPTY = Snapshot(0.0, ())
