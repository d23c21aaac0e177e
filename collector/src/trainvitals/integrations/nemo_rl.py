"""NeMo RL: a logger in the shape of its `LoggerInterface`.

logger = Logger(config["logger"])                                  # NeMo RL's own
logger.loggers.append(TrainVitalsLogger({"name": "grpo-math"}))
->  {"step": 7, "train/reward": 0.6, "reward_mean": 0.6, "timing/train/generation": 9.1, "generation_seconds": 9.1, …}
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from trainvitals.integrations.rl_names import NEMO_RL, added
from trainvitals.run import Run, harmless, start

BUCKETS = 30


class TrainVitalsLogger:
    """`cfg` holds what `trainvitals.start` takes; the run's name is `name`."""

    def __init__(self, cfg: Mapping[str, Any] | None = None, log_dir: str | None = None) -> None:
        options: dict[str, Any] = {"name": "nemo-rl", "framework": "nemo_rl", **(cfg or {})}
        if log_dir:
            options.setdefault("dir", log_dir)
        self.run: Run = start(**options)

    def log_metrics(self, metrics: Mapping[str, Any], step: int, prefix: str | None = "",
                    step_metric: str | None = None, step_finished: bool = False) -> None:  # fmt: skip
        """With `step_metric` the values count something else than steps; they go to the step under way."""
        harmless(self._log)(metrics, step, prefix, step_metric)

    def _log(self, metrics: Mapping[str, Any], step: int, prefix: str | None, step_metric: str | None) -> None:
        values = {f"{prefix}/{name}" if prefix and name != step_metric else str(name): value
                  for name, value in metrics.items() if _is_one(value)}  # fmt: skip
        is_other = step_metric is not None and step_metric in values
        self.run.log(added(values, NEMO_RL), step=self.run.number if is_other else int(step))

    def log_hyperparams(self, params: Mapping[str, Any]) -> None:
        self.run.describe(params)

    def log_histogram(self, histogram: Sequence[Any], step: int, name: str) -> None:
        harmless(self._log_histogram)(histogram, step, name)

    def _log_histogram(self, histogram: Sequence[Any], step: int, name: str) -> None:
        if counted := counts(histogram):
            self.run.write_event("histograms", step=int(step), histograms={name: counted})

    def log_plot(self, figure: Any, step: int, name: str) -> None:
        """Figures are not for a journal of numbers."""

    def finish(self) -> None:
        self.run.finish()


def counts(values: Sequence[Any]) -> dict[str, Any]:
    """A histogram as the journal has it; nothing where no value is finite."""
    finite = [number for number in map(float, values) if math.isfinite(number)]
    if not finite:
        return {}
    low, high = min(finite), max(finite)
    first, width = (low, (high - low) / BUCKETS) if high > low else (low - 0.5, 1 / BUCKETS)
    counted = [0] * BUCKETS
    for number in finite:
        counted[min(BUCKETS - 1, int((number - first) / width))] += 1
    return {"edges": [first + width * place for place in range(BUCKETS + 1)], "counts": counted, "min": low,
            "max": high, "sum": sum(finite), "sum_squares": sum(number * number for number in finite)}  # fmt: skip


def _is_one(value: Any) -> bool:
    """Lists and tables of what each sample or worker said are for other targets."""
    if isinstance(value, (Mapping, list, tuple, set)):
        return False
    numel = getattr(value, "numel", None)
    return int(numel() if callable(numel) else getattr(value, "size", 1)) == 1
