"""Columns of numbers in as few digits as a chart can show: those of noise are hardly packed.

shortened({"x": [1.25, 2.5], "mean": [1.8243917, 1.9341], "peak": [1.93, None]}, 4)
->  {"x": [1.25, 2.5], "mean": [1.8244, 1.9341], "peak": [1.93, None]}

What lies close together keeps its differences, and what stands beside a spike its own digits.
"""

import math
from typing import Any

MAX_DIGITS = 17
ROUNDED = ("min", "max", "mean", "peak")
Columns = dict[str, Any]


def shortened(columns: Columns, digits: int) -> Columns:
    """As they are where so many digits are asked for as a number has."""
    if digits >= MAX_DIGITS:
        return columns
    known = [value for name in ROUNDED for value in columns.get(name, ()) if value is not None and math.isfinite(value)]
    span = max(known) - min(known) if known else 0.0
    least = _places(span, digits) if span else 0
    return {name: [_rounded(value, least, digits) for value in column] if name in ROUNDED else column
            for name, column in columns.items()}  # fmt: skip


def _rounded(value: float | None, least: int, digits: int) -> float | None:
    """A whole number stays one."""
    if not value or not math.isfinite(value) or isinstance(value, int):
        return value
    places = max(least, _places(value, digits))
    return round(value, places) if places > 0 else int(round(value, places))


def _places(value: float, digits: int) -> int:
    return digits - 1 - math.floor(math.log10(abs(value)))
