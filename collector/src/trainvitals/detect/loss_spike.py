"""TrainingLossSpike: the loss jumps out of its own noise and stays up for some steps.

The level is the median of the last steps, the noise is how far losses lay from it: neither is moved by the jump itself.
"""

import math

from trainvitals.detect.finding import Finding
from trainvitals.detect.limits import Limits
from trainvitals.detect.line import Line
from trainvitals.detect.stats import Window, early_limit

LEVEL_STEPS = 32
# While a loss falls fast its distance from the level is large too: the last steps may know better, if not as exactly.
LATELY_STEPS, LATELY_ERROR = 200, 1.25
# A jump that lasts as long is the new level.
ACCEPTED_STEPS = 200
STAYS = 120.0


class LossSpike:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._level, self._noise = Window(LEVEL_STEPS), Window(limits.window_steps)
        self._lately = Window(LATELY_STEPS)
        self._in_a_row = self._step = 0

    def update(self, line: Line) -> Finding | None:
        loss = line.loss
        if loss is None:
            return None
        if line.step < self._step or self._in_a_row >= ACCEPTED_STEPS:
            # Resumed from a checkpoint, where the loss is as it was then; or this is where it is now.
            self._level, self._in_a_row = Window(LEVEL_STEPS), 0
        self._step = line.step
        if len(self._level) < self._limits.learning_steps:
            limit = early_limit(self._level, self._limits.loss_divergence)
            if loss < limit:
                self._in_a_row = 0
                self._level.push(loss)
                return None
            return self._up(line, loss, self._level.median(), limit)
        level = self._level.median()
        needed = self._limits.loss_spike_sigma * max(self._limits.loss_least_sigma * abs(level), 1e-12)
        # Most losses are so near to their level that nobody needs to know their noise.
        if loss - level > needed:
            level, needed = self._known(line, level, needed)
        above = loss - level
        if above <= needed:
            self._in_a_row = 0
            self._level.push(loss)
            self._noise.push(above)
            self._lately.push(above)
            return None
        return self._up(line, loss, level, level + needed)

    def _up(self, line: Line, loss: float, level: float, limit: float) -> Finding | None:
        self._in_a_row += 1
        if self._in_a_row < self._limits.loss_spike_steps:
            return None
        what = f"the loss jumped from {level:.4g} to {loss:.4g} and is up for {self._in_a_row} steps"
        return Finding("TrainingLossSpike", "ticket", what, loss, limit, step=line.step, stays=STAYS)

    def _known(self, line: Line, level: float, needed: float) -> tuple[float, float]:
        """The level, and how far above it is a jump, by all that is known."""
        borne = line.rates.level() if line.rates else None
        if borne is None or borne <= level:
            return level, max(needed, self._limits.loss_spike_sigma * self._sigma())
        # Noise grows with the level, and where it was is of no use there.
        self._noise, self._lately = Window(self._limits.window_steps), Window(LATELY_STEPS)
        share = borne / level if level > 0 else 1.0
        return borne, max(needed, self._limits.loss_spike_sigma * self._sigma()) * share

    def _sigma(self) -> float:
        noise = self._noise
        known = noise.spread() if len(noise) >= self._limits.learning_steps else self._level.spread()
        if self._lately.is_full:
            known = min(known, LATELY_ERROR * self._lately.spread())
        # What was nothing from the start has not shown its noise yet.
        return known or (0.0 if self._level.highest() else math.inf)
