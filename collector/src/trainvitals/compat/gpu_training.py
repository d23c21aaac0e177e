"""A GPU's readings and a training's steps, as callbacks.

gpu_monitor = GPUMonitor(gpu_index=0, sample_interval=1.0)
callback = TrainingMonitorCallback(gpu_monitor)
callback.on_train_begin()
callback.on_step_begin(); …; callback.on_step_end(step=1, epoch=0, loss=2.3, lr=3e-4)
callback.on_train_end()
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from trainvitals.compat.node import Node
from trainvitals.run import Run, start
from trainvitals.run.off import OffRun

if TYPE_CHECKING:
    from trainvitals.compat.gpu_training_trainer import GPUMonitoringCallback

__all__ = ["GPUMonitor", "TrainingMonitorCallback"]
# With a star nobody asks for it, and who has no Transformers would get nothing at all.
if find_spec("transformers"):
    __all__ += ["GPUMonitoringCallback"]

_METRICS = ("utilization_percent", "memory_used_mb", "memory_total_mb", "memory_percent", "temperature_celsius",
            "power_draw_watts", "fan_speed_percent")  # fmt: skip


def __getattr__(name: str) -> Any:
    """Transformers is imported by who uses its callback."""
    if name != "GPUMonitoringCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from trainvitals.compat.gpu_training_trainer import GPUMonitoringCallback

    return GPUMonitoringCallback


class GPUMonitor:
    """One GPU of this node, as its agent reads it; the journal keeps all of it."""

    def __init__(self, gpu_index: int = 0, sample_interval: float = 1.0) -> None:
        self.gpu_index, self.sample_interval = int(gpu_index), float(sample_interval)
        self._node = Node(self.sample_interval)

    def start(self) -> None:
        self._node.start()

    def stop(self) -> None:
        self._node.stop()

    def get_metrics(self) -> dict[str, float | None]:
        """None is what is not known: no reading yet, no such GPU, a field that the device does not have."""
        line = self._node.gpus().get(self.gpu_index, {})
        return {name: line.get(name) for name in _METRICS}

    def __enter__(self) -> "GPUMonitor":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class TrainingMonitorCallback:
    def __init__(self, gpu_monitor: GPUMonitor) -> None:
        self.gpu_monitor = gpu_monitor
        self.run: Run = OffRun()  # type: ignore[assignment]

    def on_train_begin(self) -> None:
        self.gpu_monitor.start()
        self.run = start("training")

    def on_step_begin(self) -> None:
        self.run.begin_step()

    def on_step_end(self, step: int | None = None, epoch: float | None = None, loss: Any = None, lr: Any = None,
                    grad_norm: Any = None, throughput: Any = None) -> None:  # fmt: skip
        self.run.end_step()
        self.run.log(step=step, epoch=epoch, loss=loss, lr=lr, grad_norm=grad_norm, throughput=throughput)

    def on_train_end(self) -> None:
        self.run.finish()
        self.gpu_monitor.stop()
