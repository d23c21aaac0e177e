"""When the steps of a run end and what each rank spends on them.

In synchronous training the ranks meet in a collective: all steps end together, and who is early waits in its backward.
"""

import random
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field

DATA_SHARE, FORWARD_SHARE = 0.02, 0.32


@dataclass(frozen=True)
class Pause:
    """After a step. With a phase's name it is announced by events, else nobody says why no step comes."""

    after: int
    seconds: float
    phase: str = ""


@dataclass(frozen=True)
class Restart:
    """After a step the run is preempted, and later goes on in place from an earlier one."""

    after: int
    back_to: int
    seconds: float = 120.0


@dataclass(frozen=True)
class Stretch:
    """A part of the step takes so many times as long, on some ranks (on all where none is named)."""

    first: int
    last: int
    factor: float
    part: str = "forward"
    ranks: tuple[int, ...] = ()

    def holds(self, step: int, rank: int, part: str) -> bool:
        return part == self.part and self.first <= step <= self.last and (not self.ranks or rank in self.ranks)


@dataclass
class Pace:
    """How long a step takes, and what disturbs it."""

    step_seconds: float = 1.0
    jitter: float = 0.02
    data_share: float = DATA_SHARE
    wait_noise: float = 0.15
    # Batches of unequal length: each rank's forward pass is another one with each step.
    forward_noise: float = 0.0
    # A step's length against the others', as optimizers have it that are slow each tenth step.
    rhythm: Callable[[int], float] = lambda step: 1.0
    stretches: tuple[Stretch, ...] = ()
    pauses: tuple[Pause, ...] = ()
    restarts: tuple[Restart, ...] = ()
    # The first two steps of each life take so many times as long; a loader that is started anew, there and after each
    # pause, lets wait so many seconds for its first batch.
    warm_up: float = 1.0
    first_batch: float = 0.0
    # Each rank at its own speed: nothing makes it wait.
    is_free: bool = False
    lead: float = 20.0


@dataclass
class Timeline:
    """By place in the run, which is not the step's number where a run was resumed."""

    numbers: list[int] = field(default_factory=list)
    ends: list[list[float]] = field(default_factory=list)
    waits: list[list[float]] = field(default_factory=list)
    forwards: list[list[float]] = field(default_factory=list)
    rests: list[list[float]] = field(default_factory=list)
    # What came before the step of this place: pauses, and where it was started anew.
    before: dict[int, list[Pause]] = field(default_factory=dict)
    anew: dict[int, float] = field(default_factory=dict)

    def end_of(self, step: int, rank: int = 0) -> float:
        """When a step ended, the first time where it was done twice."""
        return self.ends[rank][self.numbers.index(step)]

    def is_busy(self, when: float, begin: float) -> bool:
        """Whether a step was under way, by rank 0's clock: neither a pause nor before or after the run."""
        ends = self.ends[0]
        place = bisect_left(ends, when)
        if place == len(ends) or when < begin:
            return False
        spent = self.waits[0][place] + self.forwards[0][place] + self.rests[0][place]
        return when >= ends[place] - spent

    def in_life(self, place: int) -> int:
        """How many steps before it in the same life."""
        return place - max((begun for begun in self.anew if begun <= place), default=0)

    def is_after_pause(self, place: int) -> bool:
        return place in self.before or self.in_life(place) == 0

    @property
    def last(self) -> float:
        return max(ends[-1] for ends in self.ends)


def timeline(pace: Pace, start: float, numbers: tuple[int, int], ranks: int, seed: int) -> Timeline:
    """Of the steps from the first number to the last."""
    rng = random.Random(f"pace/{seed}")
    line = Timeline(ends=[[] for _ in range(ranks)], waits=[[] for _ in range(ranks)],
                    forwards=[[] for _ in range(ranks)], rests=[[] for _ in range(ranks)])  # fmt: skip
    now = [start + pace.lead] * ranks
    pauses: dict[int, list[Pause]] = {}
    for pause in pace.pauses:
        pauses.setdefault(pause.after, []).append(pause)
    restarts = {restart.after: restart for restart in pace.restarts}
    number, last = numbers
    while number <= last:
        now = _one_step(line, pace, number, now, rng)
        gap = pauses.pop(number, [])
        if gap and number < last:
            line.before[len(line.numbers)] = gap
            now = [moment + sum(pause.seconds for pause in gap) for moment in now]
        if restart := restarts.pop(number, None):
            line.anew[len(line.numbers)] = now[0] + restart.seconds
            now = [moment + restart.seconds + 15.0 for moment in now]
            number = restart.back_to
        number += 1
    return line


def _one_step(line: Timeline, pace: Pace, number: int, now: list[float], rng: random.Random) -> list[float]:
    place = len(line.numbers)
    line.numbers.append(number)
    base = pace.step_seconds * pace.rhythm(number) * max(0.5, rng.gauss(1, pace.jitter))
    base *= pace.warm_up if line.in_life(place) < 2 else 1.0
    base *= 1.0 if pace.is_free else _factor(pace, number, 0, "all")
    rest = base * (1 - DATA_SHARE - FORWARD_SHARE) * _factor(pace, number, 0, "rest")
    early = [_before_the_collective(pace, number, rank, base, rng) for rank in range(len(now))]
    if pace.first_batch and line.is_after_pause(place):
        early = [(wait + pace.first_batch, forward) for wait, forward in early]
    meet = max(wait + forward for wait, forward in early)
    for rank, (wait, forward) in enumerate(early):
        spent = rest * (max(0.5, rng.gauss(1, pace.jitter)) * _factor(pace, number, rank, "all") if pace.is_free else 1)
        total = wait + forward + spent if pace.is_free else meet + rest
        line.waits[rank].append(wait)
        line.forwards[rank].append(forward)
        line.rests[rank].append(total - wait - forward)
        line.ends[rank].append(now[rank] + total)
    return [ends[-1] for ends in line.ends]


def _before_the_collective(pace: Pace, number: int, rank: int, base: float, rng: random.Random) -> tuple[float, float]:
    wait = base * pace.data_share * rng.lognormvariate(0, pace.wait_noise) * _factor(pace, number, rank, "data_wait")
    forward = base * FORWARD_SHARE * max(0.5, rng.gauss(1, 0.01)) * _factor(pace, number, rank, "forward")
    if pace.forward_noise:
        forward *= rng.lognormvariate(0, pace.forward_noise)
    return wait, forward * (_factor(pace, number, rank, "all") if pace.is_free else 1)


def _factor(pace: Pace, number: int, rank: int, part: str) -> float:
    factor = 1.0
    for stretch in pace.stretches:
        if stretch.holds(number, rank, part):
            factor *= stretch.factor
    return factor
