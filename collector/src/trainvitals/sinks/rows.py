"""Journal lines as rows: what one rank said of one step, numbers only.

{"step":3,"loss":0.5}, {"step":3,"data_wait_seconds":0.1}  of rank 1
  ->  Row("training", 3, 1753878896.7, {"rank1/loss": 0.5, "rank1/data_wait_seconds": 0.1})
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from trainvitals.journal.record import Record, as_number, seconds

_NO_VALUES = frozenset({"timestamp", "step"})
_MAX_STEP = 2**63 - 1


class Row(NamedTuple):
    kind: str  # training, resources or histograms
    step: int
    time: float
    values: dict[str, Any]


def of_rank(rank: int, name: str) -> str:
    """Rank 0's values have their own names, another's its number before them."""
    return name if rank == 0 else f"rank{rank}/{name}"


def training_rows(rank: int, records: Iterable[Record], began: float) -> list[Row]:
    """A row a step; of two values under one name the later one counts."""
    rows: dict[int, Row] = {}
    for record in records:
        values = {of_rank(rank, name): number for name, value in record.items()
                  if name not in _NO_VALUES and name and (number := as_number(value)) is not None}  # fmt: skip
        if values:
            step = as_step(record.get("step"))
            row = rows.setdefault(step, Row("training", step, seconds(record.get("timestamp")) or began, {}))
            row.values.update(values)
    return list(rows.values())


def histogram_rows(rank: int, records: Iterable[Record], began: float) -> list[Row]:
    """What `watch` counted of parameters and gradients, from the event lines."""
    rows = []
    for record in records:
        told = record.get("histograms")
        if record.get("event") == "histograms" and isinstance(told, dict):
            whole = {of_rank(rank, name): counted for name, counted in told.items() if _is_whole(counted)}
            if whole:
                when = seconds(record.get("timestamp")) or began
                rows.append(Row("histograms", as_step(record.get("step")), when, whole))
    return rows


def as_step(value: object) -> int:
    """Backends count steps in 64 bits; a line without a usable one belongs to the start."""
    number = as_number(value)
    if number is None or not abs(number) < _MAX_STEP:
        return 0
    return int(value)  # type: ignore[call-overload, no-any-return]


def _is_whole(counted: object) -> bool:
    if not isinstance(counted, Mapping):
        return False
    edges, counts = counted.get("edges"), counted.get("counts")
    if not isinstance(edges, list) or not isinstance(counts, list) or len(edges) != len(counts) + 1:
        return False
    return bool(counts) and all(as_number(value) is not None for value in (*edges, *counts))
