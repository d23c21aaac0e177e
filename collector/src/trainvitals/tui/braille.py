"""A course of values as a filled graph in braille dots, two values a cell, four dots a row.

graph([0.0, 50.0, 100.0, None], rows=1, low=0.0, high=100.0)  ->  ["⢠⡇"]
"""

import math
from collections.abc import Sequence

DOTS = 4
_LEFT, _RIGHT = (0, 0x40, 0x44, 0x46, 0x47), (0, 0x80, 0xA0, 0xB0, 0xB8)
# By how many dots stand in its left and in its right column.
_CELLS = [[chr(0x2800 + left + right) if left + right else " " for right in _RIGHT] for left in _LEFT]


def graph(values: Sequence[float | None], rows: int, low: float, high: float) -> list[str]:
    """The highest row first. What is not known is a gap, what is known is a dot high at least."""
    most = rows * DOTS
    heights = [_height(value, most, low, high) for value in values]
    heights += [0] * (len(heights) % 2)
    pairs = list(zip(heights[::2], heights[1::2], strict=True))
    drawn = []
    for below in range(most - DOTS, -1, -DOTS):
        dots = [min(DOTS, max(0, height - below)) for height in range(most + 1)]
        drawn.append("".join([_CELLS[dots[left]][dots[right]] for left, right in pairs]))
    return drawn


def _height(value: float | None, most: int, low: float, high: float) -> int:
    if value is None or not math.isfinite(value):
        return 0
    share = (value - low) / (high - low) if high > low else 0.5
    return max(1, round(min(1.0, max(0.0, share)) * most))
