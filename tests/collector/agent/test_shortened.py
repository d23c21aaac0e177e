"""Numbers of a chart in few digits: what can be told apart there stays apart."""

import math
from collections.abc import Sequence

import pytest

from trainvitals.agent.shortened import MAX_DIGITS, Columns, shortened


def rounded(*values: float | None, digits: int = 4) -> Sequence[float | None]:
    found: Sequence[float | None] = shortened({"mean": list(values)}, digits)["mean"]
    return found


@pytest.mark.parametrize(("values", "shown"), [
    ((1.8243917, 1.9341), (1.8244, 1.9341)), ((0.0, -2.123456), (0.0, -2.123)), ((None, 3.0), (None, 3.0)),
    ((60_000.123, 60_003.456), (60_000.123, 60_003.456)), ((812_345_678_901.25, 0.5), (812_300_000_000, 0.5)),
    ((1_000_000.5, 1.8243917), (1_000_000, 1.824)), ((7, 12_345_678), (7, 12_345_678)),
    ((math.inf, 1.0), (math.inf, 1.0)), ((2.5, 2.5), (2.5, 2.5)), ((), ()),
])  # fmt: skip
def test_values_keep_what_tells_them_apart(values: tuple[float | None, ...], shown: tuple[float | None, ...]) -> None:
    assert tuple(rounded(*values)) == shown


def test_columns_of_one_thing_are_rounded_alike_and_places_not_at_all() -> None:
    columns: Columns = {"x": [1.23456789], "min": [1.23456789], "max": [1.23956789], "nonfinite": [0]}
    assert shortened(columns, 3) == {"x": [1.23456789], "min": [1.23457], "max": [1.23957], "nonfinite": [0]}


def test_as_many_digits_as_a_number_has_change_nothing() -> None:
    columns: Columns = {"mean": [0.1 + 0.2, math.pi]}
    assert shortened(columns, MAX_DIGITS) == columns
