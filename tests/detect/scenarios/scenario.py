"""A scenario: a recording that is made of a seed, and the truth about it.

for scenario in all_scenarios(): recording = scenario.record(); recording.write(folder); recording.expected
"""

import dataclasses
import random
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.detect.scenarios.node import Node
from tests.detect.scenarios.training import Training
from tests.detect.scenarios.truth import Allowed, Expected

Case = Literal["clear", "faint", "near", "healthy", "chain"]
# Of a seed, and of chance that is the same each time.
Build = Callable[[int, random.Random], "Recording"]


@dataclass
class Recording:
    runs: tuple[Training, ...] = ()
    nodes: tuple[Node, ...] = ()
    expected: tuple[Expected, ...] = ()
    allowed: tuple[Allowed, ...] = ()
    # Training files alone, in a folder without a name that means anything.
    bare: bool = False
    # Done to the folder once it is written: what no healthy writer would do.
    spoil: Callable[[Path], None] | None = dataclasses.field(default=None, repr=False)

    def write(self, folder: Path) -> None:
        for run in self.runs:
            run.write(folder, self.bare)
        for node in self.nodes:
            node.write(folder)
        if self.spoil is not None:
            self.spoil(folder)

    @property
    def began(self) -> float:
        return min(thing.start for thing in (*self.runs, *self.nodes))

    @property
    def ended(self) -> float:
        return max([run.ended for run in self.runs] + [node.start + node.seconds for node in self.nodes])

    def steps_between(self, run: str, since: float, until: float) -> int | None:
        """Steps that rank 0 ended between two moments."""
        named = [one for one in self.runs if one.run == run] or list(self.runs)
        if not named:
            return None
        ends = named[0].line.ends[0]
        return max(0, bisect_right(ends, until) - bisect_left(ends, since))


@dataclass(frozen=True)
class Scenario:
    name: str
    family: str
    case: Case
    # The alerts that it is a case of.
    kinds: tuple[str, ...]
    seed: int
    build: Build = dataclasses.field(repr=False)

    def record(self) -> Recording:
        """The same each time."""
        return self.build(self.seed, random.Random(self.name))


@dataclass(frozen=True)
class Row:
    """A row of a family's table: made into so many scenarios, each of another seed."""

    case: Case
    what: str
    build: Build
    kinds: tuple[str, ...] = ()
    times: int = 1


def family(name: str, kind: str, rows: Iterable[Row]) -> Iterator[Scenario]:
    for row in rows:
        for seed in range(row.times):
            of = row.kinds or ((kind,) if kind else ())
            yield Scenario(f"{kind or name}/{row.case}-{row.what}-{seed}", name, row.case, of, seed, row.build)
