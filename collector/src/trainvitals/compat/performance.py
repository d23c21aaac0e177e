"""A training's monitor made from a configuration: a run in the journal, its alerts, its page, its TensorBoard.

monitor = TrainingMonitor({"save_dir": "/data/run", "enable_dashboard": True, "dashboard_port": 8080})
monitor.alert_system.add_alert_rule(name="hot loss", condition=lambda m: m.loss > 9, severity="critical",
                                    message="loss is {loss:.2f}", cooldown_seconds=60)
monitor.start_monitoring()
monitor.log_training_step(model=model, optimizer=optimizer, loss=loss, accuracy=0.9, learning_rate=3e-4)
monitor.stop_monitoring()
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trainvitals.compat import performance_config
from trainvitals.compat.handing import HandingOn
from trainvitals.compat.performance_alerts import AlertSystem
from trainvitals.compat.performance_metrics import TrainingMetrics, memory
from trainvitals.compat.performance_system import SystemMonitor
from trainvitals.run import Run, harmless, start
from trainvitals.run.harmless import warn
from trainvitals.run.off import OffRun, is_switched_off

__all__ = ["AlertSystem", "SystemMonitor", "TrainingMetrics", "TrainingMonitor"]

Condition = Callable[[TrainingMetrics], Any]
_BENCHMARK = ("avg_latency_ms", "samples_per_second", "model_size_mb", "quantization_ratio")


class TrainingMonitor:
    def __init__(self, config: Mapping[str, Any] | str | os.PathLike[str] | None = None) -> None:
        self.settings = performance_config.load(config)
        self.system_monitor = SystemMonitor(self.settings.interval)
        self.system_monitor.stop_monitoring()  # until it is started, with this configuration's folder
        self.alert_system = AlertSystem(self.settings, self.system_monitor)
        self.run: Run = OffRun()  # type: ignore[assignment]
        self._handing: HandingOn | None = None
        self._watched: Any = None

    def failed(self, error: BaseException) -> None:
        if self.run.status == "off" and not is_switched_off():
            warn(error)
        else:
            self.run.failed(error)

    @harmless
    def start_monitoring(self) -> None:
        settings = self.settings
        folder = Path(settings.save_dir).expanduser().absolute() if settings.save_dir else None
        self.run = start("training", config=self.alert_system.config, dir=folder, rank_zero_only=settings.rank_0_only)
        self.alert_system.attach(self.run)
        self._hand_on()
        if settings.performance_monitor:
            self.system_monitor.start_monitoring(root=folder)
        self.run.begin_step()

    def _hand_on(self) -> None:
        settings = self.settings
        sinks = [f"tensorboard={settings.tensorboard_dir}"] if settings.tensorboard_dir else []
        page = ("--port", str(settings.port), "--host", settings.host) if settings.dashboard else ()
        if (sinks or page) and self.run.status == "running" and self.run.local_rank == 0:
            self._handing = HandingOn(self.run, sinks, "--interval", str(settings.interval), *page)

    @harmless
    def stop_monitoring(self) -> None:
        self.run.finish()
        self.system_monitor.stop_monitoring()
        if self._handing is not None:
            self._handing.end()

    @harmless
    def log_training_step(self, model: Any = None, optimizer: Any = None, loss: Any = None, accuracy: Any = None,
                          learning_rate: Any = None,
                          custom_metrics: Mapping[str, Any] | None = None) -> None:  # fmt: skip
        """At the end of each step: from one call to the next is a step's time."""
        self.run.end_step()
        if self.settings.gradients and model is not None and model is not self._watched:
            self._watched = model
            self.run.watch(model, optimizer, layers=self.settings.layers)
        self.run.log({"loss": loss, "accuracy": accuracy, "learning_rate": learning_rate, **memory(),
                      **(custom_metrics or {})})  # fmt: skip
        self.run.begin_step()

    def log_model_inference_benchmark(self, model: Any, device: Any, dummy_input: Any) -> dict[str, Any]:
        """Measured without a run too. The model is moved to the device, as it would be by hand."""
        return self._benchmark(model, device, dummy_input) or dict.fromkeys(_BENCHMARK)

    @harmless
    def _benchmark(self, model: Any, device: Any, dummy_input: Any) -> dict[str, Any]:
        from trainvitals.run.inference import profile_inference

        told = profile_inference(self.run, model.to(device), dummy_input)
        rate, batch = told["throughput_samples_per_sec"], told["batch_size"]
        latency = 1000 * batch / rate if rate and batch else None
        return dict(zip(_BENCHMARK, (latency, rate, told["model_size_mb"], told["quantization_ratio"]), strict=True))
