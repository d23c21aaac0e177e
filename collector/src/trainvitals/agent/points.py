"""The points of a chart: all that falls into one bucket of the axis becomes its extremes and its mean.

points = Points(("loss",), bucket); points.add_lines(lines); points.columns()
->  {"x_values": [1, 1001], "steps": [1, 1001], "fields": {"loss": {"min": […], "max": […], "mean": […], …}}}

A spike shows at every zoom, and so does a NaN: its bucket has a count of them, and no mean where nothing else is in it.
Of steps that were done again after a resume the mean is that of the last time; the extremes are of all.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from trainvitals.journal.index import Summary, merged, step_of, summary
from trainvitals.journal.record import Record


class Line(NamedTuple):
    """A record, where it lies on the axis, and the life of the run that wrote it."""

    place: float
    life: int
    record: Record


class Place(NamedTuple):
    """Where a point lies on the axis, and which step that is."""

    x: float
    step: float | None


class Points:
    def __init__(self, fields: Iterable[str], bucket: Callable[[float], float]) -> None:
        self._bucket = bucket
        self._places: dict[float, Place] = {}
        self._found: dict[str, dict[float, tuple[int, Summary]]] = {name: {} for name in fields}

    def add(self, place: Place, life: int, fields: Mapping[str, Summary]) -> None:
        """A bucket is shown where its first value lies."""
        bucket = self._bucket(place.x)
        before = self._places.get(bucket)
        self._places[bucket] = place if before is None or place.x < before.x else before
        for name, found in self._found.items():
            if name in fields:
                known = found.get(bucket)
                found[bucket] = (life, fields[name] if known is None else _over(known, life, fields[name]))

    def add_lines(self, lines: Iterable[Line]) -> None:
        together: dict[tuple[float, int], list[Line]] = {}
        for line in lines:
            together.setdefault((self._bucket(line.place), line.life), []).append(line)
        for (_, life), group in together.items():
            records = [line.record for line in group]
            told = {name: summary([record[name] for record in records if name in record]) for name in self._found}
            known = {name: one for name, one in told.items() if one is not None}
            first = min(group, key=lambda line: line.place)
            self.add(Place(first.place, step_of(first.record)), life, known)

    def columns(self) -> dict[str, Any]:
        order = sorted(self._places)
        return {"x_values": [_whole(self._places[bucket].x) for bucket in order],
                "steps": [self._places[bucket].step for bucket in order],
                "fields": {name: _columns([found.get(bucket) for bucket in order])
                           for name, found in self._found.items()}}  # fmt: skip


def _over(before: tuple[int, Summary], life: int, now: Summary) -> Summary:
    both = merged(before[1], now)
    if life > before[0] and now[3]:
        both[2:4] = now[2:4]
    return both


def _columns(found: Iterable[tuple[int, Summary] | None]) -> dict[str, list[Any]]:
    told = [(None, None, None, 0, 0) if one is None else one[1] for one in found]
    low, high, mean, _, bad = zip(*told, strict=True) if told else ((),) * 5
    return {"min": list(low), "max": list(high), "mean": list(mean), "nonfinite": list(bad)}


def _whole(place: float) -> float:
    return int(place) if place == int(place) and abs(place) < 2**53 else place
