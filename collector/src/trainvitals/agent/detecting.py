"""The engine at work in an agent: what was just read and sampled goes in, news goes to event files and to people.

Lines are judged in the thread that follows the runs, as they are read; samples in the sampler's. What the agent of
before has told, before a restart, is not told again.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from trainvitals.agent.beside import COUNTS
from trainvitals.agent.run_state import RunState
from trainvitals.agent.runs import Runs
from trainvitals.agent.told import Memory
from trainvitals.catalog import RUN_STATUSES
from trainvitals.clock import SYSTEM, Clock
from trainvitals.detect.engine import Engine
from trainvitals.detect.finding import Change, Finding, Place
from trainvitals.detect.shown import as_alert
from trainvitals.journal.record import Record
from trainvitals.model import Event, Labels, Reading

Tell = Callable[[Sequence[Change]], None]
# Lines that were written longer ago are known to the past alone.
JUDGED_SECONDS = 6 * 3600.0
GONE_SECONDS = 60.0
_LEVELS = {"page": logging.ERROR, "ticket": logging.WARNING, "info": logging.INFO}

log = logging.getLogger("trainvitals.detect")


class Detecting:
    def __init__(self, engine: Engine, runs: Runs, folder: Path, keep: Callable[[Record], Any], tell: Tell,
                 clock: Clock = SYSTEM, *, keeps: bool = True) -> None:  # fmt: skip
        """`keep` writes a line to the node's event file; `tell` must not wait; `keeps`: for the agent that follows."""
        self._engine, self._runs, self._keep, self._tell, self._clock = engine, runs, keep, tell, clock
        self._memory = Memory(folder, clock.now(), keeps)
        self._lock, self._host = threading.Lock(), folder.name
        self._status: dict[str, str] = {}
        # Ranks that are gone while others live, as far as that was told.
        self._gone: dict[str, dict[int, float]] = {}
        self._lives: dict[str, float] = {}
        self._available: float | None = None
        runs.listeners.append(self._lines)
        runs.updated = self._updated

    def start(self) -> list[Change]:
        """What the agent of before had told, and not taken back."""
        return self._memory.load()

    def readings(self, now: float) -> list[Reading]:
        """What is open, told by itself or with another, here or by the agent of before, as series; those of one place
        that differ in their part alone are one."""
        with self._lock:
            found = [one.finding for one in self._engine.book.open.values()]
            found += [change.finding for change in self._memory.before.values()]
        return list({reading.labels: reading for one in found for reading in [_reading(one, now)]}.values())

    def open(self) -> list[Change]:
        """What is open, and what the agent of before had told and this one has not seen to end yet."""
        with self._lock:
            heads = [Change("open", one.finding, one.opened, one.last, None, tuple(one.evidence), one.last)
                     for one in self._engine.book.heads()]  # fmt: skip
            return [*heads, *(change for change in self._memory.before.values() if change.cause is None)]

    def alerts(self) -> list[Record]:
        """The same as alerts are shown."""
        return [as_alert(one.finding, one.opened, self._host, one.evidence) for one in self.open()]

    def sample(self, readings: Iterable[Reading], now: float, missing: Iterable[Labels] = ()) -> None:
        """`missing`: of the GPUs that were seen those that are not now."""
        with self._lock:
            for (_, gpu), (_, uuid) in missing:
                self._engine.missing(now, gpu, uuid, f"GPU {gpu} does not answer")
            self._take_sample(readings, now)
            self._report(self._engine.news())

    def event(self, event: Event) -> None:
        labels, number = dict(event.labels), event.details.get("xid")
        if event.kind == "xid" and isinstance(number, (int, float)):
            with self._lock:
                self._engine.xid(event.timestamp, labels.get("gpu", ""), labels.get("uuid", ""), int(number))
                self._report(self._engine.news())

    def _take_sample(self, readings: Iterable[Reading], now: float) -> None:
        engine, host = self._engine, dict[str, Any]()
        for one in readings:
            if one.scope == "gpu":
                engine.gpu(one.timestamp, one.label("gpu"), one.label("uuid"), one.values)
            elif one.scope == "host":
                host |= one.values
            elif one.scope == "filesystem":
                engine.disk(now, one.values, one.label("mountpoint"))
            elif one.scope == "source" and "up" in one.values:
                engine.source(now, one.label("source"), bool(one.values["up"]))
            elif one.scope == "agent":
                engine.journal(now, *map(one.number, COUNTS))
        engine.host(now, host)
        self._available = host.get("memory_available_bytes")

    def _lines(self, run: str, rank: int, records: list[Record], are_events: bool) -> None:
        with self._lock:
            if run not in self._status:
                self._meet(run)
            if are_events:
                for record in records:
                    self._engine.run_event(run, rank, record)
            else:
                self._engine.training(run, rank, records, self._clock.now() - JUDGED_SECONDS)
            self._report(self._engine.news())

    def _meet(self, run: str) -> None:
        """Before its first line is judged: what it says of itself may change how."""
        for state in self._runs.states():
            if state.run == run:
                self._engine.info(run, state.info, {})
                self._status[run] = ""

    def _updated(self) -> None:
        """All that was written has been read: what did not come did not happen."""
        now = self._clock.now()
        with self._lock:
            states = self._runs.states()
            for state in states:
                self._follow(state, now)
            for gone in self._status.keys() - {state.run for state in states}:
                self._engine.forget(gone)
                del self._status[gone]
                self._gone.pop(gone, None)
            self._report(self._engine.tick(now))

    def _follow(self, state: RunState, now: float) -> None:
        run, engine = state.run, self._engine
        began = max(state.alive.values(), default=0.0)
        if began > self._lives.get(run, 0.0):
            self._lives[run] = began
            engine.resume(run, began)
        uuids = {rank: [uuid for _, uuid in gpus] for rank, gpus in state.gpus.items()}
        engine.info(run, state.info, uuids, state.hosts)
        if state.status != self._status.get(run) and state.status in RUN_STATUSES[1:]:
            engine.ended(run, state.status, state.ended or now, str(state.info.get("error") or ""))
        self._status[run] = state.status
        self._lose(state, now)
        resident = state.processes.get("process_resident_bytes")
        if resident is not None and self._available is not None:
            engine.memory(run, now, resident, self._available)

    def _lose(self, state: RunState, now: float) -> None:
        """Of one that is gone for long the agent of before has told."""
        known = self._gone.get(state.run, {})
        for rank, when in state.gone.items():
            if known.get(rank) != when and now - when < GONE_SECONDS:
                self._engine.lost(state.run, rank, when)
        self._gone[state.run] = state.gone

    def _report(self, news: Sequence[Change]) -> None:
        told = self._memory.sift(news, self._engine.book, self._clock.now())
        for change in told:
            self._write(change)
        if told:
            self._tell(told)

    def _write(self, change: Change) -> None:
        finding, line = change.finding, change.record()
        if not self._runs.report(finding.place.run, line):
            self._keep(line)
        log.log(_LEVELS[finding.severity], "%s: %s: %s", change.state, finding.kind, finding.what)


def _reading(finding: Finding, now: float) -> Reading:
    place = zip(Place._fields[:4], finding.place, strict=False)
    labels = (("kind", finding.kind), ("severity", finding.severity), *place)
    return Reading("finding", labels, {"finding": 1.0}, now)
