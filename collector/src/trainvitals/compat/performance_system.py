"""The machine, beside a training: processors and memory as they are asked for, GPUs as the node's agent reads them.

monitor = SystemMonitor(update_interval=1.0)
monitor.cpu_usage_percent  ->  31.0
monitor.get_metrics()  ->  {"cpu_usage_percent": 31.0, "memory_usage_percent": 62.0, "gpu_utilization": 97.0, …}
"""

import math
import time
from pathlib import Path
from typing import Any

from trainvitals.compat.node import Node
from trainvitals.compat.readings import host_percent
from trainvitals.run.harmless import harmless, warn

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
        self._host: dict[str, float | None] = {}
        self._next_look = 0.0
        self._disk: tuple[float, int] | None = None
        # None: nobody said, and who asks for a value wants it.
        self._is_started: bool | None = None

    def __getattr__(self, name: str) -> Any:
        if name not in NAMES:
            raise AttributeError(f"{type(self).__name__} has no {name!r}: it has {', '.join(NAMES)}")
        return self.get_metrics()[name]

    def get_metrics(self) -> dict[str, float | None]:
        if self._is_started is None:
            self.start_monitoring()
        if time.monotonic() >= self._next_look:
            self._look()
        gpu = next(iter(self._node.gpus().values()), {})
        now = self._host | {"gpu_utilization": gpu.get("utilization_percent"),
                            "gpu_temperature": gpu.get("temperature_celsius"),
                            "gpu_power_watts": gpu.get("power_draw_watts")}  # fmt: skip
        return {name: now.get(name) for name in NAMES}

    def start_monitoring(self, root: Path | None = None) -> None:
        """The GPUs' readings. `root` is the journal's folder, where it is not the usual one."""
        if not self._is_started:
            self._is_started = True
            self._node = Node(self.update_interval, root)
            self._node.start()
            self._look()

    def stop_monitoring(self) -> None:
        self._is_started = False
        self._node.stop()

    def failed(self, error: BaseException) -> None:
        warn(error)
        self._host, self._next_look = {}, math.inf

    @harmless
    def _look(self) -> None:
        self._next_look = time.monotonic() + self.update_interval
        host = host_percent()
        self._host = {"cpu_usage_percent": host["cpu_percent"], "memory_usage_percent": host["memory_percent"],
                      "disk_read_mb_s": self._disk_rate()}  # fmt: skip

    def _disk_rate(self) -> float | None:
        import psutil

        counters = psutil.disk_io_counters()
        if counters is None:
            return None
        before, self._disk = self._disk, (time.monotonic(), counters.read_bytes)
        if before is None:
            return None
        return (self._disk[1] - before[1]) / 2**20 / (self._disk[0] - before[0])
