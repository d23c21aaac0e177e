"""TrainingNonFinite: a loss that is no number, at once; a gradient norm that stays so.

In half precision with a loss scaler single infinite gradient norms are part of good health: that step is skipped. What
a NaN among them does to the weights shows in the next loss.
"""

from trainvitals.detect.finding import Finding
from trainvitals.detect.limits import Limits
from trainvitals.detect.line import Line


class NonFinite:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._in_a_row = self._seen = 0

    def update(self, line: Line) -> Finding | None:
        loss = line.values.get("loss")
        if type(loss) is float and loss - loss != 0.0:
            return self._finding("loss", loss, line)
        norm = line.values.get("gradient_norm")
        if type(norm) is not float:
            return None
        self._seen += 1
        if norm - norm == 0.0:
            self._in_a_row = 0
            return None
        self._in_a_row += 1
        lasting = norm != norm and self._seen > self._limits.scaling_steps
        if self._in_a_row < (self._limits.nan_gradients if lasting else self._limits.overflows):
            return None
        return self._finding("gradient norm", norm, line)

    def _finding(self, name: str, value: float, line: Line) -> Finding:
        return Finding("TrainingNonFinite", "page", f"the {name} is {value} at step {line.step:,}", value,
                       step=line.step, stays=self._limits.event_seconds)  # fmt: skip
