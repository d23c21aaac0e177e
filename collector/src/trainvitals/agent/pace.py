"""Of one rank: how fast it was of late, where its loss goes, when it paused; from its lines, as they are read.

pace = Pace(); pace.take(records); pace.steps_per_second(now)  ->  3.1
"""

import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from trainvitals.detect.loss_trend import Blocks
from trainvitals.detect.stats import mean, sigma
from trainvitals.journal.index import step_of
from trainvitals.journal.record import Record, as_number, seconds

WINDOW_SECONDS, LEAST_MARKS, MOST_MARKS = 60.0, 5, 240
MARK_SECONDS = 1.0
# Longer than both without a step, and it has no speed any more.
SILENT_SECONDS, SILENT_STEPS = 60.0, 10.0
PAUSE_SECONDS, MOST_PAUSES = 60.0, 1000
# The loss is known by means of blocks that grow with the run; so many of the last ones are its trend.
BLOCKS, TREND_BLOCKS, LEAST_BLOCKS = 64, 16, 6
TREND_ERRORS, TREND_SHARE = 2.0, 0.002


class Mark(NamedTuple):
    when: float
    step: float


class Pace:
    def __init__(self) -> None:
        self.last: Mark | None = None
        # Times without a line: when they began and ended.
        self.pauses: deque[tuple[float, float]] = deque(maxlen=MOST_PAUSES)
        self._marks: deque[Mark] = deque(maxlen=MOST_MARKS)
        self._losses = Blocks(1, BLOCKS)
        # Its last loss was a number.
        self._has_loss = False

    def take(self, records: Sequence[Record]) -> None:
        for record in records:
            loss = as_number(record.get("loss"))
            if loss is None:
                continue
            self._has_loss = math.isfinite(loss)
            if self._has_loss:
                self._losses.add(loss)
        for record in (records[0], records[-1]) if records else ():
            when, step = seconds(record.get("timestamp")), step_of(record)
            if when is not None and step is not None:
                self._mark(Mark(when, step))

    def _mark(self, mark: Mark) -> None:
        last, self.last = self.last, mark
        if last and mark.when - last.when > PAUSE_SECONDS:
            self.pauses.append((last.when, mark.when))
        if last and mark.step < last.step:
            self._marks.clear()
            self._losses = Blocks(1, BLOCKS)
        if not self._marks or mark.when - self._marks[-1].when >= MARK_SECONDS:
            self._marks.append(mark)

    def steps_per_second(self, now: float) -> float | None:
        """None where it cannot be told yet, or no more."""
        last, marks = self.last, list(self._marks)
        if last is None or not marks:
            return None
        recent = [mark for mark in marks if last.when - mark.when <= WINDOW_SECONDS]
        first = (recent if len(recent) >= LEAST_MARKS else marks[-LEAST_MARKS:])[0]
        if last.step <= first.step or last.when <= first.when:
            return None
        speed = (last.step - first.step) / (last.when - first.when)
        return speed if now - last.when <= max(SILENT_SECONDS, SILENT_STEPS / speed) else None

    def loss_trend(self) -> str | None:
        """A fall that may be noise is none."""
        means = self._losses.means[-TREND_BLOCKS:]
        if len(means) < LEAST_BLOCKS or not self._has_loss:
            return None
        before, after = means[: len(means) // 2], means[len(means) // 2 :]
        change = mean(after) - mean(before)
        error = math.hypot(sigma(before) / math.sqrt(len(before)), sigma(after) / math.sqrt(len(after)))
        if abs(change) <= max(TREND_ERRORS * error, TREND_SHARE * abs(mean(before))):
            return "flat"
        return "rising" if change > 0 else "falling"
