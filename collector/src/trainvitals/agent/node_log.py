"""The node's own journal files: a line a tick and GPU, a line a tick for the host, and its events.

A GPU line always holds the given fields; others are written when they changed, null where they became
unknown, and all of them in the first line of a file. So a day of 8 GPUs at 1 Hz stays near 250 MB.

The events' file is set aside as events.1.jsonl when it is full, in the place of the one before.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainvitals.agent.beside import Beside
from trainvitals.agent.run_state import as_label
from trainvitals.journal import retention, slow
from trainvitals.journal.append import MAX_FILE_BYTES, Appender
from trainvitals.journal.node_events import EVENTS, OLDER_EVENTS
from trainvitals.journal.record import Record, timestamp_at
from trainvitals.journal.tail import Tail
from trainvitals.model import Event, Reading

GIVEN_FIELDS = ("utilization_percent", "memory_used_mb", "memory_total_mb", "memory_percent", "temperature_celsius",
                "power_draw_watts", "fan_speed_percent")  # fmt: skip
MAX_EVENTS_BYTES = 8 * 2**20
Line = dict[str, Any]


def gpu_values(reading: Reading) -> Line:
    """The reading with the share of memory in use, the given fields first."""
    values: Line = dict(reading.values)
    used, total = values.get("memory_used_mb"), values.get("memory_total_mb")
    if used is not None and total:
        values["memory_percent"] = round(100 * used / total, 2)
    given = {name: values.pop(name) for name in GIVEN_FIELDS if name in values}
    return given | values


@dataclass(frozen=True, slots=True)
class _Written:
    """What a reader of the file knows by now, the file, and how many lines had been dropped before."""

    values: Line = field(default_factory=dict)
    file: Path | None = None
    dropped: int = 0


class NodeLog:
    def __init__(self, folder: Path) -> None:
        self.gpus = Appender(folder, "gpu_metrics", suffix=".jsonl", max_bytes=MAX_FILE_BYTES)
        self.host = Appender(folder, "host_metrics", suffix=".jsonl", max_bytes=MAX_FILE_BYTES)
        self.events = Appender(folder, EVENTS)
        self._folder = folder
        self._events_lock = threading.Lock()
        self._beside = Beside()
        self._written: dict[object, _Written] = {}

    def write(self, fresh: Iterable[Reading], known: Sequence[Reading]) -> None:
        """A line for each GPU, and for the host, of which something is new; made of all that is known."""
        when = {(reading.scope, reading.labels): reading.timestamp for reading in fresh}
        beside = self._beside.fields(known)
        for reading in known:
            at = when.get((reading.scope, reading.labels))
            if at is None:
                continue
            if reading.scope == "gpu":
                values = gpu_values(reading) | {"uuid": reading.label("uuid")}
                number = int(reading.label("gpu"))
                self._write_line(self.gpus, number, _stamp(at) | {"gpu_index": number}, values)
            elif reading.scope == "host":
                self._write_line(self.host, "host", _stamp(at), dict(reading.values) | beside)

    def write_event(self, event: Event) -> None:
        self.keep(_stamp(event.timestamp) | {"event": event.kind} | dict(event.labels) | dict(event.details))

    def keep(self, event: Mapping[str, Any]) -> None:
        """From any thread."""
        with self._events_lock:
            self.events.append(event)
            path = self._folder / EVENTS
            with suppress(OSError):
                if path.stat().st_size > MAX_EVENTS_BYTES:
                    path.replace(self._folder / OLDER_EVENTS)
                    self.events.close()

    def close(self) -> None:
        deadline = slow.flush_deadline()
        for appender in self.appenders():
            appender.close(deadline)

    def appenders(self) -> tuple[Appender, ...]:
        return self.gpus, self.host, self.events

    def _write_line(self, appender: Appender, key: object, head: Line, values: Line) -> None:
        dropped, written = appender.counts.dropped, self._written.get(key, _Written())
        if written.values.get("uuid") != values.get("uuid"):  # another GPU: nothing is taken over from the one before
            written = _Written(file=written.file, dropped=dropped)
        unknown = {name: None for name in written.values if name not in values}
        line = values | unknown
        if written.dropped == dropped:  # else a line that told of a change may be among those lost
            line = _changes(written.values, line)
        if not appender.append(head | line):
            return
        if written.file != appender.path:
            unknown = {}
            if not line.items() >= values.items():
                appender.append(head | values)
        self._written[key] = _Written(values | unknown, appender.path, dropped)


def _changes(before: Line, now: Line) -> Line:
    return {name: value for name, value in now.items()
            if before.get(name) != value or (name in GIVEN_FIELDS and value is not None)}  # fmt: skip


def _stamp(when: float) -> Line:
    return {"timestamp": timestamp_at(when)}


def read_lines(folder: Path, since: float, kind: str = "gpu") -> Iterator[tuple[Path, Record]]:
    """A node's lines from `since` on, the oldest first, as they lie in the files, each with its file."""
    tail = Tail()
    for path in retention.node_files(folder):
        if path.name.startswith(kind) and _is_newer(path, since):
            tail.follow(path)
            while records := tail.read(path):
                for record in records:
                    yield path, record
            tail.forget(path)


def _is_newer(path: Path, since: float) -> bool:
    try:
        return path.stat().st_mtime >= since
    except OSError:  # tidied up meanwhile
        return False


def carried(lines: Iterable[tuple[Path, Mapping[str, Any]]]) -> Iterator[Line]:
    """Lines made whole again: what did not change is taken over from the line before, of the same file and GPU."""
    last: dict[object, Line] = {}
    file: Path | None = None
    for path, record in lines:
        if path != file:
            file, last = path, {}
        key = as_label(record.get("gpu_index"))
        before = last.get(key, {})
        if "uuid" in record and record["uuid"] != before.get("uuid"):
            before = {}
        last[key] = {**before, **record}
        yield last[key]
