"""How a run gets on: when it last made a step, how long its steps and its pauses usually are, what it is in now.

What TrainingStalled, TrainingHangSuspected and TrainingCheckpointOverdue judge by.
"""

from typing import NamedTuple

from trainvitals.detect.limits import Limits
from trainvitals.detect.line import Line
from trainvitals.detect.open_phases import OpenPhases
from trainvitals.detect.stats import Window
from trainvitals.journal.record import Record, seconds

STEPS_KEPT, FIRST_STEPS = 200, 3
KEPT_SECONDS = 86400.0
GAP = "gap"
_PAUSES = ("evaluation_seconds", "checkpoint_seconds")
_OPEN = "phase_open_timestamp_seconds_"


class Longest(NamedTuple):
    seconds: float
    when: float


class Progress:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._steps: dict[int, int] = {}
        self._made = 0
        self._took = Window(STEPS_KEPT)
        self.began: float | None = None
        self.last: float | None = None
        # Somebody was told that it stands still.
        self.is_told = False
        self._told_gap = 0.0
        self._longest: dict[str, Longest] = {}
        self._phases, self._timed = OpenPhases(), dict[int, Record]()

    def begin(self, when: float) -> None:
        """A new process: it loads and compiles, and makes its first step then."""
        self.began, self.last, self._made = when, None, 0
        self.is_told, self._told_gap = False, 0.0
        self._steps.clear()
        self._longest.pop(GAP, None)

    def step(self, line: Line, rank: int) -> None:
        if self.began is None:
            self.began = line.when
        if line.took is not None:
            self._timed[rank] = line.values
        for name in _PAUSES:
            if name in line.values and (spent := line.number(name)) is not None:
                self._note(name, spent, line.when)
        if self._steps.get(rank) == line.step:
            return
        self._steps[rank] = line.step
        self._made += rank == min(self._steps)
        if self.last is None or line.when > self.last:
            self._between(line, rank)
            self.last = line.when

    def _between(self, line: Line, rank: int) -> None:
        """Of one rank alone: those of all come in between."""
        if rank != min(self._steps):
            return
        if self.last is None:
            self._took.push(line.took or 0.0)
            return
        gap = line.when - self.last
        self._took.push(gap if line.took is None else max(line.took, min(gap, line.took * 2)))
        if gap > self._longest_of(GAP, line.when):
            self._note(GAP, self._usual_gap(gap, line.when), line.when)

    def _usual_gap(self, gap: float, when: float) -> float:
        """One that was told as a stall is a habit, as evaluating unannounced is, once another one is as long."""
        limits = self._limits
        if not self.is_told and gap <= self.budget(when, limits.stall_seconds, limits.stall_steps):
            return gap
        before, self._told_gap, self.is_told = self._told_gap, gap, False
        return min(gap, before, limits.pause_seconds)

    def _note(self, name: str, spent: float, when: float) -> None:
        if spent >= self._longest_of(name, when):
            self._longest[name] = Longest(spent, when)

    def _longest_of(self, name: str, when: float) -> float:
        known = self._longest.get(name)
        return known.seconds if known and when - known.when < KEPT_SECONDS else 0.0

    def event(self, rank: int, record: Record) -> None:
        """What follows a phase has its own time."""
        self._phases.take(rank, record)
        when = seconds(record.get("timestamp"))
        if record.get("event") == "phase" and when is not None and self.last is not None:
            self.last = max(self.last, when)

    def typical(self) -> float:
        return self._took.median() if len(self._took) else 0.0

    def silent(self, now: float) -> float | None:
        """Seconds since the last step; None while the first ones are made, which may be compiled in between."""
        return None if self.last is None or self._made < FIRST_STEPS else now - self.last

    def budget(self, now: float, seconds: float, steps: float) -> float:
        """How long it may be silent: some seconds, some steps, or half as long again as it was within the last day."""
        return max(seconds, steps * self.typical(), self.pause(now))

    def pause(self, now: float) -> float:
        """What is no longer than that is nothing new."""
        return self._limits.pause_growth * max(self._longest_of(name, now) for name in (GAP, *_PAUSES))

    def is_in_phase(self, now: float) -> bool:
        """An announced evaluation or saving, within the time that such a one may take."""
        allowed = max(self._limits.pause_seconds,
                      self._limits.pause_growth * max(self._longest_of(name, now) for name in _PAUSES))  # fmt: skip
        return any(now - float(opened) < allowed
                   for rank in self._phases.ranks()
                   for name, opened in self._phases.of(rank, self.began or 0.0, self._timed.get(rank, {})).items()
                   if name.startswith(_OPEN) and isinstance(opened, float))  # fmt: skip
