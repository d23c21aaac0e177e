"""What is known of a run and its ranks, built from journal records and told as readings."""

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

from trainvitals.agent.pace import Pace
from trainvitals.catalog import PHASES, RUN_STATUSES, STEP_BUCKETS
from trainvitals.detect.open_phases import OpenPhases
from trainvitals.journal.record import Record, as_number, seconds
from trainvitals.model import Histogram, Labels, Reading, Value

MAX_CUSTOM_NAMES = 50
MAX_LABEL = 200
MAX_KEPT_NAMES = 1000
_GAUGES = ("loss", "epoch", "learning_rate", "gradient_norm", "memory_allocated_mb", "throughput_samples_per_sec",
           "tokens_per_second", "step")  # fmt: skip
_PHASE_FIELDS = tuple((f"{phase}_seconds", phase) for phase in PHASES)
OWN_NAMES = frozenset((*_GAUGES, "timestamp", "memory_reserved_mb", "step_duration_seconds",
                       *(name for name, _ in _PHASE_FIELDS)))  # fmt: skip
_MIB = 2**20
_INFINITE = (math.inf, -math.inf)


def as_label(value: object) -> str:
    """Text that can stand in a label: a name may come from anybody's file."""
    if not isinstance(value, (str, int, float)):
        return ""
    try:
        text = str(value)
    except ValueError:  # an integer of more digits than Python writes out
        return ""
    return text[:MAX_LABEL].encode("utf-8", "replace").decode()


def as_duration(value: object) -> float | None:
    seconds = as_number(value)
    return seconds if seconds is not None and 0 <= seconds < math.inf else None


@dataclass(slots=True)
class RankState:
    """Sums up one rank's records; cheap enough for hundreds of thousands a second."""

    rank: int
    steps: int = 0
    step: object = None
    last: Record = field(default_factory=dict)
    # The last line with the time of a step.
    timed: Record = field(default_factory=dict)
    nonfinite: dict[str, int] = field(default_factory=dict)
    buckets: list[int] = field(default_factory=lambda: [0] * (len(STEP_BUCKETS) + 1))
    step_seconds: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    first_stamp: str = ""
    pace: Pace = field(default_factory=Pace)
    other: float = 0.0
    dropped: int = 0

    def take(self, records: list[Record]) -> int:
        """How many records could not be taken: one that nobody foresaw is no reason to lose the others."""
        lost = 0
        self.pace.take(records)
        for record in records:
            try:
                self._take(record)
            except Exception:
                lost += 1
        return lost

    def _take(self, record: Record) -> None:
        step = record.get("step")
        if step is not None and step != self.step:
            self.step = step
            self.steps += 1
        for name, value in record.items():
            if type(value) is float and (value != value or value in _INFINITE):
                self._count_nonfinite(name)
        duration = as_duration(record.get("step_duration_seconds"))
        if duration is not None:
            self.buckets[bisect_left(STEP_BUCKETS, duration)] += 1
            self.step_seconds += duration
            self.timed = record
        for name, phase in _PHASE_FIELDS:
            if name in record and (spent := as_duration(record[name])) is not None:
                self.phases[phase] = self.phases.get(phase, 0.0) + spent
        self.last.update(record)
        if len(self.last) > MAX_KEPT_NAMES:
            self._drop_names()
        if not self.first_stamp:
            self.first_stamp = as_label(record.get("timestamp"))

    def _count_nonfinite(self, name: str) -> None:
        """Two names may be one label."""
        label, counts = as_label(name), self.nonfinite
        if label in counts or label in OWN_NAMES or len(counts) < MAX_CUSTOM_NAMES:
            counts[label] = counts.get(label, 0) + 1
        else:
            self.dropped += 1

    def _drop_names(self) -> None:
        """The names that came last go, but never those with a meaning of their own."""
        extra = [name for name in self.last if name not in OWN_NAMES][MAX_KEPT_NAMES - len(OWN_NAMES) :]
        for name in extra:
            del self.last[name]
        self.dropped += len(extra)

    def last_seen(self) -> float | None:
        return seconds(self.last.get("timestamp"))

    def readings(self, labels: Labels, now: float) -> Iterator[Reading]:
        labels = (*labels, ("rank", str(self.rank)))
        yield Reading("rank", labels, self._values(), now)
        for name, count in self.nonfinite.items():
            yield Reading("nonfinite", (*labels, ("field", name)), {"nonfinite_total": float(count)}, now)

    def custom(self) -> dict[str, float]:
        """The values under names of the user's own."""
        return {
            as_label(name): number
            for name, value in self.last.items()
            if name not in OWN_NAMES and (number := as_number(value)) is not None
        }

    def _values(self) -> dict[str, Value]:
        last = self.last
        values: dict[str, Value] = {"steps_total": float(self.steps)}
        for name in _GAUGES:
            if (number := as_number(last.get(name))) is not None:
                values[name] = number
        if (reserved := as_number(last.get("memory_reserved_mb"))) is not None:
            values["memory_reserved_bytes"] = reserved * _MIB
        if (seen := self.last_seen()) is not None and self.steps:
            values["last_step_timestamp_seconds"] = seen
        if any(self.buckets):
            values["step_duration_seconds"] = Histogram(STEP_BUCKETS, tuple(self.buckets), self.step_seconds)
        return values | self._phase_values()

    def _phase_values(self) -> dict[str, Value]:
        """What no phase accounts for is `other`, so that together they are the wall time."""
        begin, end = seconds(self.first_stamp), self.last_seen()
        if not self.phases or begin is None or end is None:
            return {}
        told = sum(value for phase, value in self.phases.items() if phase != "other")
        self.other = max(self.other, end - begin - told)
        return {f"phase_seconds_total_{phase}": value for phase, value in {**self.phases, "other": self.other}.items()}


@dataclass(slots=True)
class RunState:
    """A run as this node sees it. `ended` is when, None while it lives."""

    run: str
    info: Record = field(default_factory=dict)
    ranks: dict[int, RankState] = field(default_factory=dict)
    status: str = ""
    ended: float | None = None
    is_unreadable: bool = False
    checkpoint: float | None = None
    processes: dict[str, float] = field(default_factory=dict)
    gpus: dict[int, list[tuple[str, str]]] = field(default_factory=dict)
    # The machine of each rank.
    hosts: dict[int, str] = field(default_factory=dict)
    # Its living ranks, and since when each lives.
    alive: dict[int, float] = field(default_factory=dict)
    # While others live: its ranks that are gone without an end, and since when.
    gone: dict[int, float] = field(default_factory=dict)
    phases: OpenPhases = field(default_factory=OpenPhases)

    def rank(self, number: int) -> RankState:
        return self.ranks.setdefault(number, RankState(number))

    def readings(self, now: float) -> Iterator[Reading]:
        labels: Labels = (("run", self.run),)
        yield Reading("run", labels, self._values(), now)
        yield Reading("run_info", labels + self._info_labels(), {"run_info": 1.0}, now)
        names: set[str] = set()
        dropped = sum(rank.dropped for rank in self.ranks.values())
        for rank in self.ranks.values():
            yield from rank.readings(labels, now)
            for name, value in rank.custom().items():
                if name not in names and len(names) >= MAX_CUSTOM_NAMES:
                    dropped += 1
                    continue
                names.add(name)
                of_metric = (*labels, ("rank", str(rank.rank)), ("name", name))
                yield Reading("custom", of_metric, {"metric": value}, now)
        yield Reading("run", labels, {"metrics_dropped_total": float(dropped)}, now)
        for number, since in self.alive.items():
            timed = self.ranks[number].timed if number in self.ranks else {}
            if values := self.phases.of(number, since, timed):
                yield Reading("rank", (*labels, ("rank", str(number))), values, now)
        for number, gpus in self.gpus.items():
            for gpu, uuid in gpus:
                joined = (*labels, ("rank", str(number)), ("gpu", gpu), ("uuid", uuid))
                yield Reading("rank_gpu", joined, {"gpu_info": 1.0}, now)

    def _values(self) -> dict[str, Value]:
        values: dict[str, Value] = dict(self.processes)
        if self.status in RUN_STATUSES:
            values["run_status"] = (self.status,)
        elif self.is_unreadable:
            values["unreadable"] = 1.0
        started = seconds(self.info.get("start"))
        if started is not None:
            values["start_timestamp_seconds"] = started
        if self.checkpoint is not None:
            values["last_checkpoint_timestamp_seconds"] = self.checkpoint
        planned = as_number(self.info.get("planned_steps"))
        if planned is not None:
            values["planned_steps"] = planned
        return values

    def _info_labels(self) -> Labels:
        world = self.info.get("world_size") or len(self.ranks)
        return (("name", as_label(self.info.get("name") or self.run)),
                ("framework", as_label(self.info.get("framework"))), ("world_size", as_label(world)))  # fmt: skip
