"""The rows of an export, read as they are handed on, some at a time: of a run's lines, or of GPUs and host.

run_rows(run_parts(folder, None), Range("step", 100, 200))
->  [{"timestamp": "…", "rank": 0, "step": 100, "loss": 1.82}, …], …
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from trainvitals.agent.node_log import carried, read_lines
from trainvitals.agent.run_state import as_label
from trainvitals.journal import layout
from trainvitals.journal.index import step_of
from trainvitals.journal.lines import groups, opened, records
from trainvitals.journal.record import Record, seconds
from trainvitals.journal.tail import MAX_LINE_BYTES

SOME = 1000
_OF_A_STEP = frozenset(("timestamp", "rank", "step", "epoch"))
Some = list[Record]
# They are read twice where columns have to be known before.
Rows = Callable[[], Iterator[Some]]


class Range(NamedTuple):
    """Of steps, or of times."""

    x: str = "step"
    start: float = -math.inf
    end: float = math.inf

    @property
    def is_all(self) -> bool:
        return self.start == -math.inf and self.end == math.inf

    def holds(self, record: Record) -> bool:
        if self.is_all:
            return True
        place = step_of(record) if self.x == "step" else seconds(record.get("timestamp"))
        return place is not None and self.start <= place <= self.end


class Part(NamedTuple):
    """A file, as long as it was when the export began."""

    rank: int
    path: Path
    size: int


def run_parts(folder: Path, rank: int | None) -> list[Part]:
    files = layout.training_files(folder)
    wanted = sorted(files) if rank is None else [rank] * (rank in files)
    return [Part(one, path, path.lstat().st_size) for one in wanted for path in files[one]]


def run_rows(parts: Sequence[Part], within: Range) -> Iterator[Some]:
    """Every line. OSError where a file is gone meanwhile: what is there would look like all."""
    for rank, path, size in parts:
        with opened(path.parent, path.name) as fd:
            for group in groups(fd, 0, SOME, size, longest=MAX_LINE_BYTES):
                yield [{"timestamp": record.get("timestamp"), "rank": rank, **record}
                       for record in records(group.lines) if within.holds(record)]  # fmt: skip


def node_rows(folder: Path, kinds: Sequence[str], gpus: Sequence[str] | None, within: Range) -> Iterator[Some]:
    """Whole lines: what did not change is in each. `gpus` is None for all; a row without `gpu_index` is the host's."""
    for kind in kinds:
        lines = (dict(line) for line in carried(read_lines(folder, within.start, kind)) if within.holds(line))
        mine = (line for line in lines if kind == "host" or gpus is None or as_label(line.get("gpu_index")) in gpus)
        while some := list(islice(mine, SOME)):
            yield some


def joined(portions: Iterator[Some]) -> Iterator[Some]:
    """Lines of one step become one row, where they tell different things."""
    last: Record = {}
    for some in portions:
        done: Some = []
        for row in some:
            if _belongs(last, row):
                last.update(row)
                continue
            done += [last] if last else []
            last = row
        yield done
    if last:
        yield [last]


def _belongs(before: Record, row: Record) -> bool:
    step = row.get("step")
    if step is None or before.get("step") != step or before.get("rank") != row.get("rank"):
        return False
    return not (before.keys() & row.keys()) - _OF_A_STEP


def columns(portions: Iterator[Some], most: int) -> Mapping[str, set[type]]:
    """Every field in the order in which they come, and what its values are. ValueError where they are too many."""
    found: dict[str, set[type]] = {}
    for name, value in (item for some in portions for row in some for item in row.items()):
        if name not in found:
            found[name] = set()
            if len(found) > most:
                raise ValueError(f"format: over {most} fields cannot be columns: take json or jsonl")
        found[name].add(_kind(value))
    return found


class Long(int):
    """A whole number that 64 bits cannot hold."""


def _kind(value: object) -> type:
    kind = type(value)
    return Long if kind is int and not -(2**63) <= value < 2**63 else kind  # type: ignore[operator]
