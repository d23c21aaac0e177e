"""A training looked at every so often, from a thread: what is new in its run's journal, the GPUs, the processors.

monitor = RealTimeMonitor(PerformanceAlerting(email_config))
monitor.start_monitoring(interval=30)
monitor.stop_monitoring()
"""

import threading
import time
from pathlib import Path
from statistics import fmean
from typing import Any

from trainvitals.compat.node import Node
from trainvitals.compat.readings import allocator, host_percent
from trainvitals.journal import layout
from trainvitals.journal.record import as_number, seconds
from trainvitals.journal.tail import Tail
from trainvitals.run import current, harmless
from trainvitals.run.harmless import log, told
from trainvitals.run.off import is_switched_off

COOLDOWN_SECONDS = 300.0
STOP_SECONDS = 20.0
# Of what was written meanwhile: the last lines say how it goes now.
MOST_LINES = 200


class RealTimeMonitor:
    """`alerting_system` is anything with `check_alerts(current, baseline)` and `send_alert(alert)`. Of what goes on an
    alert is sent every five minutes. The baseline is what was known first; set `baseline_metrics` for another."""

    def __init__(self, alerting_system: Any) -> None:
        self.alerting_system = alerting_system
        self.monitoring_thread: threading.Thread | None = None
        self.baseline_metrics: dict[str, Any] | None = None
        self._ended = threading.Event()
        self._seen = _Seen()
        self._node = Node()
        self._sent: dict[tuple[str, str], float] = {}
        self._troubles: set[str] = set()

    @property
    def is_monitoring(self) -> bool:
        return self.monitoring_thread is not None

    @harmless
    def start_monitoring(self, interval: float = 30) -> None:
        if is_switched_off() or self.is_monitoring:
            return
        wait = max(0.1, float(interval))
        self._ended.clear()
        self._node.follow()
        self.monitoring_thread = threading.Thread(target=self._watch, args=(wait,), name="trainvitals-realtime",
                                                  daemon=True)  # fmt: skip
        self.monitoring_thread.start()

    @harmless
    def stop_monitoring(self) -> None:
        thread, self.monitoring_thread = self.monitoring_thread, None
        self._ended.set()
        self._node.stop()
        if thread is not None and thread is not threading.current_thread():
            thread.join(STOP_SECONDS)

    def failed(self, error: BaseException) -> None:
        """Said once, however often it happens."""
        words = told(error)
        if words not in self._troubles and len(self._troubles) < 100:
            self._troubles.add(words)
            log.warning("the real-time monitor failed and training goes on: %s", words)

    def get_current_metrics(self) -> dict[str, Any]:
        """What is not known is absent."""
        found = self._seen.metrics() | {"cpu_percent": host_percent()["cpu_percent"], "timestamp": time.time()}
        gpus = self._gpus()
        return found | ({"gpu_memory": gpus} if gpus else {})

    def _watch(self, interval: float) -> None:
        """What the processors did in the moment of the first look says nothing."""
        self._look("cpu_percent")
        while not self._ended.wait(interval):
            self._look()

    @harmless
    def _look(self, but_for: str = "") -> None:
        now = {name: value for name, value in self.get_current_metrics().items() if name != but_for}
        self.baseline_metrics = {**now, **(self.baseline_metrics or {})}
        for alert in self.alerting_system.check_alerts(now, self.baseline_metrics):
            if self._is_due(alert):
                self.alerting_system.send_alert(alert)

    def _is_due(self, alert: Any) -> bool:
        """Each kind by itself, and each GPU."""
        kind = (str(alert["type"]), str(alert.get("gpu", ""))) if isinstance(alert, dict) and "type" in alert else None
        if kind is None:
            return True
        now = time.monotonic()
        if now < self._sent.get(kind, 0.0):
            return False
        self._sent[kind] = now + COOLDOWN_SECONDS
        return True

    def _gpus(self) -> dict[str, dict[str, float]]:
        """As the node's agent reads them; where none does, as this process's allocator does."""
        known = {f"gpu_{number}": {"memory_allocated": line["memory_used_mb"], "memory_total": line["memory_total_mb"]}
                 for number, line in self._node.gpus().items()
                 if "memory_used_mb" in line and "memory_total_mb" in line}  # fmt: skip
        return known or {f"gpu_{number}": held for number, held in enumerate(allocator())}


class _Seen:
    """What the run of this process wrote since it was looked at last."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._tail = Tail()

    def metrics(self) -> dict[str, float]:
        run = current()
        if run.folder is None:
            return {}
        if run.folder != self._folder:
            self._folder, self._tail = run.folder, Tail()
        lines = [line for path in sorted(run.folder.glob("training_metrics_*.jsonl"))
                 if layout.training_rank(path.name) == run.rank for line in self._read(path)]  # fmt: skip
        losses = [loss for line in lines if (loss := as_number(line.get("loss"))) is not None]
        speed = _steps_per_second(lines)
        return ({"loss": fmean(losses)} if losses else {}) | ({"training_speed": speed} if speed else {})

    def _read(self, path: Path) -> list[dict[str, Any]]:
        self._tail.follow(path)
        lines: list[dict[str, Any]] = []
        while more := self._tail.read(path):
            lines = (lines + more)[-MOST_LINES:]
        return lines


def _steps_per_second(lines: list[dict[str, Any]]) -> float | None:
    ends = {line.get("step"): when for line in lines if (when := seconds(line.get("timestamp"))) is not None}
    took = max(ends.values()) - min(ends.values()) if ends else 0.0
    return (len(ends) - 1) / took if took > 0 else None
