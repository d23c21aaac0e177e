"""The machine, sampled beside a training: processors and memory here, GPUs as the node's agent reads them.

monitor = SystemMonitor(update_interval=1.0)
monitor.start_monitoring()
monitor.get_metrics()  ->  {"cpu_usage_percent": 31.0, "memory_usage_percent": 62.0, "gpu_utilization": 97.0, …}
"""

import threading
import time
from pathlib import Path
from typing import Any

from trainvitals.compat.node import Node
from trainvitals.compat.readings import host_percent
from trainvitals.run.harmless import harmless, warn
from trainvitals.run.off import is_switched_off

NAMES = ("cpu_usage_percent", "memory_usage_percent", "gpu_utilization", "gpu_temperature", "gpu_power_watts",
         "disk_read_mb_s")  # fmt: skip


class SystemMonitor:
    """Each of NAMES is an attribute too. None is what is not known; of several GPUs the first is told."""

    cpu_usage_percent: float | None
    memory_usage_percent: float | None
    gpu_utilization: float | None
    gpu_temperature: float | None
    gpu_power_watts: float | None
    disk_read_mb_s: float | None

    def __init__(self, update_interval: float = 1.0) -> None:
        self.update_interval = max(0.1, float(update_interval))
        self._node = Node(self.update_interval)
        self._now: dict[str, float | None] = {}
        self._read: tuple[float, int] | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __getattr__(self, name: str) -> Any:
        if name not in NAMES:
            raise AttributeError(f"{type(self).__name__} has no {name!r}: it has {', '.join(NAMES)}")
        return self.get_metrics()[name]

    def get_metrics(self) -> dict[str, float | None]:
        gpu = next(iter(self._node.gpus().values()), {})
        now = self._now | {"gpu_utilization": gpu.get("utilization_percent"),
                           "gpu_temperature": gpu.get("temperature_celsius"),
                           "gpu_power_watts": gpu.get("power_draw_watts")}  # fmt: skip
        return {name: now.get(name) for name in NAMES}

    def start_monitoring(self, root: Path | None = None) -> None:
        """`root` is the journal's folder, where it is not the usual one."""
        if self._thread is None and not is_switched_off():
            self._ended.clear()
            self._node = Node(self.update_interval, root)
            self._node.start()
            self._thread = threading.Thread(target=self._watch, name="trainvitals-system", daemon=True)
            self._thread.start()

    def stop_monitoring(self) -> None:
        self._ended.set()
        self._thread = None
        self._node.stop()

    def failed(self, error: BaseException) -> None:
        warn(error)
        self._ended.set()

    def _watch(self) -> None:
        while not self._ended.is_set():
            self._look()
            self._ended.wait(self.update_interval)

    @harmless
    def _look(self) -> None:
        host = host_percent()
        self._now = {"cpu_usage_percent": host["cpu_percent"], "memory_usage_percent": host["memory_percent"],
                     "disk_read_mb_s": self._disk_rate()}  # fmt: skip

    def _disk_rate(self) -> float | None:
        import psutil

        counters = psutil.disk_io_counters()
        if counters is None:
            return None
        before, self._read = self._read, (time.monotonic(), counters.read_bytes)
        if before is None:
            return None
        return (self._read[1] - before[1]) / 2**20 / (self._read[0] - before[0])
