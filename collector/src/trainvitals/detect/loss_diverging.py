"""TrainingLossDiverging: the loss runs away and does not come back."""

import math

from trainvitals.detect.finding import Finding
from trainvitals.detect.limits import Limits
from trainvitals.detect.line import Line
from trainvitals.detect.stats import Window

NOISE_SIGMAS = 10.0
LATELY_STEPS = 100
LEAST_STEPS = 3
# Out of its noise alone is a spike too: it stays for so many times as many steps.
BELOW_TIMES = 3
STAYS = 120.0


class LossDiverging:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        # Of a loss that falls the last steps are the lower ones, of one that creeps up those long before.
        self._past, self._lately = Window(limits.window_steps), Window(LATELY_STEPS)
        self._start = 0.0
        self._in_a_row, self._since = 0, 0.0

    def update(self, line: Line) -> Finding | None:
        loss = line.loss
        if loss is None:
            return None
        past = self._past
        if len(past) < self._limits.learning_steps:
            past.push(loss)
            self._lately.push(loss)
            self._start = past.median()
            return None
        level = min(past.median(), self._lately.median())
        # Below that there is no need to ask for its noise: most losses are.
        times = self._limits.loss_divergence * level
        limit = times if loss < times else self._limit(level, times)
        if loss < limit:
            self._in_a_row = 0
            past.push(loss)
            self._lately.push(loss)
            return None
        self._since = self._since if self._in_a_row else line.when
        self._in_a_row += 1
        is_lasting = self._in_a_row >= LEAST_STEPS and line.when - self._since >= self._limits.loss_divergence_seconds
        steps = self._limits.loss_divergence_steps * (1 if level > 0 else BELOW_TIMES)
        if self._in_a_row < steps and not is_lasting:
            return None
        return self._finding(line, loss, limit)

    def _limit(self, level: float, times: float) -> float:
        """Around nothing a loss has no level to be five times as high as: there, and below, its noise counts."""
        past, lately = self._past, self._lately
        if level > 0:
            # A rise that lasts long is the last steps' own noise and level.
            noise = level + NOISE_SIGMAS * min(past.sigma(), lately.sigma())
        else:
            # One that begins at nothing, as some rewards do, shows its noise only later.
            sigma = (lately.is_full and max(past.sigma(), lately.sigma())) or math.inf
            noise = lately.median() + NOISE_SIGMAS * sigma
        floor = self._limits.loss_divergence_floor * abs(self._start)
        return max(noise, floor, times)

    def _finding(self, line: Line, loss: float, limit: float) -> Finding:
        level = self._past.median()
        beside = f"{loss / level:.1f} times its level of {level:.4g}" if level > 0 else f"its level was {level:.4g}"
        what = f"the loss is {loss:.4g} for {self._in_a_row} steps, {beside}"
        return Finding("TrainingLossDiverging", "page", what, loss, limit, step=line.step, stays=STAYS)
