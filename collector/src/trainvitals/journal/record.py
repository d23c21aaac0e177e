"""One record, one line: `{"timestamp":"2025-07-30T12:34:56.789Z","step":12,"loss":NaN}`.

A line is JSON but for NaN, Infinity and -Infinity, which stand bare as Python's json writes them: a
diverged loss is data, and a string "NaN" stays a string. A line that holds integers over 64 bit
opens with a blank, so that a reader knows to take the parser that keeps them.
"""

import json
import math
import re
import time
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

import orjson

Record = dict[str, Any]

_LINE = orjson.OPT_APPEND_NEWLINE
_LONG_INTEGER = re.compile(rb"\d{19}")
_MILLISECONDS = tuple(f"{ms:03d}Z" for ms in range(1000))
_last_second: list[tuple[int, str]] = [(-1, "")]


class Unencodable(ValueError):
    """A record that no JSON can hold (nested without end)."""


def timestamp(nanoseconds: int | None = None) -> str:
    """UTC with milliseconds. The part up to the second is kept, as most calls fall into the same one."""
    milliseconds = (time.time_ns() if nanoseconds is None else nanoseconds) // 1_000_000
    second, rest = divmod(milliseconds, 1000)
    known, text = _last_second[0]
    if second != known:
        text = time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(second))
        _last_second[0] = (second, text)
    return text + _MILLISECONDS[rest]


def seconds(stamp: object) -> float | None:
    """The Unix time of a record's timestamp, or None where it is not one."""
    if not isinstance(stamp, str):
        return None
    try:
        moment = datetime.fromisoformat(stamp.removesuffix("Z"))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()


def encode(record: Mapping[str, Any]) -> bytes:
    """The line of a record, newline included. orjson turns NaN into null: such lines are made again."""
    try:
        line = orjson.dumps(record, option=_LINE)
    except TypeError:
        return _encode_slowly(record)
    return _encode_slowly(record) if b"null" in line else line


def decode(line: bytes) -> Record:
    """The record of a line; ValueError where it is none."""
    if line.startswith(b" "):
        record = json.loads(line)
    else:
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            record = json.loads(line)
    if not isinstance(record, dict):
        raise ValueError("a journal line is a JSON object")
    return record


def _encode_slowly(record: Mapping[str, Any]) -> bytes:
    try:
        line = json.dumps(_plain(record), separators=(",", ":")).encode()
    except (RecursionError, ValueError, TypeError, ArithmeticError) as error:
        raise Unencodable(f"{type(error).__name__}: {error}") from error
    return (b" " if _LONG_INTEGER.search(line) else b"") + line + b"\n"


def _plain(value: Any) -> Any:
    """The nearest thing JSON has: numbers of other libraries as numbers, what nothing fits as text."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return _plain_scalar(value)
    if isinstance(value, Mapping):
        return {_key(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    return _foreign(value)


def _plain_scalar(value: Any) -> Any:
    """A subclass (an enum, a numpy float) as its base, so that its own repr never gets into the line."""
    for base in (bool, int, float, str):
        if isinstance(value, base):
            return base.__str__(value) if base is str else base(value)
    return value


def _key(key: Any) -> str:
    return key if isinstance(key, str) else str(key)


def _foreign(value: Any) -> Any:
    try:
        if hasattr(value, "tolist"):
            return _plain(value.tolist())
        if hasattr(value, "__float__"):
            return float(value)
        return str(value)
    except Exception as error:
        return f"<{type(value).__name__}: {type(error).__name__}>"


def nonfinite_fields(record: Mapping[str, Any]) -> list[str]:
    return [key for key, value in record.items() if type(value) is float and not math.isfinite(value)]
