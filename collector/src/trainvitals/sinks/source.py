"""What is to be handed on, read in portions that can be read again exactly: a run's files and the node's series.

    source.read()  ->  Portion(rows=[…], place={"training_metrics_….jsonl": 8123, "gpu/node1": 17})
From the same position `source.read(until=place)` gives the same rows after a restart.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from trainvitals.journal import layout
from trainvitals.journal.record import Record
from trainvitals.journal.tail import Tail
from trainvitals.sinks import run_info
from trainvitals.sinks.resources import NodeSeries
from trainvitals.sinks.rows import Row, histogram_rows, training_rows
from trainvitals.sinks.run_info import RunInfo

PORTION_BYTES = 1 << 18
# A run tells its GPUs once it uses them; one that tells none within that time is shown all of the node.
NAMED_WITHIN_SECONDS = 60.0
Place = dict[str, int]


class Portion(NamedTuple):
    rows: list[Row]
    place: Place


class Source(Protocol):
    def info(self) -> RunInfo: ...
    def read(self, until: Mapping[str, int] | None = None, *, last: bool = False) -> Portion: ...
    def position(self) -> dict[str, Any]: ...
    def progress(self) -> tuple[int, int]: ...
    def is_past_end(self) -> bool: ...


class NodeSource:
    """GPUs and host alone, from `began` on."""

    def __init__(self, folder: Path, info: RunInfo, position: Mapping[str, Any] | None = None) -> None:
        self._info = info
        self.series = dict(_node_series(folder, folder.name, info.began, ""))
        _set_slots(self.series, position or {})

    def info(self) -> RunInfo:
        return self._info

    def read(self, until: Mapping[str, int] | None = None, *, last: bool = False) -> Portion:
        return Portion(list(_series_rows(self.series, until, last)), self.position()["slots"])

    def position(self) -> dict[str, Any]:
        return {"slots": {name: series.next_slot for name, series in self.series.items()}}

    def progress(self) -> tuple[int, int]:
        return 0, 0

    def is_past_end(self) -> bool:
        return True


class RunSource:
    """A run's records and histograms, and the series of the GPUs and hosts it runs on."""

    def __init__(self, folder: Path, root: Path, began: float, position: Mapping[str, Any] | None = None,
                 node: tuple[str, str] = ("", "")) -> None:  # fmt: skip
        """`node` is a host's name and the name of the folder that has its lines."""
        self._folder, self._root, self._node = folder, root, dict([node])
        self._began = began
        position = position or {}
        self._tail = Tail({str(folder / name): place for name, place in position.get("files", {}).items()})
        self._series: dict[str, NodeSeries] = {}
        self._slots: Mapping[str, int] = position.get("slots", {})
        self._gpus: dict[int, str] = {}
        self._places: Mapping[int, tuple[str, str, str]] = {}

    def info(self) -> RunInfo:
        """What is told later, as which GPUs it uses, counts from now on."""
        now = time.time()
        info = run_info.read(self._folder)._replace(began=self._began, gpus=self._gpus)
        self._places = info.places
        for host, uuids in info.hosts.items():
            if f"gpu/{host}" not in self._series:
                self._add_series(host, "" if host == info.main_host else f"{host}/")
            # A part of a GPU has a uuid that no line has.
            gpus = self._series[f"gpu/{host}"]
            gpus.uuids = uuids if all(uuid.startswith("GPU-") for uuid in uuids) else frozenset()
            gpus.waits = not (uuids or info.is_over) and time.time() < self._began + NAMED_WITHIN_SECONDS
        for series in self._series.values():
            series.end, series.lived = info.ended, now
        self._name_gpus()
        return info

    def read(self, until: Mapping[str, int] | None = None, *, last: bool = False) -> Portion:
        rows = list(_series_rows(self._series, until, last))
        self._name_gpus()
        for path in sorted(self._files()):
            rows += self._rows(path, None if until is None else until.get(path.name, 0))
        return Portion(rows, self._place())

    def position(self) -> dict[str, Any]:
        slots = {name: series.next_slot for name, series in self._series.items()}
        return {"files": {Path(path).name: place for path, place in self._tail.cursor().items()}, "slots": slots}

    def progress(self) -> tuple[int, int]:
        """Bytes of the run's own files: read, and there."""
        sizes = [path.stat().st_size for path in self._tail.followed() if path.exists()]
        return sum(self._offsets().values()), sum(sizes)

    def is_past_end(self) -> bool:
        return all(series.is_past_end() for series in self._series.values())

    def _add_series(self, host: str, prefix: str) -> None:
        series = dict(_node_series(self._root / "gpu" / self._node.get(host, host), host, self._began, prefix))
        _set_slots(series, {"slots": self._slots})
        self._series |= series

    def _name_gpus(self) -> None:
        """A trainer may know its GPU's uuid alone; the number is in the node's lines."""
        for rank, (host, number, uuid) in self._places.items():
            name = self._series[f"gpu/{host}"].names.get(uuid) or (f"gpu_{number}" if number else "")
            if name:
                self._gpus[rank] = name

    def _files(self) -> Iterator[Path]:
        with suppress(OSError):
            for path in self._folder.iterdir():
                if layout.TRAINING_FILE.match(path.name) or layout.EVENTS_FILE.match(path.name):
                    self._tail.follow(path)
                    yield path

    def _rows(self, path: Path, until: int | None) -> list[Row]:
        size = PORTION_BYTES if until is None else until - self._offsets().get(path.name, 0)
        if size <= 0 or not (until is not None or self._tail.has_news(path)):
            return []
        records: list[Record] = self._tail.read(path, size)
        events = layout.EVENTS_FILE.match(path.name)
        if events:
            return histogram_rows(int(events[1]), records, self._began)
        return training_rows(layout.training_rank(path.name) or 0, records, self._began)

    def _offsets(self) -> Place:
        return {Path(path).name: int(place[0]) for path, place in self._tail.cursor().items()}

    def _place(self) -> Place:
        return self._offsets() | {name: series.next_slot for name, series in self._series.items()}


def _node_series(folder: Path, host: str, began: float, prefix: str) -> Iterator[tuple[str, NodeSeries]]:
    yield f"gpu/{host}", NodeSeries(folder, "gpu", began, prefix=prefix)
    yield f"host/{host}", NodeSeries(folder, "host", began, prefix=prefix)


def _set_slots(series: Mapping[str, NodeSeries], position: Mapping[str, Any]) -> None:
    for name, one in series.items():
        one.next_slot = int(position.get("slots", {}).get(name, 0))


def _series_rows(series: Mapping[str, NodeSeries], until: Mapping[str, int] | None, last: bool) -> Iterator[Row]:
    for name, one in sorted(series.items()):
        yield from one.rows(None if until is None else until.get(name, 0), last=last)
