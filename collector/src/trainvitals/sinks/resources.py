"""GPU and host series over a run's time, from the node's own journal lines.

    Row("resources", 12, 1753878908.2, {"gpu_0_gpu_utilization_pct": 97.0, "gpu_0_temperature_c": 61.0, …})
The step is the second since the start: a point a second for ten minutes, then one every ten seconds.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from trainvitals.journal import retention
from trainvitals.journal.gpu_keys import gpu_name, gpu_values
from trainvitals.journal.record import Record, as_number, seconds
from trainvitals.journal.tail import Tail
from trainvitals.sinks.rows import Row

FINE_SECONDS = 600
COARSE_SECONDS = 10
# From the run's own records, where it tells them: only its process knows its allocator.
ALLOCATOR = {"memory_allocated_mb": "memory_allocated_gb", "memory_reserved_mb": "memory_reserved_gb"}


def host_values(line: Mapping[str, Any]) -> dict[str, float]:
    values = {}
    if (busy := as_number(line.get("cpu_usage_percent"))) is not None:
        values["cpu_utilization_pct"] = busy
    used, total = as_number(line.get("memory_used_bytes")), as_number(line.get("memory_total_bytes"))
    if used is not None:
        values["system_memory_used_gb"] = used / 2**30
        if total:
            values["system_memory_utilization_pct"] = 100 * used / total
    return values


VALUES: dict[str, Callable[[Mapping[str, Any]], dict[str, float]]] = {"gpu": gpu_values, "host": host_values}


def slot_of(age: float) -> int:
    """Which point of the series a moment belongs to."""
    return int(age) if age < FINE_SECONDS else FINE_SECONDS + int((age - FINE_SECONDS) // COARSE_SECONDS)


class NodeSeries:
    """One kind of a node's lines (gpu or host) from `began` on, a row a slot; `next_slot` is its cursor."""

    def __init__(self, folder: Path, kind: str, began: float, *, prefix: str = "") -> None:
        self._folder, self._kind, self._began, self._prefix = folder, kind, began, prefix
        self.uuids: frozenset[str] = frozenset()
        # What the series of each GPU are called, by its uuid.
        self.names: dict[str, str] = {}
        # Until its GPUs are known.
        self.waits = False
        self._tail = Tail()
        self._file: Path | None = None
        self._carried: dict[object, dict[str, Any]] = {}
        self._ready: list[tuple[int, Row]] = []
        self._open_slot, self._open = -1, Row("resources", 0, began, {})
        self.next_slot = 0
        self.end: float | None = None
        # When the run is known to have lived last: a line of later may be one of after its end, and waits.
        self.lived = math.inf
        self._waiting: list[tuple[float, dict[str, float]]] = []
        self._passed_end = False

    def is_past_end(self) -> bool:
        """Whether lines behind the run's end were read, or there is nobody to write any."""
        return self._passed_end or not self._folder.is_dir()

    def rows(self, until: int | None = None, *, last: bool = False) -> list[Row]:
        """The rows of the slots that are over; all before `until` where that is given, and with `last` the
        one that is not over too."""
        if self.waits and until is None and not last:
            return []
        self._admit()
        while self._read():
            if until is None or self._open_slot >= until:
                break
        if last or (until is not None and self._open_slot < until):
            self._close_slot()
        taken = [(slot, row) for slot, row in self._ready if until is None or slot < until]
        self._ready = self._ready[len(taken) :]
        if taken:
            self.next_slot = taken[-1][0] + 1
        return [row for _, row in taken]

    def _read(self) -> bool:
        """One block of lines, the oldest file first."""
        for path in retention.node_files(self._folder):
            if path.name.startswith(self._kind) and _modified(path) >= self._began:
                self._tail.follow(path)
                if self._tail.has_news(path) and (records := self._tail.read(path)):
                    self._take(path, records)
                    self._admit()
                    return True
        return False

    def _take(self, path: Path, records: Iterable[Record]) -> None:
        if path != self._file:
            self._file, self._carried = path, {}
        for record in records:
            line = self._carry(record)
            self.names[str(line.get("uuid"))] = self._prefix + gpu_name(line.get("gpu_index"), "").rstrip("_")
            when = seconds(record.get("timestamp"))
            if when is None or when < self._began or (self.uuids and line.get("uuid") not in self.uuids):
                continue
            self._waiting.append((when, VALUES[self._kind](line)))

    def _admit(self) -> None:
        waiting, self._waiting = self._waiting, []
        for when, values in waiting:
            if when <= (self.lived if self.end is None else self.end):
                self._add(when, values)
            elif self.end is None:
                self._waiting.append((when, values))
            else:
                self._passed_end = True

    def _carry(self, record: Record) -> dict[str, Any]:
        """The line made whole: a field is written when it changes."""
        key = str(record.get("gpu_index"))
        before = self._carried.get(key, {})
        if "uuid" in record and record["uuid"] != before.get("uuid"):
            before = {}
        line = self._carried[key] = {**before, **record}
        return line

    def _add(self, when: float, values: Mapping[str, float]) -> None:
        slot = slot_of(when - self._began)
        if slot < self.next_slot or slot < self._open_slot or not values:
            return
        if slot > self._open_slot:
            self._close_slot()
            self._open_slot, self._open = slot, Row("resources", int(when - self._began), when, {})
        self._open.values.update((self._prefix + name, value) for name, value in values.items())

    def _close_slot(self) -> None:
        if self._open.values:
            self._ready.append((self._open_slot, self._open))
            self._open = Row("resources", 0, self._began, {})


def _modified(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0
