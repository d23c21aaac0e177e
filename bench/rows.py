"""A row of the table, and the arithmetic that fills it.

Row("GET /metrics, p50", ours=0.0031, peer=0.0049, peer_name="nvitop-exporter", unit="ms", goal="<= 2/3 x", met=True)
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

_SCALES = {"ms": 1e3, "µs": 1e6, "s": 1.0, "MiB": 2.0**-20}


@dataclass
class Row:
    """Seconds and bytes as they were measured; `unit` says how they are shown. `peer` None: nobody to compare with."""

    what: str
    ours: float
    peer: float | None = None
    peer_name: str = ""
    unit: str = ""
    goal: str = ""
    met: bool | None = None
    samples: str = ""

    def ratio(self) -> str:
        return "-" if not self.peer else f"{self.ours / self.peer:.2f}"

    def verdict(self) -> str:
        return {None: "", True: "met", False: "**missed**"}[self.met]

    def cells(self) -> list[str]:
        peer = "-" if self.peer is None else f"{shown(self.peer, self.unit)} ({self.peer_name})"
        return [self.what, self.ratio(), shown(self.ours, self.unit), peer, self.goal, self.verdict(), self.samples]


@dataclass
class Section:
    """Rows that belong together, and what a reader should know of how they came about."""

    title: str
    rows: list[Row]
    notes: list[str] = field(default_factory=list)


def shown(value: float, unit: str) -> str:
    number = value * _SCALES.get(unit, 1.0)
    digits = 0 if abs(number) >= 100 else 1 if abs(number) >= 10 else 2
    return f"{number:,.{digits}f} {unit}".rstrip()


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of them do not exceed."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, max(0, -int(-share * len(ranked) // 1) - 1))]


def median(values: Sequence[float]) -> float:
    ranked, middle = sorted(values), len(values) // 2
    return ranked[middle] if len(ranked) % 2 else (ranked[middle - 1] + ranked[middle]) / 2
