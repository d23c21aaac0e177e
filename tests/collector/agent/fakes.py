"""Sources and devices that do as a test says."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from trainvitals.model import Event, Reading, Tier, Value


@dataclass(eq=False)
class FakeGpu:
    index: int
    values: dict[str, Value] = field(default_factory=lambda: {"temperature_celsius": 50.0})
    error: Exception | None = None
    delay: float = 0.0
    reads: int = 0
    errors: int = 0

    @property
    def key(self) -> str:
        return f"GPU-{self.index}"

    def read(self, tier: Tier) -> Sequence[Reading]:
        self.reads += 1
        time.sleep(self.delay)
        if self.error:
            raise self.error
        labels = (("gpu", str(self.index)), ("uuid", self.key))
        values: dict[str, Value] = dict(self.values) if tier == "fast" else {f"pcie_width_{tier}": 1.0}
        return [Reading("gpu", labels, values, time.time())]


@dataclass(eq=False)
class FakeSource:
    devices: list[FakeGpu]
    name: str = "nvml"
    error: Exception | None = None
    hang: threading.Event | None = None
    discoveries: int = 0
    closed: bool = False
    gpu_count: int = 0

    def discover(self) -> Sequence[FakeGpu]:
        self.discoveries += 1
        if self.hang:
            self.hang.wait(30)
        if self.error:
            raise self.error
        return list(self.devices)

    def close(self) -> None:
        self.closed = True


@dataclass(eq=False)
class FakeEventSource(FakeSource):
    events: list[Event] = field(default_factory=list)

    def wait_events(self, timeout: float) -> Sequence[Event]:
        time.sleep(0.01)
        found, self.events = self.events, []
        return found
