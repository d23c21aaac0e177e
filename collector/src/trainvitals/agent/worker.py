"""Two threads a device: one reads its cheap fields each tick, one the dear ones when they are due.

A device that hangs holds up its own threads and no other; dear fields never hold up cheap ones.
"""

import threading
import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import NamedTuple

from trainvitals.clock import Clock
from trainvitals.errors import SourceError
from trainvitals.model import Reading, Tier
from trainvitals.sources import PERIODS, Device

STALE_SECONDS = 8.0
_TIERS: tuple[Tier, ...] = ("rare", "slow", "fast")


class Result(NamedTuple):
    worker: "Worker"
    tier: Tier
    readings: Sequence[Reading]
    error: Exception | None
    began: float
    seconds: float


class Found(NamedTuple):
    source: str
    devices: Sequence[Device]
    error: Exception | None
    gpu_count: int = 0


class _Lane:
    """One thread that reads some tiers of a device, one after the other."""

    def __init__(self, name: str, tiers: Sequence[Tier], read: Callable[[Tier], None]) -> None:
        self._tiers, self._read = tiers, read
        self._orders: SimpleQueue[bool] = SimpleQueue()
        self._is_busy = False
        self._due: dict[Tier, float] = dict.fromkeys(tiers, float("-inf"))
        threading.Thread(target=self._run, name=name[:15], daemon=True).start()

    def wake(self, now: float) -> bool:
        """False when nothing is due, or it has not come back from the last read."""
        if self._is_busy or now < min(self._due.values()):
            return False
        self._is_busy = True
        self._orders.put(True)
        return True

    def stop(self) -> None:
        self._orders.put(False)

    def _run(self) -> None:
        while self._orders.get():
            for tier in self._tiers:
                now = time.monotonic()
                if now >= self._due[tier]:
                    self._due[tier] = now + PERIODS[tier] - 0.05
                    self._read(tier)
            self._is_busy = False


class Worker:
    """A device and what it said last."""

    def __init__(self, source: str, device: Device, inbox: "SimpleQueue[Result | Found]", clock: Clock) -> None:
        self.source, self.device = source, device
        self.kept: dict[Tier, tuple[float, Sequence[Reading]]] = {}
        self.error: Exception | None = None
        self.seconds = 0.0
        self._inbox, self._clock = inbox, clock
        self._cheap = _Lane(f"read-{device.key}", ("fast",), self._read)
        self._dear = _Lane(f"slow-{device.key}", ("slow", "rare"), self._read)

    def wake(self) -> list[Tier]:
        """The tiers that it now reads; those under way since an earlier tick are not waited for."""
        now = time.monotonic()
        woken: list[Tier] = ["rare"] if self._dear.wake(now) else []
        return [*woken, "fast"] if self._cheap.wake(now) else woken

    def stop(self) -> None:
        self._cheap.stop()
        self._dear.stop()

    def keep(self, result: Result) -> None:
        self.error = result.error
        if result.error is None:
            self.kept[result.tier] = (result.began, result.readings)
        elif isinstance(result.error, SourceError):
            self.kept.clear()
        if result.tier == "fast":
            self.seconds = result.seconds

    def live(self, interval: float) -> list[Reading]:
        """What it last said, tier by tier; nothing once its fast reading was begun too long ago."""
        now = self._clock.monotonic()
        fast = self.kept.get("fast")
        if fast is None or now - fast[0] > max(5 * interval, STALE_SECONDS):
            return []
        readings: list[Reading] = []
        for tier in _TIERS:
            taken, of_tier = self.kept.get(tier, (0.0, ()))
            if of_tier and now - taken <= 3 * max(PERIODS[tier], interval) + 5.0:
                readings.extend(of_tier)
        return readings

    def _read(self, tier: Tier) -> None:
        began = self._clock.monotonic()
        try:
            readings, error = self.device.read(tier), None
        except Exception as problem:
            readings, error = (), problem
        self._inbox.put(Result(self, tier, readings, error, began, self._clock.monotonic() - began))
