"""A thread a device: reads the tiers that are due when it is woken, and keeps what was said.

A device that hangs holds up its own thread and no other.
"""

import threading
from collections.abc import Sequence
from queue import SimpleQueue
from typing import NamedTuple

from trainvitals.clock import Clock
from trainvitals.errors import SourceError
from trainvitals.model import Reading, Tier
from trainvitals.sources import PERIODS, Device

_TIERS: tuple[Tier, ...] = ("rare", "slow", "fast")


class Result(NamedTuple):
    worker: "Worker"
    tier: Tier
    readings: Sequence[Reading]
    error: Exception | None
    seconds: float


class Found(NamedTuple):
    source: str
    devices: Sequence[Device]
    error: Exception | None


class Worker:
    """Reads one device whenever it is woken, the tiers that are due, the fast one first."""

    def __init__(self, source: str, device: Device, inbox: "SimpleQueue[Result | Found]", clock: Clock) -> None:
        self.source, self.device = source, device
        self.kept: dict[Tier, tuple[float, Sequence[Reading]]] = {}
        self.error: Exception | None = None
        self.seconds = 0.0
        self._inbox, self._clock = inbox, clock
        self._orders: SimpleQueue[bool] = SimpleQueue()
        self._busy = False
        self._due: dict[Tier, float] = dict.fromkeys(PERIODS, float("-inf"))
        threading.Thread(target=self._run, name=f"read-{device.key}"[:15], daemon=True).start()

    def wake(self) -> bool:
        """False when it still has not come back from the last read."""
        if self._busy:
            return False
        self._busy = True
        self._orders.put(True)
        return True

    def stop(self) -> None:
        self._orders.put(False)

    def keep(self, result: Result) -> None:
        self.error = result.error
        if result.error is None:
            self.kept[result.tier] = (self._clock.monotonic(), result.readings)
        elif isinstance(result.error, SourceError):
            self.kept.clear()
        if result.tier == "fast":
            self.seconds = result.seconds

    def live(self, interval: float) -> list[Reading]:
        """What it last said, tier by tier; nothing once its fast reading is too old."""
        now = self._clock.monotonic()
        fast = self.kept.get("fast")
        if fast is None or now - fast[0] > max(5 * interval, 5.0):
            return []
        readings: list[Reading] = []
        for tier in _TIERS:
            taken, of_tier = self.kept.get(tier, (0.0, ()))
            if of_tier and now - taken <= 3 * max(PERIODS[tier], interval) + 5.0:
                readings.extend(of_tier)
        return readings

    def _run(self) -> None:
        while self._orders.get():
            for tier, period in PERIODS.items():
                began = self._clock.monotonic()
                if began >= self._due[tier]:
                    self._due[tier] = began + period - 0.05
                    self._inbox.put(self._read(tier, began))
            self._busy = False

    def _read(self, tier: Tier, began: float) -> Result:
        try:
            readings, error = self.device.read(tier), None
        except Exception as problem:
            readings, error = (), problem
        return Result(self, tier, readings, error, self._clock.monotonic() - began)
