"""A record and its line: whatever a training loop logs comes back, and nothing it logs can raise."""

import dataclasses
import enum
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainvitals.journal.record import (
    Unencodable,
    decode,
    encode,
    seconds,
    timestamp,
    timestamp_at,
)

TEXT = st.text(st.characters(codec=None, exclude_categories=()))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
VALUES = st.recursive(
    SCALARS | st.integers(-(2**70), 2**70) | st.integers(2**63 - 2, 2**64 + 2),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4) | st.tuples(inner, inner),
    max_leaves=12,
)


def as_read(value: Any) -> Any:
    """What JSON makes of a value: tuples are lists."""
    if isinstance(value, dict):
        return {key: as_read(item) for key, item in value.items()}
    return [as_read(item) for item in value] if isinstance(value, (list, tuple)) else value


def same(one: Any, other: Any) -> bool:
    """Equal in type and value, where NaN is NaN and -0.0 is not 0.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return (math.isnan(one) and math.isnan(other)) or (one == other and repr(one) == repr(other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@given(st.dictionaries(TEXT, VALUES, max_size=8))
def test_any_record_survives(record: dict[str, Any]) -> None:
    line = encode(record)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert same(decode(line), as_read(record))


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308, 2**53 + 1, -(2**63), 2**64 - 1, 2**64,
     -(2**200), 10**4000, "NaN", "null", "Infinity", "\ud800", "日本語 \u2028 \x00", "x" * 5_000_000, [[], {}], None,
     {"a": [math.nan, {"b": None}]}],
    ids=lambda value: repr(value)[:20].encode("ascii", "backslashreplace").decode(),
)  # fmt: skip
def test_what_is_awkward_survives(value: object) -> None:
    for beside in ({}, {"loss": math.nan}, {"count": 2**64}):
        assert same(decode(encode({"value": value, **beside})), {"value": value, **beside})


def test_not_a_number_stands_bare_in_the_line() -> None:
    line = encode({"a": math.nan, "b": math.inf, "c": -math.inf, "d": "NaN", "e": None})
    assert line == b'{"a":NaN,"b":Infinity,"c":-Infinity,"d":"NaN","e":null}\n'


def test_only_a_line_with_a_long_integer_opens_with_a_blank() -> None:
    assert encode({"n": 2**64}) == b' {"n":18446744073709551616}\n'
    assert encode({"n": 2**63}).startswith(b"{")
    assert encode({"n": 12, "loss": math.nan}).startswith(b"{")


def test_an_integer_that_no_parser_takes_becomes_text() -> None:
    assert decode(encode({"n": 10**5000, "step": 1})) == {"n": hex(10**5000), "step": 1}


def test_keys_become_text() -> None:
    assert decode(encode({1: "a", 2.5: "b", None: "c"})) == {"1": "a", "2.5": "b", "None": "c"}  # type: ignore[dict-item]
    assert decode(encode({("x", 1): 1})) == {"('x', 1)": 1}  # type: ignore[dict-item]


class Scalar:
    """As numpy's and torch's: a number by `item` or `tolist`."""

    def __init__(self, value: object, method: str = "tolist") -> None:
        setattr(self, method, lambda: value)


class Floating:
    def __float__(self) -> float:
        return 2.5


class Failing:
    def __float__(self) -> float:
        raise RuntimeError("CUDA error")

    def __str__(self) -> str:
        raise RuntimeError("no text either")

    __repr__ = __str__


class FailingText(Failing):
    __float__ = None  # type: ignore[assignment]


class OddInteger(int):
    def __int__(self) -> int:
        raise RuntimeError("no")

    __str__ = __repr__ = __index__ = __int__  # type: ignore[assignment]


class OddFloat(float):
    def __float__(self) -> float:
        raise RuntimeError("no")

    __str__ = __repr__ = __float__  # type: ignore[assignment]


class OddText(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError("no")


class FailingKey:
    def __str__(self) -> str:
        raise RuntimeError("no")


class FailingMapping(Mapping[str, Any]):
    def __getitem__(self, key: str) -> Any:
        raise RuntimeError("no")

    def __iter__(self) -> Iterator[str]:
        return iter("ab")

    def __len__(self) -> int:
        return 2


class Precision(enum.Enum):
    HALF = "bf16"


class Level(enum.IntEnum):
    HIGH = 3


@dataclasses.dataclass
class Settings:
    rate: float
    layers: list[int]
    _hidden: int = 0


FOREIGN: list[tuple[Any, Any]] = [
    (Scalar(1.5), 1.5),
    (Scalar(7, "item"), 7),
    (Scalar([1.0, [2.0]]), [1.0, [2.0]]),
    (Scalar(math.inf), math.inf),
    (Floating(), 2.5),
    (Failing(), "<Failing: RuntimeError>"),
    (FailingText(), "<FailingText: TypeError>"),
    (OddInteger(5), 5),
    (OddFloat(0.5), 0.5),
    (OddText("text"), "text"),
    (Precision.HALF, "bf16"),
    (Level.HIGH, 3),
    (Settings(0.1, [1, 2]), {"rate": 0.1, "layers": [1, 2]}),
    (datetime(2025, 7, 30, 12, 34, 56, tzinfo=timezone.utc), "2025-07-30T12:34:56+00:00"),
    (b"\xff", "b'\\xff'"),
    (frozenset({4}), [4]),
    (2 + 3j, "(2+3j)"),
]


@pytest.mark.parametrize(
    ("value", "read"), FOREIGN, ids=[f"{type(v).__name__}-{n}" for n, (v, _) in enumerate(FOREIGN)]
)
def test_values_of_other_libraries_become_the_nearest_thing(value: object, read: object) -> None:
    """The same in a line that a NaN beside them sends the slow way."""
    assert same(decode(encode({"value": value})), {"value": read})
    assert same(decode(encode({"value": value, "loss": math.nan})), {"value": read, "loss": math.nan})


def endless() -> list[Any]:
    inner: list[Any] = []
    inner.append(inner)
    return inner


class Unrolling:
    """Twice itself: what walks on after the first failure never comes to an end."""

    def tolist(self) -> object:
        return [self, self]


@pytest.mark.parametrize(
    "record",
    [{"a": endless()}, {"a": Unrolling()}, {FailingKey(): 1}, FailingMapping(), {"a": FailingMapping()}],
    ids=["itself", "unrolling", "key", "mapping", "inner mapping"],
)
def test_what_cannot_be_written_is_said_so_and_in_one_way(record: Any) -> None:
    with pytest.raises(Unencodable):
        encode(record)


@pytest.mark.parametrize(
    "line",
    [b"", b"\n", b"x", b"null", b"[1]", b'"text"', b"1", b'{"a":1', b'{"a":1}}', b'{"a":1} {"b":2}', b"{'a':1}", b"NaN",
     b"\x00" * 64, b"\xff\xfe{", b"[" * 100_000, b'{"a":' * 100_000, b'{"a":' + b"9" * 5000 + b"x}", b"\x80abc"],
    ids=lambda line: repr(line[:12]),
)  # fmt: skip
def test_what_is_no_record_is_a_value_error(line: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        decode(line)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_record_or_a_value_error(line: bytes) -> None:
    with suppress(ValueError):
        assert isinstance(decode(line), dict)


@given(st.integers(0, 4_102_444_800_000))
def test_timestamps_read_back(milliseconds: int) -> None:
    text = timestamp(milliseconds * 1_000_000 + 999_999)
    assert len(text) == len("2025-07-30T12:34:56.789Z")
    assert seconds(text) == pytest.approx(milliseconds / 1000, abs=1e-6)


def test_timestamps_are_utc_to_the_millisecond() -> None:
    assert timestamp(1_753_878_896_789_000_000) == "2025-07-30T12:34:56.789Z"
    assert timestamp_at(1_753_878_896.789) == "2025-07-30T12:34:56.789Z"
    assert timestamp(0) == "1970-01-01T00:00:00.000Z"
    assert seconds("2025-07-30T14:34:56+02:00") == 1_753_878_896


@pytest.mark.parametrize("stamp", [None, 12, "", "yesterday", "2025-13-01T00:00:00Z", "0001-01-01T00:00:00+23:59", []])
def test_what_is_no_time_is_unknown(stamp: object) -> None:
    assert seconds(stamp) is None or isinstance(seconds(stamp), float)
    assert stamp == "0001-01-01T00:00:00+23:59" or seconds(stamp) is None


def test_a_plain_line_is_read_by_any_parser() -> None:
    line = encode({"step": 12, "loss": 0.25, "name": "é"})
    assert orjson.loads(line) == json.loads(line) == {"step": 12, "loss": 0.25, "name": "é"}
