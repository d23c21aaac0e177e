"""The callback of gpu_training for the Trainer of Hugging Face Transformers."""

from typing import Any

from trainvitals.compat.gpu_training import GPUMonitor
from trainvitals.integrations.transformers import TrainVitalsCallback


class GPUMonitoringCallback(TrainVitalsCallback):
    def __init__(self, gpu_monitor: GPUMonitor, log_interval: int = 10) -> None:
        super().__init__(log_interval=log_interval)
        self.gpu_monitor = gpu_monitor

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self.gpu_monitor.start()
        super().on_train_begin(args, state, control, **more)

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        super().on_train_end(args, state, control, **more)
        self.gpu_monitor.stop()
