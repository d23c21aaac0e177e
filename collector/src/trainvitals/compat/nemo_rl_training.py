"""A training's metrics as NeMo RL's monitor is told them, in a run of the journal."""

import math
import time
from typing import Any

from trainvitals.run import Run, harmless, start


class TrainingMonitor:
    """A run in the journal, from the first metrics on, and what can be said of its losses."""

    def __init__(self) -> None:
        self.run: Run | None = None
        self._began = 0.0
        self._losses = _Losses()

    def begin(self, run: Run | None = None) -> Run:
        """In a run that is under way, else in one of its own."""
        if self.run is None:
            self._began = time.monotonic()
            self.run = run or start("nemo-rl", framework="nemo_rl")
        return self.run

    def record_metrics(self, step: int, loss: Any, learning_rate: Any, batch_size: int) -> None:
        self.begin().log(step=step, loss=loss, learning_rate=learning_rate, batch_size=batch_size)
        harmless(self._losses.add)(loss)

    def get_training_stats(self) -> dict[str, float]:
        """Empty before the first metrics."""
        if not self._losses.count:
            return {}
        return self._losses.stats() | {"training_time": time.monotonic() - self._began}


class _Losses:
    """NaN is a loss too: it shows in the mean, and is neither the least nor the greatest."""

    def __init__(self) -> None:
        self.count = 0
        self._sum = 0.0
        self._last = math.nan
        self._least, self._most = math.inf, -math.inf

    def add(self, loss: Any) -> None:
        self._last = float(loss)
        self.count += 1
        self._sum += self._last
        if not math.isnan(self._last):
            self._least, self._most = min(self._least, self._last), max(self._most, self._last)

    def stats(self) -> dict[str, float]:
        least, most = (self._least, self._most) if self._least <= self._most else (math.nan, math.nan)
        return {"current_loss": self._last, "avg_loss": self._sum / self.count, "min_loss": least, "max_loss": most,
                "total_steps": self.count}  # fmt: skip
