"""How long: so many steps, or so many seconds.

span("5 steps") -> Span(steps=5)   span("5m") -> Span(seconds=300.0)   span("100") -> Span(steps=100, is_bare=True)
"""

import re
from typing import NamedTuple

SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
MAX_STEPS = 10_000
MAX_SECONDS = 7 * 86_400.0
_SPAN = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?(steps?|s|m|h|d)?")


class Span(NamedTuple):
    """`is_bare`: a number that does not say of what."""

    steps: int = 0
    seconds: float = 0.0
    is_bare: bool = False

    def __str__(self) -> str:
        return f"{self.seconds:g}s" if self.seconds else f"{self.steps} steps"


AT_ONCE = Span()


def span(text: str) -> Span:
    """ValueError says what to write."""
    match = _SPAN.fullmatch(text.strip())
    if match is None:
        raise ValueError("write it as 5 steps, 30s, 5m or 2h")
    number, unit = float(match[1]), match[2]
    if unit in SECONDS:
        return _in_seconds(number * SECONDS[unit])
    if number != int(number) or number > MAX_STEPS:
        raise ValueError(f"steps are a whole number up to {MAX_STEPS:,}")
    return Span(steps=int(number), is_bare=unit is None)


def _in_seconds(seconds: float) -> Span:
    if seconds > MAX_SECONDS:
        raise ValueError("it is at most seven days")
    return Span(seconds=seconds)
