"""One run to one target, so that a kill at any moment neither loses a point nor brings it twice.

Before a portion is handed over, its end is written down as a mark; once the target has it for certain, the mark
becomes the position. After a kill, or an error of the target, the portions behind the position are read again,
the same rows come out, and those that the target has are left out. An error is treated like a kill.
"""

import logging
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from trainvitals.sinks import without_logins
from trainvitals.sinks.rows import Row
from trainvitals.sinks.run_info import RunInfo
from trainvitals.sinks.source import Portion, Source
from trainvitals.sinks.state import StateFile

# A target that confirms nothing for so long gets no more: the journal keeps it.
MAX_MARKS = 2000

log = logging.getLogger("trainvitals.sinks")


class Backend(Protocol):
    """A target's own library."""

    kept: dict[str, Any]  # What it must find again after a kill, as JSON.

    def open(self, info: RunInfo, identity: str, kept: dict[str, Any], rows: int) -> int:
        """How many rows it has: at least `rows`, unless what it had is gone, then 0."""

    def write(self, rows: list[Row], first: int, doubtful: bool) -> None:
        """`first` is the number of the first row. Doubtful rows may be there already, in part."""

    def held(self) -> int:
        """How many rows it has for certain."""

    def finish(self, info: RunInfo) -> None:
        """The run's end, or as far as it came where it lives."""

    def abandon(self) -> None:
        """Lets go, whatever the state."""


def words(error: BaseException) -> str:
    """An error as one line."""
    return without_logins(" ".join(f"{type(error).__name__}: {error}".split()))[:300]


class _Mark(NamedTuple):
    rows: int
    points: int
    position: dict[str, Any]


class Stream:
    def __init__(self, file: StateFile, source: Callable[[dict[str, Any]], Source], backend: Backend) -> None:
        self._file, self._state, self._backend = file, file.state, backend
        self._make_source = source
        self._source = source(self._state.position)
        self._marks: list[_Mark] = []
        self._rows, self._points = self._state.rows, self._state.points

    @property
    def points(self) -> int:
        return self._points

    def progress(self) -> tuple[int, int]:
        return self._source.progress()

    def open(self) -> RunInfo:
        """Where it stopped, it goes on."""
        info = self._source.info()
        self._file.save()
        there = self._backend.open(info, self._state.id, self._state.kept, self._state.rows)
        if there < self._state.rows:
            log.warning("%s: what it had of run %s is gone: it gets it again", self._state.sink, info.run)
            self._state.reset()
            self._rows = self._points = 0
            self._source = self._make_source({})
            info = self._source.info()
        for _, until in list(self._state.marks):
            self._hand_over(self._source.read(until), there)
        self._settle()
        return info

    def advance(self, *, last: bool = False) -> bool:
        """Hands one portion over; False when there is nothing new, or the target takes no more for now."""
        if len(self._marks) < MAX_MARKS:
            before = self._source.position()
            portion = self._source.read(last=last)
            if portion.rows:
                self._state.marks.append((self._rows + len(portion.rows), portion.place))
                self._file.save()
                self._hand_over(portion)
                self._settle()
                return True
            if self._source.position() != before:
                return True
        if self._marks:
            self._settle()
        return False

    def info(self) -> RunInfo:
        return self._source.info()

    def is_past_end(self) -> bool:
        return self._source.is_past_end()

    def finish(self, info: RunInfo, over: list[Any]) -> None:
        """`over` says how far the run had come, so that one that goes on is told from one that is done."""
        self._backend.finish(info)
        self._settle()
        self._state.over = over if not self._marks else []
        self._file.save()

    def close(self) -> None:
        self._backend.abandon()
        self._file.close()

    def _hand_over(self, portion: Portion, there: int | None = None) -> None:
        """`there` rows are with the target already, in a portion that is read again."""
        first = self._rows
        self._rows += len(portion.rows)
        self._points += sum(len(row.values) for row in portion.rows)
        self._marks.append(_Mark(self._rows, self._points, self._source.position()))
        skipped = max(0, (there or 0) - first)
        if rows := portion.rows[skipped:]:
            self._backend.write(rows, first + skipped, there is not None)

    def _settle(self) -> None:
        """What the target has for certain is behind us."""
        held, done = self._backend.held(), 0
        for mark in self._marks:
            if mark.rows > held:
                break
            self._state.rows, self._state.points, self._state.position = mark
            done += 1
        if done:
            del self._marks[:done], self._state.marks[:done]
            self._state.kept = self._backend.kept
            self._file.save()
