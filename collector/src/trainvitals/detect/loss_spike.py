"""TrainingLossSpike: the loss jumps out of its own noise and stays up for some steps.

The level is the median of the last steps, the noise is how far losses lay from it: neither is moved by the jump itself.
"""

from trainvitals.detect.finding import Finding
from trainvitals.detect.limits import Limits
from trainvitals.detect.line import Line
from trainvitals.detect.stats import Window

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
            self._level.push(loss)
            return None
        level = self._level.median()
        above = loss - level
        sigma = max(self._limits.loss_least_sigma * abs(level), 1e-12)
        # Most losses are so near to their level that nobody needs to know their noise.
        if above > self._limits.loss_spike_sigma * sigma:
            sigma = max(sigma, self._sigma())
        needed = self._limits.loss_spike_sigma * sigma
        if above <= needed:
            self._in_a_row = 0
            self._level.push(loss)
            self._noise.push(above)
            self._lately.push(above)
            return None
        self._in_a_row += 1
        if self._in_a_row < self._limits.loss_spike_steps:
            return None
        what = f"the loss jumped from {level:.4g} to {loss:.4g} and is up for {self._in_a_row} steps"
        return Finding("TrainingLossSpike", "ticket", what, loss, level + needed, step=line.step, stays=STAYS)

    def _sigma(self) -> float:
        noise = self._noise
        known = noise.sigma() if len(noise) >= self._limits.learning_steps else self._level.sigma()
        if self._lately.is_full:
            known = min(known, LATELY_ERROR * self._lately.sigma())
        return known
