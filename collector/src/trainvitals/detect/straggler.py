"""TrainingStraggler: one rank, or one machine, keeps the others waiting, or many are slow alike.

Ranks are compared by what they do before they wait for each other: the wait for data and the forward pass. Where no
forward pass is told, ranks whose steps end together are compared by the wait alone; and where that is not told either,
or steps do not end together, ranks run freely, and whole steps tell. Those ranks may have been given slower machines on
purpose: a little slower than its peers is news only of one that was not so before.
"""

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from trainvitals.detect.finding import Finding, Place
from trainvitals.detect.in_step import InStep
from trainvitals.detect.limits import Limits
from trainvitals.detect.line import Line
from trainvitals.detect.stats import MEDIAN_ERROR, Window, median

# A little slower than the others is noise's to hide now and then.
STAYS = 300.0
BASELINE_STEPS, LEAST_BASELINE = 200, 30
HABIT_SIGMAS = 2.0
# So many ranks at least are more than a coincidence.
LEAST_GROUP = 3
MOST = 0.8
# The median of so many noisy steps says that a rank is slow when it is so many of its own errors above the others'.
SURE_ERRORS = 5.0
# Of a rank that told nothing while the others told so many steps each, nobody knows how fast it is.
GONE_STEPS = 50
WAIT, FORWARD = "data_wait_seconds", "forward_seconds"


@dataclass(slots=True)
class Lasting:
    """For how many lines, and since when, most of them said so."""

    lines: int = 0
    since: float = 0.0
    of_them: int = 0

    def count(self, is_so: bool, when: float) -> None:
        if not self.lines:
            self.since = when
        self.lines += 1
        self.of_them += is_so
        if self.of_them < MOST * self.lines:
            self.lines = self.of_them = 0


@dataclass(slots=True)
class Pace:
    """A rank's last steps, and for how many of them, and since when, it has been slower than its peers."""

    times: Window
    # When each of these steps ended, and how long it took with all waiting.
    ends: deque[tuple[float, float]]
    level: float = 0.0
    slow_steps: int = 0
    since: float = 0.0
    # What the slow steps took in all.
    spent: float = 0.0
    # So much slower that it is worth waking somebody.
    much: Lasting = field(default_factory=Lasting)
    is_free: bool = False
    # The number of its last line, of those of all ranks.
    told: int = 0
    # Of one that runs freely: how long its steps took while nobody called it slow.
    habit: Window = field(default_factory=lambda: Window(BASELINE_STEPS))

    @property
    def is_known(self) -> bool:
        return self.is_free and len(self.habit) >= LEAST_BASELINE

    @property
    def beside_itself(self) -> float:
        return self.level / self.habit.median()

    def learn(self, limit: float) -> None:
        """What may be the beginning of slowness is no habit yet."""
        if self.is_free and not self.slow_steps and (not self.is_known or self.beside_itself < (1 + limit) / 2):
            self.habit.push(self.level)


class Straggler:
    """`update` takes the lines of all ranks of a run; its findings name the rank."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._paces: dict[int, Pace] = {}
        self._first = self._lines = 0
        self._usual = 0.0
        # The last lines of the first rank, while nobody is there to compare it with.
        self._alone: deque[tuple[int, Line]] = deque(maxlen=limits.straggler_steps)
        self._has_company = False
        self._together, self._in_step = Together(limits), InStep(limits)
        # The machine of each rank, where there are several.
        self.hosts: Mapping[int, str] = {}

    def update(self, line: Line, rank: int) -> Iterator[Finding]:
        if self._has_company:
            return self._compare(line, rank)
        alone = self._alone
        self._has_company = bool(alone) and alone[0][0] != rank
        alone.append((rank, line))
        if not self._has_company:
            return iter(())
        return (found for one, told in alone for found in self._compare(told, one))

    def _compare(self, line: Line, rank: int) -> Iterator[Finding]:
        before = self._before_waiting(line, rank)
        if before is None:
            return
        pace = self._take(line, rank, before)
        if self._lines % len(self._paces) == 0:
            self._forget_gone()
        if len(self._paces) == 1:
            return
        if rank == self._first:
            # Once a step is enough for what changes slowly.
            levels = sorted(self._levels().values())
            # Of two ranks the faster one.
            self._usual = levels[(len(levels) - 1) // 2] if levels else 0.0
            if self._usual:
                yield from self._together.update(line, self._usual, len(self._paces))
        if pace.times.is_full:
            yield from self._judge(rank, pace, line)

    def _before_waiting(self, line: Line, rank: int) -> float | None:
        wait, forward = (line.number(name) if name in line.values else None for name in (WAIT, FORWARD))
        if FORWARD in line.values:
            return (wait or 0.0) + (forward or 0.0)
        if wait is None or line.took is None:
            return line.took
        return self._in_step.before_waiting(line, rank, wait, line.took)

    def _take(self, line: Line, rank: int, before: float) -> Pace:
        pace = self._paces.get(rank)
        if pace is None:
            steps = self._limits.straggler_steps
            pace = self._paces[rank] = Pace(Window(steps), deque(maxlen=steps))
            self._first = min(self._paces)
        self._lines += 1
        pace.told = self._lines
        pace.times.push(before)
        pace.level = pace.times.median()
        pace.ends.append((line.when, max(line.took or 0.0, before)))
        pace.is_free = FORWARD not in line.values and (WAIT not in line.values or self._in_step.is_free)
        return pace

    def _forget_gone(self) -> None:
        """A run may go on with fewer."""
        since = self._lines - GONE_STEPS * len(self._paces)
        for rank in [rank for rank, pace in self._paces.items() if pace.told < since]:
            del self._paces[rank]
            self._in_step.forget(rank)
            self._first = min(self._paces)

    def _levels(self, but: int = -1) -> dict[int, float]:
        """Of a step some ranks' lines come before others'."""
        enough = self._limits.straggler_steps - 1
        return {rank: pace.level for rank, pace in self._paces.items() if rank != but and len(pace.times) >= enough}

    def _judge(self, rank: int, pace: Pace, line: Line) -> Iterator[Finding]:
        limit = self._limit(pace)
        pace.learn(limit)
        # Most ranks are not slow beside all, and that is quickly seen; of two the median may be the slow one's.
        known = pace.is_known
        mean = pace.beside_itself if known else pace.level / (self._usual or pace.level)
        if mean < limit and (known or len(self._paces) > LEAST_GROUP):
            pace.slow_steps = 0
            return
        peers = self._beside(rank, known)
        mine = pace.beside_itself if known else pace.level
        usual = median(peers.values()) if peers else mine
        if mine < limit * usual:
            pace.slow_steps = 0
            return
        self._count(pace, self._limits.straggler * usual * (pace.habit.median() if known else 1))
        # Of all its slow steps together: among them are some that are long for another reason, as a checkpoint.
        if (1 - usual / mine) * pace.level * pace.slow_steps < self._limits.straggler_excess * pace.spent:
            pace.slow_steps = 0
            return
        pace.much.count(mine >= self._limits.straggler_page * usual, line.when)
        alike = [number for number, one in peers.items() if one > (usual + mine) / 2]
        yield from self._told(pace, mine / usual, [rank, *alike], line)

    def _limit(self, pace: Pace) -> float:
        """How many times as slow as others is slow."""
        if not pace.is_free:
            return self._limits.straggler
        if not pace.is_known:
            return self._limits.straggler_page
        return self._limits.straggler + HABIT_SIGMAS * pace.habit.sigma() / pace.habit.median()

    def _beside(self, rank: int, known: bool) -> dict[int, float]:
        if not known:
            return self._levels(but=rank)
        return {number: pace.beside_itself for number, pace in self._paces.items() if number != rank and pace.is_known}

    def _count(self, pace: Pace, limit: float) -> None:
        """From most of its last steps on, for those of noise may be slow by half; it began with the first of them."""
        if not pace.slow_steps:
            pace.much = Lasting()
            slow = [value >= limit for value in pace.times.values()]
            if sum(slow) < MOST * len(slow):
                return
            first = slow.index(True)
            earlier = list(pace.ends)[first:-1]
            pace.slow_steps, pace.since = len(earlier), pace.ends[first][0]
            pace.spent = sum(took for _, took in earlier)
        pace.slow_steps += 1
        pace.spent += pace.ends[-1][1]

    def _told(self, pace: Pace, ratio: float, slow: Sequence[int], line: Line) -> Iterator[Finding]:
        """`slow`: the rank whose line it is, and those that are about as slow."""
        limits, lasted = self._limits, line.when - pace.since
        is_lasting = lasted >= limits.straggler_seconds
        is_gross = ratio >= limits.straggler_gross and lasted >= limits.straggler_gross_seconds
        is_long_enough = pace.slow_steps >= limits.straggler_steps and (is_lasting or is_gross)
        if not is_long_enough or not self._is_sure(pace, ratio):
            return
        share = 0.5 if pace.is_free else limits.straggler_group
        is_group, node = len(slow) >= max(LEAST_GROUP, share * len(self._paces)), self._node_of(slow)
        if is_group and not node:
            yield _of_many(len(slow), ratio, "their peers", limits.straggler, line)
            return
        # So large a part of the run may be a stage of it too, which happens to lie on one machine.
        is_page = self._is_much(pace, line.when) and not is_group
        limit = limits.straggler_page if is_page else limits.straggler
        who, place = self._named(slow, node)
        what = f"{who} {ratio:.2f} times as long as the others before they wait for each other"
        yield Finding("TrainingStraggler", "page" if is_page else "ticket", what, ratio, limit, place, line.step, STAYS)

    def _is_much(self, pace: Pace, when: float) -> bool:
        limits, much = self._limits, pace.much
        return much.lines >= limits.straggler_steps and when - much.since >= limits.straggler_seconds

    def _is_sure(self, pace: Pace, ratio: float) -> bool:
        """Where batches are of unequal length each rank is slower than the others for some steps. By its last steps as
        they are, or by all of its slow ones, each of which was above the limit."""
        scatter = median(each.times.sigma() / (each.level or 1.0) for each in self._paces.values())
        error = MEDIAN_ERROR * scatter * math.sqrt(1 + 1 / (len(self._paces) - 1))
        lately = math.log(ratio) * math.sqrt(self._limits.straggler_steps)
        in_all = math.log(self._limits.straggler) * math.sqrt(pace.slow_steps)
        return max(lately, in_all) >= SURE_ERRORS * error

    def _node_of(self, slow: Sequence[int]) -> str:
        """The machine that all of these are on, where they are most of its ranks."""
        hosts = {self.hosts.get(rank, "") for rank in slow}
        host = hosts.pop() if len(hosts) == 1 else ""
        there = sum(other == host for other in self.hosts.values())
        return host if len(slow) > 1 and len(slow) >= MOST * there else ""

    def _named(self, slow: Sequence[int], node: str) -> tuple[str, Place]:
        if node:
            return f"the {len(slow)} ranks on {node} take", Place(part=node)
        rank, host = slow[0], self.hosts.get(slow[0])
        return f"rank {rank}{f' on {host}' if host else ''} takes", Place(rank=str(rank))


class Together:
    """All ranks slower than the run itself was: the batch, the storage, the network."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._usual = limits, Window(BASELINE_STEPS)
        self._slow_steps, self._since = 0, 0.0

    def update(self, line: Line, level: float, ranks: int) -> Iterator[Finding]:
        if self._slow_steps > BASELINE_STEPS:
            # What lasts as long is usual.
            self._usual = Window(BASELINE_STEPS)
        usual = self._usual.median() if len(self._usual) >= self._limits.learning_steps else level
        if level < self._limits.straggler_page * usual:
            self._usual.push(level)
            self._slow_steps, self._since = 0, line.when
            return
        self._slow_steps += 1
        is_lasting = line.when - self._since >= self._limits.straggler_seconds
        if ranks > 1 and is_lasting and self._slow_steps >= self._limits.straggler_steps:
            yield _of_many(ranks, level / usual, "usual", self._limits.straggler_page, line)


def _of_many(ranks: int, ratio: float, beside: str, limit: float, line: Line) -> Finding:
    what = f"{ranks} ranks are slow alike, {ratio:.2f} times as slow as {beside}: not a worker problem"
    return Finding("TrainingStraggler", "info", what, ratio, limit, step=line.step, stays=STAYS,
                   advice="Look at what they have in common: stage, batches, storage, network.")  # fmt: skip
