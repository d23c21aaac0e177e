"""Monitors for training with NeMo RL.

monitor = TrainingMonitor()
monitor.record_metrics(step=1, loss=2.3, learning_rate=3e-4, batch_size=32)
monitor.get_training_stats()  ->  {"current_loss": 2.3, "avg_loss": 2.3, "total_steps": 1, …}
"""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from trainvitals.catalog import STEP_BUCKETS
from trainvitals.compat.nemo_rl_alerting import PerformanceAlerting
from trainvitals.compat.nemo_rl_dashboard import MonitoringDashboard
from trainvitals.compat.nemo_rl_monitoring import Monitoring
from trainvitals.compat.nemo_rl_realtime import RealTimeMonitor
from trainvitals.compat.nemo_rl_training import TrainingMonitor
from trainvitals.compat.readings import allocator, host_percent
from trainvitals.run import harmless
from trainvitals.run.harmless import warn
from trainvitals.run.off import is_switched_off

if TYPE_CHECKING:
    from trainvitals.compat.nemo_rl_tensorboard import TensorBoardMonitor

__all__ = ["Monitoring", "MonitoringDashboard", "PerformanceAlerting", "PrometheusMonitor", "RealTimeMonitor",
           "TrainingMonitor", "monitor_ray_cluster", "monitor_resources"]  # fmt: skip
# With a star nobody asks for it, and who has no TensorBoard would get nothing at all.
if find_spec("tensorboard"):
    __all__ += ["TensorBoardMonitor"]


def __getattr__(name: str) -> Any:
    """TensorBoard is imported by who writes for it."""
    if name != "TensorBoardMonitor":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from trainvitals.compat.nemo_rl_tensorboard import TensorBoardMonitor

    return TensorBoardMonitor


def monitor_resources() -> dict[str, Any]:
    """`gpu_metrics` is what torch's allocator holds in this process; empty before torch uses a GPU."""
    host = host_percent()
    names = ("memory_allocated", "memory_reserved", "max_memory_allocated")
    gpus = {f"gpu_{place}": {name: held[name] for name in names} for place, held in enumerate(allocator())}
    return {name: host[name] for name in ("cpu_percent", "cpu_count", "memory_percent", "memory_available_gb")} | {
        "gpu_metrics": gpus
    }


def monitor_ray_cluster() -> dict[str, Any]:
    """Utilisation is the share that tasks and actors hold, from 0 to 1; 0 too where the cluster has no GPU. Empty while
    this process is connected to no cluster."""
    import ray

    from trainvitals.integrations.ray import cluster_metrics

    metrics = cluster_metrics()
    if not metrics:
        return {}
    return {
        "cluster_resources": dict(ray.cluster_resources()),
        "available_resources": dict(ray.available_resources()),
        "cpu_utilization": _share(metrics, "cpu"),
        "gpu_utilization": _share(metrics, "gpu"),
        "total_nodes": int(metrics["ray_nodes"]),
    }


def _share(metrics: Mapping[str, float], name: str) -> float:
    total = metrics.get(f"ray_{name}_total", 0.0)
    return metrics[f"ray_{name}_used"] / total if total else 0.0


class PrometheusMonitor:
    """Serves /metrics on the loopback address; port 0 is any free one."""

    def __init__(self, port: int = 8000) -> None:
        from prometheus_client import CollectorRegistry, Gauge, Histogram, start_http_server

        registry = CollectorRegistry()
        self._loss = Gauge("training_loss", "Loss of the last step that told it.", registry=registry)
        self._gpus = Gauge("gpu_memory_mb", "What torch's allocator handed out.", ["gpu_id"], registry=registry)
        self._cpu = Gauge("cpu_usage_percent", "Share of all processors that was busy.", registry=registry)
        self._steps = Histogram("training_step_duration_seconds", "Wall time of a step.", buckets=STEP_BUCKETS,
                                registry=registry)  # fmt: skip
        self._server: Any = None
        self.port = int(port)
        if is_switched_off():
            return
        try:
            self._server, _ = start_http_server(self.port, addr="127.0.0.1", registry=registry)
            self.port = self._server.server_address[1]
        except OSError as error:
            warn(OSError(f"port {port} cannot be served ({error.strerror}): choose another one"))

    @harmless
    def update_metrics(self, loss: Any = None, gpu_metrics: Mapping[str, Any] | None = None,
                       cpu_percent: float | None = None, step_duration: float | None = None) -> None:  # fmt: skip
        """`gpu_metrics` as `monitor_resources` gives them, or a number of MiB for each GPU."""
        if loss is not None:
            self._loss.set(float(loss))
        for gpu, held in (gpu_metrics or {}).items():
            self._gpus.labels(gpu_id=str(gpu)).set(held["memory_allocated"] if isinstance(held, Mapping) else held)
        if cpu_percent is not None:
            self._cpu.set(cpu_percent)
        if step_duration is not None:
            self._steps.observe(step_duration)

    def failed(self, error: BaseException) -> None:
        warn(error)

    def close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
