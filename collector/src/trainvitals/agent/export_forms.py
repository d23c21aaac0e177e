"""Rows as a file to keep: CSV, JSON, JSON lines or Parquet, made piece by piece.

as_csv(rows)      ->  b"timestamp,rank,step,loss\r\n2025-07-30T12:34:56.789Z,0,1,NaN\r\n", …
as_parquet(rows)  ->  ModuleNotFoundError where pyarrow is not installed

NaN and infinities survive: as NaN and Infinity in CSV and JSON lines, as text in JSON, as they are in Parquet.
"""

import csv
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

import orjson

from trainvitals.agent.export_rows import Rows, Some, columns, joined
from trainvitals.journal.record import Record, as_json, encode, seconds

MAX_COLUMNS = 5000
# Of Parquet, in one group of rows.
GROUP_CELLS = 400_000
# What a spreadsheet takes for the beginning of a formula, the wide forms of East Asia among them.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_FIRST = ("timestamp", "rank", "gpu_index", "step")


def as_csv(rows: Rows) -> Iterator[bytes]:
    names = _names(columns(rows(), MAX_COLUMNS))
    yield _csv_lines([[_cell(name) for name in names]])
    for some in joined(rows()):
        yield _csv_lines([[_cell(row.get(name)) for name in names] for row in some])


def as_json_document(rows: Rows) -> Iterator[bytes]:
    yield b'{"rows":['
    before = b"\n"
    for some in filter(None, joined(rows())):
        yield before + b",\n".join(map(_json, some))
        before = b",\n"
    yield b"\n]}\n"


def as_json_lines(rows: Rows) -> Iterator[bytes]:
    """As the journal has them: a line each, NaN bare."""
    for some in rows():
        yield b"".join(map(encode, some))


def as_parquet(rows: Rows) -> Iterator[bytes]:
    import pyarrow as pa
    from pyarrow import parquet

    kinds = columns(rows(), MAX_COLUMNS)
    makers = {name: _column(name, kinds[name]) for name in _names(kinds)}
    schema = pa.schema([(name, getattr(pa, form)(*more)) for name, (form, more, _) in makers.items()])
    written = _Written()
    with parquet.ParquetWriter(pa.PythonFile(written, mode="w"), schema) as writer:
        for some in _gathered(joined(rows()), GROUP_CELLS // max(1, len(makers))):
            found = {name: [None if (value := row.get(name)) is None else make(value) for row in some]
                     for name, (_, _, make) in makers.items()}  # fmt: skip
            writer.write_table(pa.table(found, schema))
            yield written.taken()
    yield written.taken()


FORMS: dict[str, tuple[str, Callable[[Rows], Iterator[bytes]]]] = {
    "csv": ("text/csv; charset=utf-8", as_csv),
    "json": ("application/json", as_json_document),
    "jsonl": ("application/x-ndjson", as_json_lines),
    "parquet": ("application/vnd.apache.parquet", as_parquet),
}


def begun(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """What cannot be had fails here, and not in the middle of a download."""
    first = next(chunks, b"")
    return chain([first], chunks)


class _Written(io.RawIOBase):
    """Takes what is written, until it is handed on."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self._parts.append(bytes(content))
        return len(content)

    def taken(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)


def _gathered(portions: Iterator[Some], least: int) -> Iterator[Some]:
    gathered: Some = []
    for some in portions:
        gathered += some
        if len(gathered) >= least:
            yield gathered
            gathered = []
    if gathered:
        yield gathered


def _names(kinds: Mapping[str, set[type]]) -> list[str]:
    first = [name for name in _FIRST if name in kinds]
    return first + [name for name in kinds if name not in _FIRST]


def _csv_lines(rows: list[list[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode("utf-8", "replace")


def _cell(value: Any) -> str:
    """A text that looks like a formula has an apostrophe before it; numbers are what they are."""
    if value is None:
        return ""
    if type(value) is float:
        return repr(value) if math.isfinite(value) else str(as_json(value))
    if type(value) is int:
        return str(value)
    text = value if isinstance(value, str) else json.dumps(value)
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULAS) else text


def _json(row: Record) -> bytes:
    plain = {name: _plain(value) for name, value in row.items()}
    try:
        return orjson.dumps(plain)
    except TypeError:  # an integer over 64 bit, or half a letter
        return json.dumps(plain).encode()


def _plain(value: Any) -> Any:
    if type(value) is float:
        return as_json(value)
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _column(name: str, kinds: set[type]) -> tuple[str, tuple[str, ...], Callable[[Any], Any]]:
    """How a column of Parquet is made: the name of its type, what that takes, and how a value becomes one."""
    known = kinds - {type(None)}
    if name == "timestamp":
        return "timestamp", ("ms", "UTC"), _milliseconds
    if known and known <= {int}:
        return "int64", (), int
    if known and known <= {int, float}:
        return "float64", (), float
    if known == {bool}:
        return "bool_", (), bool
    return "string", (), _text


def _milliseconds(stamp: Any) -> int | None:
    when = seconds(stamp)
    return None if when is None else round(1000 * when)


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode("utf-8", "replace").decode()
