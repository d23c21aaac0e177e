"""The runs that ended last, for the page: known from what was followed of them, else from the ends of their files.

    past.add(folder, state); past.settle(…); past.readings  ->  (Reading("run", (("run", "gemma"),), {…}, 1.0),)
They are read once. What counts from a run's first line on is left out: nobody read that far back.
"""

from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from trainvitals.agent.run_state import RunState
from trainvitals.journal import layout
from trainvitals.journal.record import Record
from trainvitals.journal.tail import Tail
from trainvitals.model import Histogram, Reading

KEEP_RUNS = 10
END_BYTES = 1 << 16


class Past:
    def __init__(self) -> None:
        self._kept: dict[str, tuple[float, Path, RunState]] = {}
        self._told: dict[str, tuple[Reading, ...]] = {}
        self.readings: tuple[Reading, ...] = ()

    def add(self, folder: Path, state: RunState) -> None:
        self._kept[folder.name] = (state.ended or 0.0, folder, state)
        if len(self._kept) > KEEP_RUNS:
            self.drop(min(self._kept, key=lambda name: self._kept[name][0]))

    def drop(self, name: str) -> None:
        self._kept.pop(name, None)
        self._told.pop(name, None)

    def settle(self, there: Collection[str]) -> None:
        """Of all that came and went only those that stay are read; a run whose folder is gone is gone."""
        for gone in self._kept.keys() - there:
            self.drop(gone)
        newest = sorted(self._kept.values(), key=lambda kept: kept[0], reverse=True)
        for ended, folder, state in newest:
            if folder.name not in self._told:
                self._told[folder.name] = tuple(_readings(folder, state, ended))
        self.readings = tuple(reading for _, folder, _ in newest for reading in self._told[folder.name])


def _readings(folder: Path, state: RunState, ended: float) -> Iterator[Reading]:
    if not state.ranks:
        for rank, path in _last_files(folder).items():
            state.rank(rank).take(_last_records(path))
    for reading in state.readings(ended):
        values = {name: value for name, value in reading.values.items()
                  if "_total" not in name and not isinstance(value, Histogram)}  # fmt: skip
        if values:
            yield reading._replace(values=values)


def _last_files(folder: Path) -> dict[int, Path]:
    with suppress(OSError):
        files = sorted(folder.iterdir())
        return {rank: path for path in files if (rank := layout.training_rank(path.name)) is not None}
    return {}


def _last_records(path: Path) -> list[Record]:
    with suppress(OSError):
        return Tail({str(path): [max(0, path.stat().st_size - END_BYTES), ""]}).read(path)
    return []
