"""One record, one line: `{"timestamp":"2025-07-30T12:34:56.789Z","step":12,"loss":NaN}`.

A line is JSON but for NaN, Infinity and -Infinity, which stand bare as Python's json writes them: a
diverged loss is data, and a string "NaN" stays a string. A line that holds integers over 64 bit
opens with a blank, so that a reader knows to take the parser that keeps them.
"""

import json
import math
import re
import signal
import time
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, timezone
from enum import Enum
from typing import Any

# Ctrl-C while orjson is loaded would end the process with a segmentation fault.
_before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
import orjson  # noqa: E402

signal.pthread_sigmask(signal.SIG_SETMASK, _before)

Record = dict[str, Any]

_LINE = orjson.OPT_APPEND_NEWLINE
_LONG_INTEGER = re.compile(rb"\d{19}")
# Python's own bound on the digits it turns into an integer, 4300, in bits.
_MAX_INTEGER_BITS = 14_283
_MILLISECONDS = tuple(f"{ms:03d}Z" for ms in range(1000))
_last_second = (-1_000_000_000, "")


class Unencodable(ValueError):
    """A record that no JSON can hold: nested without end, or a mapping that fails when it is read."""


def timestamp(nanoseconds: int | None = None) -> str:
    """UTC with milliseconds. The part up to the second is kept, as most calls fall into the same one."""
    global _last_second
    began, text = _last_second
    since = (time.time_ns() if nanoseconds is None else nanoseconds) - began
    if not 0 <= since < 1_000_000_000:
        second, since = divmod(since + began, 1_000_000_000)
        text = time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(second))
        _last_second = (second * 1_000_000_000, text)
    return text + _MILLISECONDS[since // 1_000_000]


def timestamp_at(when: float) -> str:
    """Of a Unix time, to the nearest millisecond."""
    return timestamp(round(when * 1000) * 1_000_000)


def seconds(stamp: object) -> float | None:
    """The Unix time of a record's timestamp, or None where it is not one."""
    if not isinstance(stamp, str):
        return None
    try:
        moment = datetime.fromisoformat(stamp[:-1] + "+00:00" if stamp[-1:] == "Z" else stamp)
        return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
    except (ValueError, OverflowError):
        return None


def as_number(value: object) -> float | None:
    """None for what is no number; an integer past the largest float is infinite."""
    if type(value) is float:
        return value
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def as_json(number: float) -> float | str:
    """JSON has no NaN: it is told as text, and so are infinities."""
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def encode(record: Mapping[str, Any]) -> bytes:
    """The line of a record, newline included."""
    try:
        return encode_plain(record)
    except TypeError:
        return _encode_slowly(record)


def encode_plain(record: Mapping[str, Any]) -> bytes:
    """TypeError where a value is not of JSON, or may be NaN: orjson turns that into null."""
    line = orjson.dumps(record, option=_LINE)
    # rfind takes a third of the time of `in` here.
    if line.rfind(b"null") < 0:
        return line
    raise TypeError("null")


def decode(line: bytes) -> Record:
    """The record of a line; ValueError where it is none."""
    try:
        record = json.loads(line) if line.startswith(b" ") else _loads(line)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if not isinstance(record, dict):
        raise ValueError("a journal line is a JSON object")
    return record


def _loads(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return json.loads(line)


def _encode_slowly(record: Mapping[str, Any]) -> bytes:
    try:
        line = json.dumps(_plain(record), separators=(",", ":")).encode()
    except Exception as error:
        raise Unencodable(type(error).__name__) from error
    return (b" " if _LONG_INTEGER.search(line) else b"") + line + b"\n"


def _plain(value: Any) -> Any:
    """The nearest thing JSON has: numbers of other libraries as numbers, what nothing fits as text."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return plain_scalar(value)
    if isinstance(value, Mapping):
        return {_key(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    return _foreign(value)


def plain_scalar(value: Any) -> Any:
    """A subclass (an enum, a numpy float) as its base, so that its own repr never gets into the line."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return float.__float__(value)
    number = int.__int__(value)
    return number if number.bit_length() < _MAX_INTEGER_BITS else hex(number)


def _key(key: Any) -> str:
    return str.__str__(key) if isinstance(key, str) else str(key)


def _foreign(value: Any) -> Any:
    """A value that fails costs itself, never the record."""
    try:
        return _plain(_unwrapped(value))
    except RecursionError:
        raise
    except Exception as error:
        return f"<{type(value).__name__}: {type(error).__name__}>"


def _unwrapped(value: Any) -> Any:
    """As orjson would write it where it can, so that a NaN elsewhere in the record changes no other field."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, date):
        return value.isoformat()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value) if field.name[0] != "_"}
    for method in ("tolist", "item", "__float__"):
        if hasattr(value, method):
            return getattr(value, method)()
    return str(value)
