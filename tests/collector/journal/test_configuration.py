"""A configuration of anything at all: bounded, plain, and read at once."""

import weakref
from collections.abc import Iterator, Mapping
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest

from trainvitals.journal.configuration import taken, taken_list
from trainvitals.journal.record import decode, encode

np = pytest.importorskip("numpy", reason="numpy is not installed: make trainers")


class Elsewhere:
    """A tensor on a GPU: to read it is to wait."""

    device = "cuda:0"

    def numel(self) -> int:
        return 3

    def tolist(self) -> list[int]:
        raise AssertionError("read")

    __str__ = __float__ = item = tolist  # type: ignore[assignment]


class Failing(Mapping[str, Any]):
    def __getitem__(self, key: str) -> Any:
        raise RuntimeError("no")

    def __iter__(self) -> Iterator[str]:
        return iter("ab")

    def __len__(self) -> int:
        return 2


class FailingKey:
    def __str__(self) -> str:
        raise RuntimeError("no")


class Kind(Enum):
    ONE = "one"


def nested(depth: int) -> list[Any]:
    return [nested(depth - 1)] if depth else []


VALUES: list[tuple[Any, Any]] = [
    (np.zeros(5000), "<ndarray of 5000 elements>"), (np.arange(3), [0, 1, 2]), (np.float32(0.5), 0.5),
    (Elsewhere(), "<Elsewhere of 3 elements on cuda:0>"), ("x" * 10_001, "<text of 10001 characters>"),
    (dict.fromkeys(range(10_001)), "<dict of 10001 elements>"), ([0] * 10_001, "<list of 10001 elements>"),
    (bytes(5000), "<bytes of 5000 elements>"), (Failing(), "<Failing: RuntimeError>"), (Kind.ONE, "one"),
    ({FailingKey(): 1, "b": 2}, {"<FailingKey: RuntimeError>": 1, "b": 2}), (Path("/data"), "/data"),
    (date(2025, 7, 30), "2025-07-30"), ({1: None}, {"1": None}),
]  # fmt: skip


@pytest.mark.parametrize(("value", "plain"), VALUES, ids=[f"{type(v).__name__}-{n}" for n, (v, _) in enumerate(VALUES)])
def test_each_value_becomes_something_short_and_plain(value: Any, plain: Any) -> None:
    assert taken({"value": value, "lr": 0.1}) == {"value": plain, "lr": 0.1}


@pytest.mark.parametrize("odd", [MagicMock(), Mock(), nested(500), FailingKey(), Failing()],
                         ids=["magic", "mock", "nested", "text", "mapping"])  # fmt: skip
def test_what_cannot_be_read_costs_its_own_key_alone(odd: Any) -> None:
    read = decode(encode({"config": taken({"odd": odd, "lr": 0.1})}))["config"]
    assert read["lr"] == 0.1
    assert len(str(read["odd"])) < 300


def test_what_holds_itself_is_left_at_that() -> None:
    config: dict[str, Any] = {"lr": 0.1}
    config["self"] = config
    twice = [1]
    config["pair"] = [twice, twice]
    assert taken(config) == {"lr": 0.1, "self": "<dict within itself>", "pair": [[1], [1]]}


def test_a_config_that_is_much_altogether_stays_within_what_readers_take() -> None:
    """Each part alone is small; one holds itself twice over, and so has a million parts."""
    wide: list[Any] = []
    for _ in range(19):
        wide = [wide, wide]
    texts = {f"{number}": "é\0" * 2000 for number in range(5000)}
    for config in (texts, {"wide": wide}, {"a": {str(n): list(range(9000)) for n in range(9000)}}):
        plain = taken(config)
        assert "<left out: too much>" in str(plain)
        assert len(encode({"config": plain, "odd": float("nan")})) < 2**20


def test_a_config_that_is_no_mapping_after_all_is_said_so() -> None:
    assert taken(Failing()) == {"config": "<Failing: RuntimeError>"}
    assert taken_list(range(10_001)) == ["<list of 10001 elements>"]


def test_nothing_of_a_config_is_kept_alive() -> None:
    array = np.arange(5)
    alive = weakref.ref(array)
    plain = taken({"array": array})
    del array
    assert (plain, alive()) == ({"array": [0, 1, 2, 3, 4]}, None)
