"""Figures in words: short, with their unit, a dash for what is not known.

count(12400)  ->  "12,400"        span(2460)  ->  "41 min"        short(1.8234)  ->  "1.823"
"""

import math
from collections.abc import Callable

from trainvitals.agent import verdict_words

UNKNOWN = "-"
_LONGEST = 1e10
_LARGE = ((1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))


def known(value: float | None, show: Callable[[float], str]) -> str:
    return UNKNOWN if value is None else show(value)


def odd(value: float) -> str:
    """What is no number, in words; nothing for those that are."""
    if math.isfinite(value):
        return ""
    return "NaN" if math.isnan(value) else "inf" if value > 0 else "-inf"


def whole(value: float, unit: str = "") -> str:
    return (odd(value) or f"{value:.0f}") + unit


def count(value: float) -> str:
    return odd(value) or f"{value:,.0f}"


def large(value: float) -> str:
    """`42.1k`"""
    for least, size, letter in _LARGE:
        if abs(value) >= least and math.isfinite(value):
            return f"{value / size:#.3g}".rstrip(".") + letter
    return short(value)


def short(value: float) -> str:
    """Four digits that tell."""
    return odd(value) or f"{value:.4g}"


def dollars(value: float) -> str:
    return odd(value) or f"${value:,.2f}"


def gib(mib: float) -> str:
    return odd(mib) or f"{mib / 1024:.1f}"


def span(seconds: float) -> str:
    """`3 h 20 min`; never of what no clock has shown."""
    return verdict_words.span(max(0.0, seconds)) if seconds < _LONGEST else UNKNOWN
