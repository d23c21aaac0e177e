"""GPU readings and tracking for verl's trainers.

tracking = Tracking(project_name="math", experiment_name="grpo", default_backend=["console", "wandb"],
                    enable_gpu_monitoring=True, gpu_monitor_interval=5.0)
tracking.log({"actor/loss": 0.5}, step=1)
"""

import logging
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from trainvitals.compat.handing import HandingOn
from trainvitals.compat.node import Node, start_monitor
from trainvitals.compat.readings import allocator_values, host_values
from trainvitals.integrations.verl import TrainVitalsLogger
from trainvitals.journal.gpu_keys import gpu_values
from trainvitals.run import harmless
from trainvitals.run.harmless import warn
from trainvitals.run.off import is_switched_off

__all__ = ["GPUResourceMonitor", "Tracking"]

WANDB_PROJECT = "gpu-monitoring"
log = logging.getLogger("trainvitals")


class GPUResourceMonitor:
    """The GPUs of this node as its agent reads them; W&B gets them from a process beside the trainer."""

    def __init__(self, monitor_interval: float = 10.0, log_to_wandb: bool = False, log_to_console: bool = False,
                 device_ids: Sequence[int] | None = None) -> None:  # fmt: skip
        self.monitor_interval = max(0.1, float(monitor_interval))
        self.log_to_wandb, self.log_to_console = log_to_wandb, log_to_console
        self.device_ids = None if device_ids is None else [int(each) for each in device_ids]
        self._node = Node(self.monitor_interval)
        self._monitor: Any = None
        self._ended = threading.Event()

    @harmless
    def start_monitoring(self) -> None:
        if is_switched_off():
            return
        self._ended.clear()
        if not self.log_to_wandb:
            self._node.start()
        elif self._monitor is None:
            project = os.environ.get("WANDB_PROJECT") or WANDB_PROJECT
            gpus = [] if self.device_ids is None else ["--gpus", ",".join(map(str, self.device_ids))]
            self._monitor = start_monitor("--wandb-project", project, "--interval", str(self.monitor_interval), *gpus)
            self._node.follow()
        if self.log_to_console:
            threading.Thread(target=self._print, name="trainvitals-console", daemon=True).start()

    def get_latest_metrics(self) -> dict[str, float]:
        """What is not known is absent: all of a GPU's where there is none, the allocator's before torch uses one."""
        return harmless(self._metrics)() or {}

    @harmless
    def stop_monitoring(self) -> None:
        self._ended.set()
        self._node.stop()
        if self._monitor is not None:
            self._monitor.terminate()
            self._monitor = None

    def failed(self, error: BaseException) -> None:
        warn(error)

    def _metrics(self) -> dict[str, float]:
        lines = self._node.gpus()
        wanted = lines.keys() if self.device_ids is None else self.device_ids
        chosen = {gpu: line for gpu, line in lines.items() if gpu in wanted}
        values = {name: value for line in chosen.values() for name, value in gpu_values(line).items()}
        return values | allocator_values(chosen) | host_values()

    def _print(self) -> None:
        while not self._ended.wait(self.monitor_interval):
            print(_line(self.get_latest_metrics()), flush=True)


class Tracking:
    """The journal has it all; "wandb", "tensorboard" and "mlflow" get it from there, "console" is a line a step."""

    BACKENDS = ("trainvitals", "console", "wandb", "tensorboard", "mlflow")

    def __init__(self, project_name: str, experiment_name: str, default_backend: str | Sequence[str] = "console",
                 config: Any = None, enable_gpu_monitoring: bool = False,
                 gpu_monitor_interval: float = 10.0) -> None:  # fmt: skip
        wanted = [default_backend] if isinstance(default_backend, str) else list(default_backend)
        for unknown in [name for name in wanted if name not in self.BACKENDS]:
            log.warning("default_backend: %r is none of %s: it is left out", unknown, ", ".join(self.BACKENDS))
        self.gpu_monitor = GPUResourceMonitor(gpu_monitor_interval) if enable_gpu_monitoring else None
        self._console = "console" in wanted and not is_switched_off()
        self._logger = TrainVitalsLogger(project_name, experiment_name, config)
        self.run = self._logger.run
        self._handing: HandingOn | None = None
        self._begin(project_name, wanted, gpu_monitor_interval)

    def log(self, data: Mapping[str, Any], step: int) -> None:
        self._logger.log(data, step)
        if self._console:
            harmless(_say)(data, step)

    @harmless
    def finish(self, exit_code: int = 0) -> None:
        self._logger.finish(exit_code)
        if self.gpu_monitor is not None:
            self.gpu_monitor.stop_monitoring()
        handing, self._handing = self._handing, None
        if handing is not None:
            handing.end()

    def failed(self, error: BaseException) -> None:
        self.run.failed(error)

    @harmless
    def _begin(self, project: str, wanted: Sequence[str], interval: float) -> None:
        places = {"wandb": project, "tensorboard": os.environ.get("TENSORBOARD_DIR", "tensorboard_log"),
                  "mlflow": os.environ.get("MLFLOW_TRACKING_URI", "sqlite:///mlruns.db")}  # fmt: skip
        sinks = [f"{name}={place}" for name, place in places.items() if name in wanted]
        if sinks and self.run.status == "running":
            self._handing = HandingOn(self.run, sinks, *(("--interval", str(interval)) if self.gpu_monitor else ()))
        if self.gpu_monitor is not None:
            self.gpu_monitor.start_monitoring()


def _say(data: Mapping[str, Any], step: int) -> None:
    print(f"step:{step} - " + _line(data), flush=True)


def _line(values: Mapping[str, Any]) -> str:
    return " - ".join(f"{name}:{value:.6g}" if isinstance(value, float) else f"{name}:{value}"
                      for name, value in values.items())  # fmt: skip
