"""A recording as Prometheus would have scraped the agent that wrote it, beside what the agent found: for promtool.

watched(scenario)  ->  Watched(seconds=4200, series={'gpu_temperature_celsius{…}': {0: 62.0, 1: 62.0, …}}, changes=[…])

Once the recording is over, its machine tells for a while what it told before the fault: the fault has ended.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.detect.scenarios.scenario import Recording
from trainvitals import replay
from trainvitals.agent.beside import COUNTS, FILESYSTEMS, SOURCE_UP
from trainvitals.agent.run_state import RunState
from trainvitals.agent.xids import Xids
from trainvitals.detect.engine import Engine
from trainvitals.detect.finding import Change
from trainvitals.exporter import families
from trainvitals.journal.record import seconds
from trainvitals.model import Event, Reading, Snapshot
from trainvitals.recorded import Item, Recorded, give_host

STEP_SECONDS, AFTER_SECONDS = 5, 1500
# Of what was not read for so long an agent tells nothing.
STALE_SECONDS, ENDED_SECONDS = 40.0, 600.0
Values = dict[str, Any]


@dataclass
class Watched:
    """`series`: to the number of the scrape, what it told. `changes`: by seconds since the start."""

    seconds: int = 0
    series: dict[str, dict[int, float]] = field(default_factory=dict)
    changes: list[tuple[float, Change]] = field(default_factory=list)


class Mirror:
    """What an agent knows, from the items of a replay."""

    def __init__(self, runs: list[Recorded], gpus: int, began: float) -> None:
        self.gpus: dict[str, tuple[float, str, Values]] = {}
        self.host: tuple[float, Values] = (0.0, {})
        self.name = ""
        self._expected, self._began, self._xids = gpus, began, Xids()
        self._runs = {run.run: _state(run) for run in runs}

    def give(self, item: Item) -> None:
        name, given = item.method.__name__, item.arguments
        if name == "gpu":
            self.gpus[given[2]], self.name = (given[0], given[1], dict(given[3])), given[4]
        elif name == give_host.__name__:
            self.host, self.name = (given[0], dict(given[1])), given[2]
        elif name == "xid":
            self._xids.add(Event("xid", (("gpu", given[1]), ("uuid", given[2])), {"xid": given[3]}, given[0]))
        elif name in ("begin", "training", "run_event", "ended"):
            self._take(self._runs[given[0]], name, given)

    def _take(self, run: RunState, name: str, given: tuple[Any, ...]) -> None:
        if name == "begin":
            run.status, run.ended = "running", None
        elif name == "training":
            run.rank(given[1]).take(given[2])
        elif name == "ended":
            run.status, run.ended = given[1] or run.status, given[2]
        else:
            run.phases.take(given[1], given[2])
            if given[2].get("event") == "checkpoint":
                run.checkpoint = seconds(given[2].get("timestamp"))

    def snapshot(self, now: float) -> Snapshot:
        gpus = [Reading("gpu", (("gpu", gpu), ("uuid", uuid)), _tuples(values), now)
                for uuid, (when, gpu, values) in self.gpus.items() if now - when < STALE_SECONDS]  # fmt: skip
        count = {"gpu_count": float(len(gpus)), "gpu_expected_count": float(self._expected)}
        runs = [run for run in self._runs.values() if run.ended is None or now - run.ended < ENDED_SECONDS]
        readings = [*gpus, *self._xids.readings(now), Reading("host", (), count, now), *self._of_host(now),
                    *(reading for run in runs for reading in run.readings(now))]  # fmt: skip
        return Snapshot(now, tuple(readings))

    def _of_host(self, now: float) -> Iterator[Reading]:
        values = dict(self.host[1]) if now - self.host[0] < STALE_SECONDS else {}
        for mountpoint, room in values.pop(FILESYSTEMS, {}).items():
            yield Reading("filesystem", (("mountpoint", mountpoint),), room, now)
        for name in [name for name in values if name.startswith(SOURCE_UP)]:
            yield Reading("source", (("source", name.removeprefix(SOURCE_UP)),), {"up": values[name]}, now)
        own = {name: values[name] for name in COUNTS if name in values}
        yield Reading("agent", (), {**own, "start_timestamp_seconds": self._began, "notify_channels": 1.0}, now)
        yield Reading("host", (), values, now)


def _state(run: Recorded) -> RunState:
    """Its ranks live throughout: what is told of them then is which phase is open."""
    state = RunState(run.run, run.info)
    state.gpus = {rank: [(str(number), uuid) for number, uuid in enumerate(uuids)] for rank, uuids in run.gpus.items()}
    state.alive = {rank: run.started.get(rank, 0.0) for rank in run.gpus}
    return state


def _tuples(values: Values) -> Values:
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items() if name != "uuid"
    }


def watched(recording: Recording, folder: Path) -> Watched:
    recording.write(folder)
    journal, engine, found = replay.recorded([folder]), Engine(), Watched()
    for run in journal.runs:
        engine.info(run.run, run.info, run.gpus, run.hosts)
    began = math.floor(recording.began)
    expected = [node.gpus if node.expected_gpus is None else node.expected_gpus for node in recording.nodes]
    mirror, well, scrape = Mirror(journal.runs, max(expected, default=0), began), None, 0
    onset = min(one.onset for one in recording.expected)
    for item in replay.merged(journal):
        if well is None and item.when >= onset - 1:
            well = dict(mirror.gpus), mirror.host[1]
        while began + (scrape + 1) * STEP_SECONDS <= item.when:
            scrape += 1
            _scrape(found, scrape, mirror, began, engine)
        mirror.give(item)
        item.give(engine)
        _note(found, engine.tick(max(engine.now, item.when)), began)
    _heal(mirror, *(well or ({}, {})))
    for _ in range(AFTER_SECONDS // STEP_SECONDS):
        scrape += 1
        _go_on(mirror, engine, began + scrape * STEP_SECONDS)
        _scrape(found, scrape, mirror, began, engine)
    found.seconds = scrape * STEP_SECONDS
    return found


def _scrape(found: Watched, number: int, mirror: Mirror, began: float, engine: Engine) -> None:
    now = began + number * STEP_SECONDS
    _note(found, engine.tick(now), began)
    for family in families(mirror.snapshot(now)):
        for sample in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sorted({**sample.labels, "instance": "h"}.items()))
            # promtool's clock begins at 0.
            since = began if sample.name.endswith("_timestamp_seconds") else 0.0
            found.series.setdefault(f"{sample.name}{{{labels}}}", {})[number] = sample.value - since


def _note(found: Watched, changes: list[Change], began: float) -> None:
    found.changes += [(change.when - began, change) for change in changes]


def _heal(mirror: Mirror, gpus: dict[str, tuple[float, str, Values]], host: Values) -> None:
    for uuid, (when, gpu, before) in gpus.items():
        mirror.gpus[uuid] = when, gpu, _healed(mirror.gpus.get(uuid, (0.0, "", {}))[2], before)
    mirror.host = mirror.host[0], _healed(mirror.host[1], host)


def _healed(now: Values, before: Values) -> Values:
    """What counts does not count back."""
    return before | {name: value for name, value in now.items() if "_total" in name}


def _go_on(mirror: Mirror, engine: Engine, now: float) -> None:
    for uuid, (_, gpu, values) in mirror.gpus.items():
        mirror.gpus[uuid] = now, gpu, values
        engine.gpu(now, gpu, uuid, values, mirror.name)
    if mirror.host[1]:
        mirror.host = now, mirror.host[1]
        give_host(engine, now, dict(mirror.host[1]), mirror.name)
