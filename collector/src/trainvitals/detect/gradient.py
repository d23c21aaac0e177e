"""TrainingGradientExplosion, TrainingGradientNormHigh and TrainingGradientVanishing, by the norm of all gradients."""

from trainvitals.detect.finding import Finding
from trainvitals.detect.limits import Limits
from trainvitals.detect.line import Line
from trainvitals.detect.stats import Window

STAYS = 120.0


class GradientExplosion:
    """High, and far above what is usual in this run."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._past, self._in_a_row = limits, Window(limits.window_steps), 0

    def update(self, line: Line) -> Finding | None:
        norm = line.gradient_norm
        if norm is None:
            return None
        limits, past = self._limits, self._past
        known = len(past) >= limits.learning_steps
        limit = max(limits.gradient_norm, limits.gradient_explosion * past.median()) if known else norm
        if norm <= limit:
            self._in_a_row = 0
            past.push(norm)
            return None
        self._in_a_row += 1
        if self._in_a_row < limits.gradient_steps:
            return None
        what = f"the gradient norm is {norm:.4g}, {norm / (past.median() or norm):.0f} times its median"
        return Finding("TrainingGradientExplosion", "page", what, norm, limit, step=line.step, stays=STAYS)


class GradientLimit:
    """Beyond a number for some steps in a row."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._high, self._low = limits, 0, 0

    def update(self, line: Line) -> Finding | None:
        norm = line.gradient_norm
        if norm is None:
            return None
        limits = self._limits
        self._high = self._high + 1 if norm > limits.gradient_norm else 0
        self._low = self._low + 1 if norm < limits.gradient_vanishing else 0
        if self._high >= limits.gradient_steps:
            return _finding("TrainingGradientNormHigh", f"the gradient norm is {norm:.4g}", norm, limits.gradient_norm,
                            line)  # fmt: skip
        if self._low >= limits.gradient_vanishing_steps:
            return _finding("TrainingGradientVanishing", f"the gradient norm is {norm:.4g}: nothing is learned", norm,
                            limits.gradient_vanishing, line)  # fmt: skip
        return None


class VanishingLayers:
    """What `watch` counted; a sample has all layers or none."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._samples = limits, 0

    def update(self, line: Line) -> Finding | None:
        layers = line.number("vanishing_layers") if "vanishing_layers" in line.values else None
        if layers is None:
            return None
        self._samples = self._samples + 1 if layers else 0
        if self._samples < self._limits.gradient_steps:
            return None
        what = f"the gradients of {layers:.0f} layers vanish"
        return _finding("TrainingGradientVanishing", what, layers, 0.0, line, stays=3600.0)


def _finding(kind: str, what: str, value: float, limit: float, line: Line, stays: float = STAYS) -> Finding:
    return Finding(kind, "ticket", what, value, limit, step=line.step, stays=stays)
