"""All that is judged of one run, from its lines, its events, and the passing of time."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainvitals.detect.advice import ADVICE
from trainvitals.detect.checkpoint import CheckpointOverdue
from trainvitals.detect.data_starved import DataStarved
from trainvitals.detect.finding import WEIGHT, Finding, Place
from trainvitals.detect.fragments import Fragments
from trainvitals.detect.gradient import GradientExplosion, GradientLimit, VanishingLayers
from trainvitals.detect.host import RunMemory
from trainvitals.detect.learning_rate import LearningRateTooHigh, LearningRateTooLow
from trainvitals.detect.limits import Limits
from trainvitals.detect.line import Line, finite
from trainvitals.detect.loss_diverging import LossDiverging
from trainvitals.detect.loss_spike import LossSpike
from trainvitals.detect.loss_trend import LossTrend
from trainvitals.detect.nonfinite import NonFinite
from trainvitals.detect.progress import Progress
from trainvitals.detect.rates import Rates
from trainvitals.detect.stalled import HangSuspected, Load, Stalled
from trainvitals.detect.step_time import StepTimeOutlier
from trainvitals.detect.straggler import Straggler
from trainvitals.detect.throughput import ThroughputRegression
from trainvitals.errors import plain
from trainvitals.journal.layout import PREEMPTION_SECONDS
from trainvitals.journal.record import Record, as_number, seconds

# What concerns the run as a whole, whichever rank's lines it was seen in.
OF_RUN = frozenset(("TrainingLossSpike", "TrainingLossDiverging", "TrainingLossNotDecreasing", "TrainingLossPlateau",
                    "TrainingLearningRateTooLow", "TrainingLearningRateTooHigh", "TrainingThroughputRegression",
                    "TrainingStepTimeOutlier", "TrainingDataStarved"))  # fmt: skip
_EACH = (NonFinite, GradientLimit, VanishingLayers)
# Of the rank that tells the loss; the others tell the same, or their part of it.
_LEADING = (LossSpike, LossDiverging, LossTrend, GradientExplosion, LearningRateTooLow, LearningRateTooHigh,
            StepTimeOutlier, ThroughputRegression)  # fmt: skip
ENDINGS = {"crashed": "TrainingCrashed", "killed": "TrainingKilled"}
ENDED_SECONDS = 3900.0
# Other ranks' last lines may come a little after the end.
LATE_SECONDS, FOLLOWS_SECONDS = 5.0, 60.0
STAYS_STEPS = 10.0
# Of an alert of the run's own that tells no cooldown; and how soon after it another one has to come.
OWN_SECONDS, AGAIN_SECONDS = 600.0, 60.0
MAX_NAME, MAX_WORDS = 200, 2000


class Rank:
    def __init__(self, limits: Limits) -> None:
        self.detectors: list[Any] = [kind(limits) for kind in _EACH]
        self.fragments = Fragments(limits)
        self.last = Line(0.0, 0, {})
        # Of the leading one.
        self.rates: Rates | None = None

    def begin(self) -> None:
        """The time between two lives is no step's."""
        self.last = self.last._replace(when=0.0)
        for detector in self.detectors:
            if isinstance(detector, StepTimeOutlier):
                detector.begin()

    def line(self, record: Record, when: float, end: float) -> Line:
        """`end`: the step from which the run is at its end."""
        number, last = as_number(record.get("step")), self.last
        step = int(number) if number is not None and number - number == 0 else last.step
        took = as_number(record.get("step_duration_seconds"))
        if took is None or not 0 <= took < float("inf"):
            took = (
                (when - last.when) / (step - last.step) if last.when and step > last.step and when > last.when else None
            )
        norm, rate, loss = finite(record, "gradient_norm"), finite(record, "learning_rate"), finite(record, "loss")
        if self.rates is not None and rate is not None and loss is not None:
            self.rates.take(step, rate, loss)
        self.last = Line(when, step, record, took, step >= end, loss, norm, rate, self.rates)
        return self.last


class RunWatch:
    def __init__(self, run: str, limits: Limits) -> None:
        self.run, self._limits = run, limits
        self._ranks: dict[int, Rank] = {}
        self._leading: int | None = None
        self._tells_loss = False
        self._end = math.inf
        self.progress, self._checkpoint = Progress(limits), CheckpointOverdue(limits)
        self._stalled, self._hang = Stalled(limits), HangSuspected(limits)
        # By machine.
        self._memory: dict[str, RunMemory] = {}
        self._starved, self._straggler = DataStarved(limits), Straggler(limits)
        self._hosts: dict[int, str] = {}
        # A process of it lives, or lately did: of steps of long ago alone nobody knows.
        self.is_alive = False
        self.over: float | None = None
        self.status = ""
        # When each rank said that it was told to end.
        self._signalled: dict[int, float] = {}
        # The kinds that it tells of by itself.
        self.own: set[str] = set()

    def plan(self, steps: float | None) -> None:
        self._end = math.inf if steps is None else self._limits.schedule_end * steps

    def settle_on(self, hosts: Mapping[int, str]) -> None:
        """Whose agent tells of a rank need not be its own machine's: of a run on several each is named."""
        known = {rank: host for rank, host in hosts.items() if host}
        self._hosts = self._straggler.hosts = known if len(set(known.values())) > 1 else {}

    @property
    def is_over(self) -> bool:
        return self.over is not None

    def is_revived(self, when: float) -> bool:
        return self.over is not None and when > self.over + LATE_SECONDS

    def begin(self, when: float) -> None:
        self.is_alive, self.over, self.status, self._signalled = True, None, "", {}
        self.progress.begin(when)
        self._checkpoint.begin()
        self._memory = {}
        self._starved.begin()
        for rank in self._ranks.values():
            rank.begin()

    def pass_by(self, rank: int, record: Record, when: float) -> None:
        """A line of long ago: it is late to judge it, and a step was made."""
        known = self._ranks.get(rank) or self._new(rank)
        self.progress.step(known.line(record, when, self._end), rank)

    def take(self, rank: int, record: Record, when: float, used: float | None = None) -> Iterator[Finding]:
        """`used`: of the memory of the rank's GPU."""
        self.is_alive = True
        known = self._ranks.get(rank) or self._new(rank)
        line = known.line(record, when, self._end)
        if rank != self._leading:
            self._lead(rank, "loss" in record)
        self.progress.step(line, rank)
        for detector in known.detectors:
            if finding := detector.update(line):
                yield self._of_rank(finding, rank)
        for finding in (self._starved.update(line, rank), known.fragments.update(line, used)):
            if finding:
                yield self._of_rank(finding, rank)
        for finding in self._straggler.update(line, rank):
            yield self._placed(finding, finding.place)

    def event(self, rank: int, record: Record) -> None:
        self.progress.event(rank, record)
        when = seconds(record.get("timestamp"))
        if record.get("event") == "checkpoint" and when is not None:
            self._checkpoint.take(when)
        elif record.get("event") == "signal" and when is not None:
            self._signalled[rank] = when

    def alert(self, rank: int, record: Record) -> Iterator[Finding]:
        again = max(AGAIN_SECONDS, STAYS_STEPS * self.progress.typical())
        if finding := own_alert(record, again):
            self.own.add(finding.kind)
            yield finding._replace(place=Place(self.run, str(rank)))

    def lost(self, rank: int, when: float) -> Finding | None:
        """The others may wait for it for ever."""
        if self._was_told(rank, when):
            return None
        return self._unended("killed", f"rank {rank} is gone without having ended, and others live")

    def _was_told(self, rank: int | None, when: float) -> bool:
        told = self._signalled.get(rank) if rank is not None else max(self._signalled.values(), default=None)
        return told is not None and when - told < PREEMPTION_SECONDS

    def ended(self, status: str, when: float, error: str = "", rank: int | None = None) -> Finding | None:
        """The other ranks of one that crashed are killed: that is told once. What was told to end was not killed."""
        if status == "killed" and self._was_told(rank, when):
            status = "preempted"
        before, over, self.over = self.status, self.over, when
        # When one rank fails the launcher ends the others, whose word may come first.
        follows = before == "preempted" and over is not None and when - over < FOLLOWS_SECONDS
        if before and not follows:
            return None
        self.status = status or self.status
        if status not in ENDINGS:
            return None
        what = f"the run ended by an exception{': ' if error else ''}{error}" if status == "crashed" else (
            "the run is gone without having ended")  # fmt: skip
        return self._unended(status, what)

    def _unended(self, status: str, what: str) -> Finding:
        return Finding(ENDINGS[status], "page", what, place=Place(self.run), step=self.last_step(),
                       stays=ENDED_SECONDS)  # fmt: skip

    def tick(self, now: float, loads: Sequence[Load]) -> Iterator[Finding]:
        if self.is_over or not self.is_alive:
            return
        stands = self._stalled.update(now, self.progress), self._hang.update(now, self.progress, loads)
        self.progress.is_told |= any(stands)
        for finding in (*stands, self._checkpoint.update(now)):
            if finding:
                yield finding._replace(place=Place(self.run), step=self.last_step())

    def memory(self, now: float, resident: float, available: float, host: str = "") -> Iterator[Finding]:
        known = self._memory.get(host) or self._memory.setdefault(host, RunMemory(self._limits))
        if finding := known.update(now, resident, available):
            yield finding._replace(place=Place(self.run))

    def last_step(self) -> int | None:
        return max((rank.last.step for rank in self._ranks.values()), default=None)

    def _new(self, rank: int) -> Rank:
        self._ranks[rank] = Rank(self._limits)
        return self._ranks[rank]

    def _lead(self, rank: int, tells_loss: bool) -> None:
        """The lowest rank that tells a loss; while none does, the lowest."""
        before = self._leading
        if before is not None and (tells_loss, -rank) <= (self._tells_loss, -before):
            return
        if before is not None:
            del self._ranks[before].detectors[len(_EACH) :]
            self._ranks[before].rates = None
        self._leading, self._tells_loss = rank, tells_loss
        self._ranks[rank].rates = Rates(self._limits)
        self._ranks[rank].detectors += [kind(self._limits) for kind in _LEADING]

    def _of_rank(self, finding: Finding, rank: int) -> Finding:
        if finding.kind in OF_RUN:
            return self._placed(finding, Place())
        host = self._hosts.get(rank)
        what = f"on {host}: {finding.what}" if host else finding.what
        return self._placed(finding._replace(what=what), Place(rank=str(rank)))

    def _placed(self, finding: Finding, place: Place) -> Finding:
        """Where steps are slow, or long pauses are usual, what was said with one still holds with the next."""
        pause = min(self._limits.pause_seconds, self.progress.pause(self.progress.last or 0.0))
        stays = max(finding.stays, STAYS_STEPS * self.progress.typical(), pause)
        return finding._replace(place=place._replace(run=self.run), stays=stays)


def own_alert(record: Record, again: float) -> Finding | None:
    """What a condition in the trainer said of itself; it is over when it has not said so again `again` seconds after
    it may."""
    name, severity = record.get("name"), record.get("severity")
    if not isinstance(name, str) or not name or severity not in WEIGHT:
        return None
    kind = plain(f"{name} (the run's own)" if name in ADVICE else name)
    step, cooldown = finite(record, "step"), finite(record, "cooldown_seconds")
    stays = OWN_SECONDS if cooldown is None else max(0.0, cooldown) + again
    return Finding(kind[:MAX_NAME], severity, str(record.get("message") or name)[:MAX_WORDS],
                   step=None if step is None else int(step), stays=stays)  # fmt: skip
