"""The node's own journal files: a line a tick and GPU, a line a tick for the host, and its events.

A GPU line always holds the given fields; others are written when they changed, null where they became
unknown, and all of them in the first line of a file. So a day of 8 GPUs at 1 Hz stays near 250 MB.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from trainvitals.journal import retention
from trainvitals.journal.append import MAX_FILE_BYTES, Appender
from trainvitals.journal.record import Record, timestamp_at
from trainvitals.journal.tail import Tail
from trainvitals.model import Event, Reading

GIVEN_FIELDS = ("utilization_percent", "memory_used_mb", "memory_total_mb", "memory_percent", "temperature_celsius",
                "power_draw_watts", "fan_speed_percent")  # fmt: skip
Line = dict[str, Any]


def gpu_values(reading: Reading) -> Line:
    """The reading with the share of memory in use, the given fields first."""
    values: Line = dict(reading.values)
    used, total = values.get("memory_used_mb"), values.get("memory_total_mb")
    if used is not None and total:
        values["memory_percent"] = round(100 * used / total, 2)
    given = {name: values.pop(name) for name in GIVEN_FIELDS if name in values}
    return given | values


class NodeLog:
    def __init__(self, folder: Path) -> None:
        self.gpus = Appender(folder, "gpu_metrics", suffix=".jsonl", max_bytes=MAX_FILE_BYTES)
        self.host = Appender(folder, "host_metrics", suffix=".jsonl", max_bytes=MAX_FILE_BYTES)
        self.events = Appender(folder, "events.jsonl")
        self._last: dict[object, Line] = {}
        self._file: dict[object, Path | None] = {}

    def write(self, fresh: Iterable[Reading], known: Iterable[Reading]) -> None:
        """A line for each GPU, and for the host, of which something is new; made of all that is known."""
        when = {(reading.scope, reading.labels): reading.timestamp for reading in fresh}
        for reading in known:
            key = (reading.scope, reading.labels)
            if key not in when:
                continue
            if reading.scope == "gpu":
                values = gpu_values(reading) | {"uuid": reading.label("uuid")}
                head: Line = {"gpu_index": int(reading.label("gpu"))}
                self._write_line(self.gpus, key, _stamp(when[key]) | head, values)
            elif reading.scope == "host":
                self._write_line(self.host, key, _stamp(when[key]), dict(reading.values))

    def write_event(self, event: Event) -> None:
        self.events.append(_stamp(event.timestamp) | {"event": event.kind} | dict(event.labels) | dict(event.details))

    def close(self) -> None:
        for appender in self.appenders():
            appender.close()

    def appenders(self) -> tuple[Appender, ...]:
        return self.gpus, self.host, self.events

    def _write_line(self, appender: Appender, key: object, head: Line, values: Line) -> None:
        changed = self._changed(key, values)
        if not appender.append(head | changed):
            return
        if self._file.get(key) != appender.path:
            self._file[key] = appender.path
            if len(changed) < len(values):
                appender.append(head | values)
        self._last[key] = values

    def _changed(self, key: object, values: Line) -> Line:
        last = self._last.get(key, {})
        changed = {name: value for name, value in values.items() if name in GIVEN_FIELDS or last.get(name) != value}
        return changed | {name: None for name in last if name not in values}


def _stamp(when: float) -> Line:
    return {"timestamp": timestamp_at(when)}


def read_lines(folder: Path, since: float, kind: str = "gpu") -> Iterator[Record]:
    """A node's lines from `since` on, the oldest first, as they lie in the files."""
    tail = Tail()
    for path in retention.node_files(folder):
        if path.name.startswith(kind) and path.stat().st_mtime >= since:
            tail.follow(path)
            while records := tail.read(path):
                yield from records
            tail.forget(path)


def carried(records: Iterable[Mapping[str, Any]]) -> Iterator[Line]:
    """Lines made whole again: what did not change is taken over from the line before."""
    last: dict[object, Line] = {}
    for record in records:
        key = record.get("gpu_index")
        last[key] = {**last.get(key, {}), **record}
        yield last[key]
