"""Whether the ranks of a run end their steps together, where lines tell the wait for data and no forward pass.

If they do, all are equally long in wait and step together, and who waits for data has the shorter step: the others wait
for it in theirs. What tells them apart is the wait; the shortest step is the work that each does beside it.
"""

from trainvitals.detect.limits import Limits
from trainvitals.detect.line import Line
from trainvitals.detect.stats import Window


class Rank:
    __slots__ = ("last", "took", "walls")

    def __init__(self, steps: int) -> None:
        self.last, self.took, self.walls = Line(0.0, 0, {}), Window(steps), Window(steps)

    def take(self, line: Line, took: float) -> None:
        self.took.push(took)
        steps, passed = line.step - self.last.step, line.when - self.last.when
        if self.last.when and steps > 0 and passed > 0:
            self.walls.push(passed / steps)
        self.last = line


class InStep:
    def __init__(self, limits: Limits) -> None:
        self._limits, self._ranks = limits, dict[int, Rank]()
        # Of a step, in seconds.
        self._work = 0.0
        # Steps are of different lengths: nobody waits for anybody.
        self.is_free, self._against = False, 0

    def before_waiting(self, line: Line, rank: int, wait: float, took: float) -> float:
        known = self._ranks.get(rank)
        if known is None:
            known = self._ranks[rank] = Rank(self._limits.straggler_steps)
        known.take(line, took)
        if rank == min(self._ranks):
            self._look()
        return wait + (took if self.is_free else self._work)

    def forget(self, rank: int) -> None:
        self._ranks.pop(rank, None)

    def _look(self) -> None:
        """Once a step is enough for what changes slowly. Some ranks' lines are read before others': that their steps
        differ, or no longer do, counts when it lasts."""
        self._work = min(rank.took.median() for rank in self._ranks.values())
        walls = [rank.walls.median() for rank in self._ranks.values() if rank.walls.is_full]
        if len(walls) < 2:
            return
        differ = max(walls) >= self._limits.straggler * min(walls)
        self._against = self._against + 1 if differ != self.is_free else 0
        if self._against >= self._limits.straggler_steps:
            self.is_free, self._against = differ, 0
