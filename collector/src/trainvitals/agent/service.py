"""The agent as a whole: samples in; journal, history and the snapshot that everyone reads out."""

import fcntl
import logging
import os
import platform
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import trainvitals
from trainvitals.agent.history import HISTORY_FIELDS, History
from trainvitals.agent.node_log import NodeLog, carried, gpu_values, read_lines
from trainvitals.agent.runs import Runs
from trainvitals.agent.sampler import Sample, Sampler, SourceState
from trainvitals.agent.xids import Xids
from trainvitals.clock import SYSTEM, Clock
from trainvitals.errors import JournalError
from trainvitals.journal import layout, retention, small_files
from trainvitals.journal.record import encode, seconds
from trainvitals.journal.runs import read_json
from trainvitals.model import EMPTY, Event, Labels, Reading, Snapshot
from trainvitals.sources import Source

HOUSEKEEPING_SECONDS = 300.0
CATCH_UP_SECONDS = 0.05
HISTORY_SECONDS = 30 * 86400.0
MOST_GPUS, MAX_GPUS = "gpus.json", 1024

log = logging.getLogger("trainvitals.agent")


class Agent:
    def __init__(self, sources: Sequence[Source], root: Path, *, interval: float = 1.0,
                 expected_gpus: int | None = None, node_price: float | None = None,
                 runs_cap: int = retention.RUNS_CAP_BYTES, node_cap: int = retention.NODE_CAP_BYTES,
                 log_folder: Path | None = None, keep_log: bool = True, host: str = "",
                 clock: Clock = SYSTEM) -> None:  # fmt: skip
        """`log_folder` takes the node's lines in place of the journal; what lies there is never tidied up."""
        self.root, self.host, self.interval = root, host or layout.host_name(), interval
        self._snapshot: Snapshot = EMPTY
        self.sources: dict[str, SourceState] = {}
        self.history = History()
        self.runs = Runs(root, self.host, clock)
        self.listeners: list[Callable[[Snapshot], None]] = []
        self._sampler = Sampler(sources, interval, self._publish, self._on_event, clock)
        self._folder = log_folder or layout.gpu_folder(root, self.host)
        self._keeps_log, self._keeps_house = keep_log, keep_log and log_folder is None
        self._node_log = NodeLog(self._folder)
        self._clock, self._began = clock, clock.now()
        self._expected, self._price = expected_gpus, node_price
        self._caps = {"runs_cap": runs_cap, "node_cap": node_cap}
        self._journal_bytes = 0
        self._most_gpus = self._kept_gpus = 0
        self._gpus_seen: dict[Labels, None] = {}
        self._xids = Xids()
        self._stop = threading.Event()
        self._lock_fd = -1

    @property
    def snapshot(self) -> Snapshot:
        """What was known at the last tick; nothing when that is too long ago to be called now."""
        return EMPTY if self._sampler.is_stuck() else self._snapshot

    def start(self) -> None:
        if self._keeps_log:
            self._take_folder()
        with suppress(OSError):
            layout.make_shared(self.root / "runs")
        self.runs.start()
        self._sampler.start()
        if self._keeps_house:
            threading.Thread(target=self._keep_house, name="trainvitals-house", daemon=True).start()

    @property
    def is_over(self) -> bool:
        return self._stop.is_set()

    def stop(self) -> None:
        self._stop.set()
        self._sampler.stop()
        self.runs.stop()
        self._node_log.close()
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1

    def keep(self, event: Mapping[str, Any]) -> None:
        """A line for the node's event file."""
        if self._keeps_log:
            self._node_log.keep(event)

    def health(self) -> list[str]:
        """What is wrong with the monitoring of this node; nothing when all is well."""
        problems = []
        if self._sampler.is_stuck():
            problems.append("the sampler is stuck: no tick has ended for a while")
        if self.runs.is_stuck():
            problems.append(f"the runs cannot be followed: {self.root} does not answer")
        node = next((reading.values for reading in self.snapshot.of("host") if "gpu_count" in reading.values), {})
        count, expected = node.get("gpu_count", 0.0), node.get("gpu_expected_count", 0.0)
        if count < expected:  # type: ignore[operator]
            problems.append(f"{count:.0f} of {expected:.0f} GPUs answer{self._missing_words()}")
        return problems

    def _missing_words(self) -> str:
        """Which ones, as far as they were ever seen."""
        present = {reading.labels for reading in self._snapshot.of("gpu")}
        missing = [f"GPU {labels[0][1]} ({labels[1][1]})" for labels in self._gpus_seen if labels not in present]
        return f": {', '.join(missing)} is missing" if missing else ""

    def _take_folder(self) -> None:
        """Every file has one writer: a second agent on this journal and host is turned away."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock_fd = os.open(
                self._folder / ".agent", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644
            )
        except OSError as error:
            log.warning("%s cannot be written (%s): readings are shown but not kept", self._folder, error.strerror)
            return
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._lock_fd)
            self._lock_fd = -1
            raise JournalError(f"an agent runs already on {self.root}: end it, or choose another journal with "
                               "--dir") from error  # fmt: skip

    def _publish(self, sample: Sample) -> None:
        if self._stop.is_set():
            return
        self.sources = sample.sources
        gpus = [Reading(r.scope, r.labels, gpu_values(r), r.timestamp) for r in sample.readings if r.scope == "gpu"]
        self.history.add(gpus)
        if self._keeps_log:
            self._node_log.write(sample.fresh, sample.readings)
        self.runs.catch_up(CATCH_UP_SECONDS)
        self._gpus_seen |= {gpu.labels: None for gpu in gpus}
        self.runs.gpu_by_uuid = {labels[1][1]: labels[0][1] for labels in self._gpus_seen}
        readings = [
            *sample.readings,
            *self._xids.readings(sample.timestamp),
            self._node(len(gpus), sample),
            *self._run_readings(),
            *self._own(sample),
        ]
        self._snapshot = Snapshot(sample.timestamp, tuple(readings), self.runs.past.readings)
        for listener in list(self.listeners):
            listener(self._snapshot)

    def _run_readings(self) -> list[Reading]:
        """What was known before a disk hung is not shown as now."""
        return [] if self.runs.is_stuck() else self.runs.readings()

    def _node(self, gpus: int, sample: Sample) -> Reading:
        told = sum(state.gpu_count for state in sample.sources.values())
        self._most_gpus = max(self._most_gpus, gpus, told)
        expected = self._expected if self._expected is not None else max(self._most_gpus, self._kept_gpus)
        values = {"gpu_count": float(gpus), "gpu_expected_count": float(expected)}
        if self._price is not None:
            values["node_price_dollars_per_hour"] = self._price
        return Reading("host", (), values, sample.timestamp)

    def _own(self, sample: Sample) -> list[Reading]:
        now = sample.timestamp
        counts = [appender.counts for appender in self._node_log.appenders()]
        values = {
            "samples_total": float(sample.samples_total),
            "ticks_late_total": float(sample.late_total),
            "journal_records_total": float(sum(count.written for count in counts)),
            "journal_records_dropped_total": float(sum(count.dropped for count in counts)),
            "journal_bytes": float(self._journal_bytes),
            "journal_garbage_lines_total": float(self.runs.tail.garbage_lines),
            "journal_read_errors_total": float(self.runs.tail.errors),
            "start_timestamp_seconds": self._began,
        }
        build = (("version", trainvitals.__version__), ("python_version", platform.python_version()))
        return [Reading("build", build, {"build_info": 1.0}, now), Reading("agent", (), values, now),
                *(_source_reading(name, state, now) for name, state in sample.sources.items())]  # fmt: skip

    def _on_event(self, event: Event) -> None:
        self._xids.add(event)
        where, what = (" ".join(f"{key} {value}" for key, value in pairs)
                       for pairs in (event.labels, event.details.items()))  # fmt: skip
        log.warning("%s: %s", where, what)
        if self._keeps_log:
            self._node_log.write_event(event)

    def _keep_most_gpus(self) -> None:
        """Over a reboot too: a GPU that fell off the bus is not to be forgotten by what is to bring it back."""
        if self._most_gpus > self._kept_gpus:
            small_files.replace(self._folder / MOST_GPUS, encode({"most": self._most_gpus}))
            self._kept_gpus = self._most_gpus

    def _keep_house(self) -> None:
        most = (read_json(self._folder / MOST_GPUS) or {}).get("most")
        self._kept_gpus = most if isinstance(most, int) and 0 < most <= MAX_GPUS else 0
        try:
            self._recall()
        except Exception:
            log.exception("the history could not be filled from the journal; it starts empty")
        while not self._stop.is_set():
            with suppress(OSError):
                self._journal_bytes = retention.sweep(self.root, self.host, self._clock.now(), **self._caps)
                self._keep_most_gpus()
            self._stop.wait(HOUSEKEEPING_SECONDS)

    def _recall(self) -> None:
        """Fills the history with what earlier agents wrote, giving way to the tick now and then."""
        since = self._clock.now() - HISTORY_SECONDS
        for number, line in enumerate(carried(read_lines(self._folder, since))):
            when = seconds(line.get("timestamp"))
            if when is not None and since <= when < self._began:
                values = {name: line.get(name) for name in HISTORY_FIELDS}
                self.history.put(str(line.get("gpu_index")), when, values, replayed=True)
            if number % 500 == 499:
                if self._stop.is_set():
                    return
                time.sleep(0.001)


def _source_reading(name: str, state: SourceState, now: float) -> Reading:
    values = {"errors_total": float(state.errors)}
    if state.up is not None:
        values |= {"up": float(state.up), "read_seconds": state.read_seconds}
    return Reading("source", (("source", name),), values, now)
