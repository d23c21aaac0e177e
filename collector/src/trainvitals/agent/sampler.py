"""The tick: asks every device at the same time and waits for those that answer in time.

A device is read in a thread of its own. One that hangs is waited for once; from then on its readings
come when they come, and vanish when they are too old to be called live.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue

from trainvitals.agent.worker import Found, Result, Worker
from trainvitals.clock import SYSTEM, Clock
from trainvitals.errors import DeviceLost, SourceAbsent, SourceError
from trainvitals.model import Event, Labels, Reading, Value
from trainvitals.sources import EventSource, Source

DISCOVER_SECONDS = 10.0
EVENT_WAIT_SECONDS = 2.0
STOP_SECONDS = 1.0
FIRST_DISCOVERY_SECONDS = 2.0

log = logging.getLogger("trainvitals.sampler")


@dataclass(slots=True)
class SourceState:
    """`up` is None for a source that has nothing to read on this machine."""

    up: bool | None = None
    problem: str = ""
    devices: int = 0
    gpu_count: int = 0
    read_seconds: float = 0.0
    errors: int = 0


@dataclass(slots=True)
class Sample:
    """One tick: what is known now, and which of it is new since the last."""

    timestamp: float
    readings: list[Reading]
    fresh: list[Reading]
    sources: dict[str, SourceState]
    samples_total: int = 0
    late_total: int = 0


class Sampler:
    def __init__(self, sources: Sequence[Source], interval: float, publish: Callable[[Sample], None],
                 on_event: Callable[[Event], None], clock: Clock = SYSTEM) -> None:  # fmt: skip
        self._sources, self._interval, self._publish, self._on_event = sources, interval, publish, on_event
        self._clock = clock
        self._inbox: SimpleQueue[Result | Found] = SimpleQueue()
        self._workers: dict[str, dict[str, Worker]] = {source.name: {} for source in sources}
        self._states = {source.name: SourceState() for source in sources}
        self._pokes = {source.name: threading.Event() for source in sources}
        self._stop = threading.Event()
        self._samples = self._late = 0
        self._ticked = False
        self._ticking: threading.Thread | None = None
        self._said: set[str] = set()
        self.last_published = clock.monotonic()

    def start(self) -> None:
        for source in self._sources:
            self._thread(self._discover, source)
            if isinstance(source, EventSource):
                self._thread(self._listen, source)
        self._ticking = self._thread(self._run)

    def stop(self) -> None:
        """After this nothing more is published; the tick under way is waited for."""
        self._stop.set()
        for source in self._sources:
            self._pokes[source.name].set()
            source.close()
        for workers in self._workers.values():
            for worker in list(workers.values()):
                worker.stop()
        if self._ticking is not None:
            self._ticking.join(STOP_SECONDS)

    def is_stuck(self) -> bool:
        """No tick has been published for a while, whatever the reason."""
        return self._clock.monotonic() - self.last_published > max(10.0, 3 * self._interval)

    def tick(self) -> Sample:
        """One round: wake who is free, take what comes in time, and say what is known. The first one
        waits for every tier, so that devices have their names from the start."""
        awaited = {(worker, tier) for worker in self._all_workers() for tier in worker.wake()}
        if self._ticked:
            awaited = {(worker, tier) for worker, tier in awaited if tier == "fast"}
        self._ticked = True
        began = self._clock.monotonic()
        fresh: list[Reading] = []
        deadline = began + min(0.5, self._interval / 2)
        while awaited and (left := deadline - self._clock.monotonic()) > 0:
            try:
                result = self._inbox.get(timeout=left)
            except Empty:
                break
            self._take(result, fresh)
            if isinstance(result, Result):
                awaited.discard((result.worker, result.tier))
        self._take_waiting(fresh)
        return self._sample(fresh)

    def _run(self) -> None:
        self._await_discovery()
        start, number = self._clock.monotonic(), 0
        while not self._stop.is_set():
            try:
                self._publish(self.tick())
                self.last_published = self._clock.monotonic()
            except Exception:
                log.exception("a tick failed; the next one goes on")
            passed = self._clock.monotonic() - start
            self._late += passed > (number + 1.5) * self._interval
            number = max(number + 1, int(passed / self._interval))
            self._stop.wait(max(0.0, start + number * self._interval - self._clock.monotonic()))

    def _await_discovery(self) -> None:
        """The first tick is to show the devices already; a source that hangs is not waited for."""
        deadline = self._clock.monotonic() + FIRST_DISCOVERY_SECONDS
        missing = {source.name for source in self._sources}
        while missing and (left := deadline - self._clock.monotonic()) > 0:
            try:
                found = self._inbox.get(timeout=left)
            except Empty:
                return
            self._take(found, [])
            if isinstance(found, Found):
                missing.discard(found.source)

    def _take_waiting(self, fresh: list[Reading]) -> None:
        while True:
            try:
                self._take(self._inbox.get_nowait(), fresh)
            except Empty:
                return

    def _take(self, item: Result | Found, fresh: list[Reading]) -> None:
        if isinstance(item, Found):
            self._settle(item)
            return
        item.worker.keep(item)
        if item.error is not None:
            self._blame(item.worker.source, item.error)
            return
        fresh.extend(item.readings)
        self._samples += len(item.readings)

    def _blame(self, source: str, error: Exception) -> None:
        self._states[source].errors += 1
        self._say(str(error) if isinstance(error, SourceError) else f"{source}: {error!r}")
        if isinstance(error, SourceError) and not isinstance(error, DeviceLost):
            self._pokes[source].set()

    def _say(self, text: str) -> None:
        if text not in self._said and len(self._said) < 1000:
            self._said.add(text)
            log.warning("%s", text)

    def _settle(self, found: Found) -> None:
        """The workers become those of the devices that were found; hung threads end when they can."""
        state, workers = self._states[found.source], self._workers[found.source]
        state.problem = str(found.error) if found.error else ""
        state.gpu_count = max(state.gpu_count, found.gpu_count)
        state.up = None if isinstance(found.error, SourceAbsent) else found.error is None
        if found.error and state.up is not None:
            self._say(state.problem)
        devices = {device.key: device for device in found.devices}
        for key in [key for key, worker in workers.items() if devices.get(key) is not worker.device]:
            workers.pop(key).stop()
        for key, device in devices.items():
            if key not in workers:
                workers[key] = Worker(found.source, device, self._inbox, self._clock)

    def _sample(self, fresh: list[Reading]) -> Sample:
        live: list[Reading] = []
        for name, workers in self._workers.items():
            of_source = {worker: worker.live(self._interval) for worker in workers.values()}
            live.extend(reading for readings in of_source.values() for reading in readings)
            self._judge(name, of_source)
        states = {name: replace(state) for name, state in self._states.items()}
        return Sample(self._clock.now(), merged(live), fresh, states, self._samples, self._late)

    def _judge(self, name: str, of_source: Mapping[Worker, list[Reading]]) -> None:
        state = self._states[name]
        state.devices = len(of_source)
        state.read_seconds = max((worker.seconds for worker in of_source), default=0.0)
        if state.up and of_source and not any(of_source.values()) and all(w.kept or w.error for w in of_source):
            state.up = False
            state.problem = state.problem or f"{name}: no device answers"

    def _discover(self, source: Source) -> None:
        while not self._stop.is_set():
            try:
                found = Found(source.name, source.discover(), None, source.gpu_count)
            except Exception as error:
                found = Found(source.name, (), error)
            self._inbox.put(found)
            self._pokes[source.name].wait(DISCOVER_SECONDS)
            if self._pokes[source.name].is_set():
                self._pokes[source.name].clear()
                self._stop.wait(1.0)

    def _listen(self, source: EventSource) -> None:
        while not self._stop.is_set():
            try:
                for event in source.wait_events(EVENT_WAIT_SECONDS):
                    self._on_event(event)
            except Exception as error:
                self._say(f"{source.name}: events: {error!r}")
                self._stop.wait(EVENT_WAIT_SECONDS)

    def _all_workers(self) -> list[Worker]:
        return [worker for workers in self._workers.values() for worker in workers.values()]

    def _thread(self, target: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=target, args=arguments, name="trainvitals", daemon=True)
        thread.start()
        return thread


def merged(readings: Sequence[Reading]) -> list[Reading]:
    """One reading a thing: what came later overrides; its time is that of the last."""
    things: dict[tuple[str, Labels], Reading] = {}
    for reading in readings:
        key = (reading.scope, reading.labels)
        before = things.get(key)
        values: Mapping[str, Value] = reading.values if before is None else {**before.values, **reading.values}
        things[key] = Reading(reading.scope, reading.labels, values, reading.timestamp)
    return list(things.values())


def source_reading(name: str, state: SourceState, now: float) -> Reading:
    values = {"errors_total": float(state.errors)}
    if state.up is not None:
        values |= {"up": float(state.up), "read_seconds": state.read_seconds}
    return Reading("source", (("source", name),), values, now)
