"""TensorBoard event files: DIR/<run>/events.out.tfevents.<start>.<host>.<id>, one a run, written by us alone.

`training/loss`, `resources/gpu_0_temperature_c`, `parameters/<layer>`, `gradients/<layer>`, and the config as text and
as hyperparameters. After a kill the file is cut back to where it was certain; the same bytes follow.
"""

import hashlib
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

# Not the plugins' own summary modules, which import TensorFlow where it is installed.
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.types_pb2 import DT_STRING
from tensorboard.plugins.hparams import api_pb2, plugin_data_pb2
from tensorboard.summary.writer.record_writer import RecordWriter

from trainvitals.journal import layout
from trainvitals.journal.record import as_number
from trainvitals.sinks.config_values import flat
from trainvitals.sinks.rows import Row
from trainvitals.sinks.run_info import RunInfo

_HPARAM_STATUS = {"running": api_pb2.STATUS_RUNNING, "finished": api_pb2.STATUS_SUCCESS}


class TensorBoard:
    def __init__(self, place: str) -> None:
        self._folder = Path(place)
        self.kept: dict[str, Any] = {}
        self._file: IO[bytes] | None = None
        self._rows = 0

    def open(self, info: RunInfo, identity: str, kept: dict[str, Any], rows: int) -> int:
        name = kept.get("file") or f"events.out.tfevents.{int(info.began)}.{layout.host_name()}.{identity}"
        folder = self._folder / info.run
        folder.mkdir(parents=True, exist_ok=True)
        self._file = open(folder / name, "ab")  # noqa: SIM115 - written to until the run ends
        self._rows = rows if self._cut(int(kept.get("bytes", 0))) else 0
        self.kept = {"file": name, "bytes": self._file.tell(), "told": kept.get("told", "") if self._rows else ""}
        if not self.kept["bytes"]:
            self._append([Event(wall_time=info.began, file_version="brain.Event:2")])
        self._tell(info)
        return self._rows

    def write(self, rows: list[Row], first: int, doubtful: bool) -> None:
        self._append(Event(wall_time=row.time, step=row.step, summary=Summary(value=_values(row))) for row in rows)
        self._rows = first + len(rows)

    def held(self) -> int:
        return self._rows

    def finish(self, info: RunInfo) -> None:
        self._tell(info)

    def abandon(self) -> None:
        if self._file:
            # What a failed write left in the buffer is no loss: it is read again.
            with suppress(OSError):
                self._file.close()

    def _cut(self, size: int) -> bool:
        """Back to what is certain; False where that is gone."""
        assert self._file
        there = os.fstat(self._file.fileno()).st_size
        self._file.truncate(size if there >= size else 0)
        self._file.seek(0, os.SEEK_END)
        return there >= size

    def _append(self, events: Iterable[Event]) -> None:
        assert self._file
        writer = RecordWriter(self._file)
        for event in events:
            writer.write(event.SerializeToString())
        writer.flush()
        self.kept = self.kept | {"bytes": self._file.tell()}

    def _tell(self, info: RunInfo) -> None:
        """Config and status, once for each state of them."""
        told = hashlib.sha256(repr([sorted(flat(info.config).items()), info.status]).encode()).hexdigest()
        if told != self.kept["told"]:
            when = info.ended or info.began
            self._append([Event(wall_time=when, summary=Summary(value=values)) for values in _description(info)])
            self.kept = self.kept | {"told": told}


def _values(row: Row) -> list[Summary.Value]:
    if row.kind == "histograms":
        return [Summary.Value(tag=name, histo=_histogram(told)) for name, told in row.values.items()]
    return [Summary.Value(tag=f"{row.kind}/{name}", simple_value=value) for name, value in row.values.items()]


def _histogram(told: Mapping[str, Any]) -> HistogramProto:
    edges, counts = [float(edge) for edge in told["edges"]], [float(count) for count in told["counts"]]
    middle = [(low + high) / 2 for low, high in pairwise(edges)]
    total = sum(count * value for count, value in zip(counts, middle, strict=True))
    squares = sum(count * value * value for count, value in zip(counts, middle, strict=True))
    given = {name: as_number(told.get(name)) for name in ("min", "max", "sum", "sum_squares")}
    known = {"min": edges[0], "max": edges[-1], "sum": total, "sum_squares": squares}
    known |= {name: value for name, value in given.items() if value is not None}
    return HistogramProto(num=sum(counts), bucket_limit=edges[1:], bucket=counts, **known)


def _description(info: RunInfo) -> list[list[Summary.Value]]:
    facts = {"name": info.name, "status": info.status, "error": info.error, **flat(info.config)}
    table = "".join(f"| {_cell(name)} | {_cell(value)} |\n" for name, value in facts.items() if value != "")
    values = [[_text("config", f"| | |\n|---|---|\n{table}")], [_session_start(info)]]
    return values if info.status == "running" else [*values, [_session_end(info)]]


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")


def _text(tag: str, text: str) -> Summary.Value:
    tensor = TensorProto(dtype=DT_STRING, string_val=[text.encode("utf-8", "replace")], tensor_shape=TensorShapeProto())
    return Summary.Value(tag=tag, tensor=tensor, metadata=_metadata("text", b""))


def _metadata(plugin: str, content: bytes) -> SummaryMetadata:
    return SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=plugin, content=content))


def _session_start(info: RunInfo) -> Summary.Value:
    start = plugin_data_pb2.SessionStartInfo(start_time_secs=info.began, group_name=info.run)
    for name, value in flat(info.config).items():
        if isinstance(value, bool):
            start.hparams[name].bool_value = value
        elif (number := as_number(value)) is not None:
            start.hparams[name].number_value = number
        else:
            start.hparams[name].string_value = str(value)
    return _hparams("session_start_info", session_start_info=start)


def _session_end(info: RunInfo) -> Summary.Value:
    status = _HPARAM_STATUS.get(info.status, api_pb2.STATUS_FAILURE)
    end = plugin_data_pb2.SessionEndInfo(status=status, end_time_secs=info.ended or time.time())
    return _hparams("session_end_info", session_end_info=end)


def _hparams(name: str, **content: Any) -> Summary.Value:
    data = plugin_data_pb2.HParamsPluginData(version=0, **content).SerializeToString()
    return Summary.Value(tag=f"_hparams_/{name}", metadata=_metadata("hparams", data))
