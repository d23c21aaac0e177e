"""What a condition of compat.performance is given: a step's metrics as attributes.

TrainingMetrics.of({"loss": 2.3, "gradient_norm": 0.7, "reward": 1.0})
  ->  TrainingMetrics(loss=2.3, grad_norm=0.7, …), and .reward is 1.0
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from trainvitals.run import cuda

# As the journal has them -> as they are called here.
_NAMES = {"gradient_norm": "grad_norm", "step_duration_seconds": "batch_time", "memory_allocated_mb": "gpu_memory_mb"}


@dataclass
class TrainingMetrics:
    """None is what is not known."""

    loss: float | None = None
    accuracy: float | None = None
    learning_rate: float | None = None
    grad_norm: float | None = None
    batch_time: float | None = None
    cpu_memory_mb: float | None = None
    gpu_memory_mb: float | None = None
    custom: dict[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        """The custom ones, by their names."""
        try:
            return self.__dict__["custom"][name]
        except KeyError:
            raise AttributeError(f"the step told no {name!r}") from None

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "TrainingMetrics":
        metrics = cls()
        for written, value in record.items():
            name = _NAMES.get(written, written)
            if name != "custom" and name in metrics.__dataclass_fields__:
                setattr(metrics, name, value)
            else:
                metrics.custom[name] = value
        return metrics


class Message(str):
    """Its fields are filled in under both names."""

    def format_map(self, mapping: Any, /) -> str:
        mapping.update({ours: mapping[theirs] for theirs, ours in _NAMES.items() if theirs in mapping})
        return super().format_map(mapping)


def memory() -> dict[str, float]:
    """Of this process; a GPU's only where torch uses one."""
    found = {"cpu_memory_mb": _process(os.getpid()).memory_info().rss / 2**20}
    torch: Any = sys.modules.get("torch")
    if torch is not None and cuda.is_used():
        found["memory_allocated_mb"] = torch.cuda.memory_allocated() / 2**20
        found["memory_reserved_mb"] = torch.cuda.memory_reserved() / 2**20
    return found


@lru_cache(maxsize=1)
def _process(pid: int) -> Any:
    import psutil

    return psutil.Process(pid)
