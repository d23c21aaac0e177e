"""TrainingLossDiverging: the loss runs away and does not come back."""

import math

from trainvitals.detect.finding import Finding
from trainvitals.detect.limits import Limits
from trainvitals.detect.line import Line
from trainvitals.detect.stats import Window, early_limit

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
        # By a rate that came back.
        self._is_raised = False

    def update(self, line: Line) -> Finding | None:
        loss = line.loss
        if loss is None:
            return None
        past, lately = self._past, self._lately
        if len(past) < self._limits.learning_steps:
            level = self._start = past.median() if len(past) else loss
            limit = early_limit(past, self._limits.loss_divergence)
        else:
            level = min(past.median(), lately.median())
            # Below that there is no need to ask for its noise: most losses are.
            limit = self._limits.loss_divergence * level
            if loss >= limit:
                level, limit = self._known(line, loss, level)
        if loss < limit:
            self._in_a_row = 0
            self._past.push(loss)
            lately.push(loss)
            return None
        self._since = self._since if self._in_a_row else line.when
        self._in_a_row += 1
        is_lasting = self._in_a_row >= LEAST_STEPS and line.when - self._since >= self._limits.loss_divergence_seconds
        steps = self._limits.loss_divergence_steps * (1 if level > 0 else BELOW_TIMES)
        if self._in_a_row < steps and not is_lasting:
            return None
        return self._finding(line, loss, level, limit)

    def _known(self, line: Line, loss: float, level: float) -> tuple[float, float]:
        """Level and limit by all that is known."""
        borne = line.rates.level() if line.rates else None
        if borne is None and self._is_raised:
            # What was before the rate came back is no level any more.
            self._past, self._is_raised = self._lately.copy(self._limits.window_steps), False
            level = self._lately.median()
        limit = self._limit(loss, level)
        if borne is None or loss < limit or not 0 < level < borne:
            return level, limit
        self._is_raised = True
        return borne, max(self._limits.loss_divergence * borne, self._floor())

    def _floor(self) -> float:
        return self._limits.loss_divergence_floor * abs(self._start)

    def _limit(self, loss: float, level: float) -> float:
        """Around nothing a loss has no level to be five times as high as: there, and below, its noise counts."""
        past, lately = self._past, self._lately
        if level > 0:
            # A rise that lasts long is the last steps' own noise and level.
            noise = level + NOISE_SIGMAS * min(past.sigma(), lately.sigma())
        else:
            # One that begins at nothing, as some rewards do, shows its noise only later.
            sigma = (lately.is_full and max(past.sigma(), lately.sigma())) or math.inf
            noise = lately.median() + NOISE_SIGMAS * sigma
            if loss >= noise:
                noise = lately.median() + NOISE_SIGMAS * max(past.spread(), lately.spread())
        return max(noise, self._floor(), self._limits.loss_divergence * level)

    def _finding(self, line: Line, loss: float, level: float, limit: float) -> Finding:
        beside = (f"{loss / level:.1f} times its level of {level:.4g}" if level > 0 else
                  f"{NOISE_SIGMAS:.0f} sigmas or more above its level of {self._lately.median():.4g}")  # fmt: skip
        what = f"the loss is {loss:.4g} for {self._in_a_row} steps, {beside}"
        return Finding("TrainingLossDiverging", "page", what, loss, limit, step=line.step, stays=STAYS)
