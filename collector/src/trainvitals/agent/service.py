"""The agent as a whole: samples in; journal, history and the snapshot that everyone reads out."""

import fcntl
import logging
import os
import platform
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import trainvitals
from trainvitals.agent import twins
from trainvitals.agent.detecting import Detecting, Tell
from trainvitals.agent.history import HOST, History
from trainvitals.agent.host_rates import HostRates
from trainvitals.agent.indexing import Indexing
from trainvitals.agent.node_log import NodeLog, carried, gpu_values, read_lines
from trainvitals.agent.progress import progress
from trainvitals.agent.quiet import FILE as QUIET_FILE
from trainvitals.agent.quiet import Quiet
from trainvitals.agent.runs import Runs
from trainvitals.agent.sampler import Sample, Sampler, SourceState, source_reading
from trainvitals.agent.xids import Xids
from trainvitals.alerting import received
from trainvitals.alerting.received import Received
from trainvitals.clock import SYSTEM, Clock
from trainvitals.detect.engine import Engine
from trainvitals.detect.finding import Change
from trainvitals.detect.quieting import identity_of
from trainvitals.errors import JournalError
from trainvitals.journal import layout, retention, small_files
from trainvitals.journal.record import encode, seconds
from trainvitals.journal.runs import read_json
from trainvitals.model import EMPTY, Event, Labels, Reading, Snapshot, Value
from trainvitals.notify.silencer import Silencer
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
                 engine: Engine | None = None, tell: Tell = lambda _: None, ways: Callable[[], int] = lambda: 0,
                 clock: Clock = SYSTEM) -> None:  # fmt: skip
        """`log_folder` takes the node's lines in place of the journal; what lies there is never tidied up. Without
        `keep_log` nothing is written anywhere: whoever only looks may look beside another agent."""
        self.root, self.host, self.interval = root, host or layout.host_name(), interval
        self._snapshot: Snapshot = EMPTY
        self.sources: dict[str, SourceState] = {}
        self.history, self._rates = History(), HostRates()
        self.runs = Runs(root, self.host, clock, reports=keep_log)
        self.indexing = Indexing(root, self.host, self.runs.states)
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
        self._ways = ways
        # What the agent of before had told and not taken back.
        self.before: list[Change] = []
        self.detecting = (
            Detecting(engine, self.runs, self._folder, self.keep, tell, clock, keeps=keep_log) if engine else None
        )
        self.quiet = Quiet(self._folder / QUIET_FILE if keep_log else None, self.host, self._open_names, clock)
        # Alerts that come by Alertmanager, and who keeps those quiet there.
        self.received: Received | None = None
        self.silencers: Sequence[Silencer] = ()
        # What is set wrongly of the ways to people.
        self.refused: Sequence[str] = ()

    @property
    def snapshot(self) -> Snapshot:
        """What was known at the last tick; nothing when that is too long ago to be called now."""
        return EMPTY if self._sampler.is_stuck() else self._snapshot

    def start(self) -> None:
        if self._keeps_log:
            self._take_folder()
            with suppress(OSError):
                layout.make_shared(self.root / "runs")
        self.quiet.load()
        self.before = self.detecting.start() if self.detecting else []
        self.runs.start()
        self._sampler.start()
        if self._keeps_house:
            self.indexing.start(is_writer=self._lock_fd >= 0)
            threading.Thread(target=self._keep_house, name="trainvitals-house", daemon=True).start()

    def tell_address(self, address: str) -> None:
        """Of its page, to whoever finds that an agent is here already: in the file that the lock is on."""
        if self._lock_fd >= 0:
            with suppress(OSError):
                os.ftruncate(self._lock_fd, 0)
                os.pwrite(self._lock_fd, address.encode(), 0)

    @property
    def is_over(self) -> bool:
        return self._stop.is_set()

    def stop(self) -> None:
        self._stop.set()
        self._sampler.stop()
        self.indexing.stop()
        self.runs.stop()
        self._node_log.close()
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1

    def open(self) -> list[Change]:
        """The findings that are open, each with what follows from it."""
        return self.detecting.open() if self.detecting else []

    def _open_names(self) -> set[str]:
        there = {received.identity(alert) for alert in twins.others(self, self._clock.now())}
        return there | {identity_of(change) for change in self.open()}

    def keep(self, event: Mapping[str, Any]) -> None:
        """A line for the node's event file."""
        if self._keeps_log:
            self._node_log.keep(event)

    def troubles(self) -> list[str]:
        """What keeps the agent from seeing; nothing while it watches, be the node well or not."""
        troubles = []
        if self._sampler.is_stuck():
            troubles.append("the sampler is stuck: no tick has ended for a while")
        if self.runs.is_stuck():
            troubles.append(f"the runs cannot be followed: {self.root} does not answer")
        return troubles

    def health(self) -> list[str]:
        """What is wrong with the monitoring of this node; nothing when all is well."""
        problems = self.troubles()
        node = next((reading.values for reading in self.snapshot.of("host") if "gpu_count" in reading.values), {})
        count, expected = node.get("gpu_count", 0.0), node.get("gpu_expected_count", 0.0)
        if count < expected:  # type: ignore[operator]
            problems.append(f"{count:.0f} of {expected:.0f} GPUs answer{self._missing_words()}")
        return problems

    def _missing(self, gpus: Iterable[Reading]) -> list[Labels]:
        """Which ones, as far as they were ever seen."""
        present = {reading.labels for reading in gpus}
        return [labels for labels in self._gpus_seen if labels not in present]

    def _missing_words(self) -> str:
        missing = [f"GPU {gpu} ({uuid})" for (_, gpu), (_, uuid) in self._missing(self._snapshot.of("gpu"))]
        return f": {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing" if missing else ""

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
        self.tell_address("")

    def _publish(self, sample: Sample) -> None:
        if self._stop.is_set():
            return
        self.sources = sample.sources
        gpus = [Reading(r.scope, r.labels, gpu_values(r), r.timestamp) for r in sample.readings if r.scope == "gpu"]
        rates = self._rates.update(sample.readings)
        known, node = _with(sample.readings, rates), self._node(len(gpus), sample)
        self.history.add([*gpus, *(one for one in known if one.scope == HOST)])
        own = self._own(sample)
        if self._keeps_log:
            self._node_log.write(sample.fresh, [*_with(known, node.values), *own])
        self.runs.catch_up(CATCH_UP_SECONDS)
        self._gpus_seen |= {gpu.labels: None for gpu in gpus}
        self.runs.gpu_by_uuid = {labels[1][1]: labels[0][1] for labels in self._gpus_seen}
        readings = [
            *sample.readings,
            *self._xids.readings(sample.timestamp),
            node,
            *self._run_readings(),
            *own,
        ]
        if self.detecting:
            self.detecting.sample(readings, sample.timestamp, self._missing(gpus))
            readings += self.detecting.readings(sample.timestamp)
        self._snapshot = Snapshot(sample.timestamp, tuple(readings), self.runs.past.readings, self._progress(readings))
        for listener in list(self.listeners):
            listener(self._snapshot)

    def _run_readings(self) -> list[Reading]:
        """What was known before a disk hung is not shown as now."""
        return [] if self.runs.is_stuck() else self.runs.readings()

    def _progress(self, readings: Sequence[Reading]) -> dict[str, dict[str, Any]]:
        shown, now = {one.label("run") for one in readings if one.scope == "run"}, self._clock.now()
        return {state.run: progress(state, now, self._price) for state in self.runs.states() if state.run in shown}

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
            "journal_read_errors_total": float(self.runs.tail.errors + self.runs.read_errors + self.runs.shelf.errors),
            "start_timestamp_seconds": self._began,
            "notify_channels": float(self._ways()),
        }
        build = (("version", trainvitals.__version__), ("python_version", platform.python_version()))
        return [Reading("build", build, {"build_info": 1.0}, now), Reading("agent", (), values, now),
                *(source_reading(name, state, now) for name, state in sample.sources.items())]  # fmt: skip

    def _on_event(self, event: Event) -> None:
        self._xids.add(event)
        where, what = (" ".join(f"{key} {value}" for key, value in pairs)
                       for pairs in (event.labels, event.details.items()))  # fmt: skip
        log.warning("%s: %s", where, what)
        if self._keeps_log:
            self._node_log.write_event(event)
        if self.detecting:
            self.detecting.event(event)

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
                self._keep_most_gpus()
            with suppress(OSError):
                self._journal_bytes = retention.sweep(self.root, self.host, self._clock.now(), **self._caps)
            self._stop.wait(HOUSEKEEPING_SECONDS)

    def _recall(self) -> None:
        """Fills the history with what earlier agents wrote, giving way to the tick now and then."""
        since = self._clock.now() - HISTORY_SECONDS
        lines = ((kind, line) for kind in ("gpu", HOST) for line in carried(read_lines(self._folder, since, kind)))
        for number, (kind, line) in enumerate(lines):
            when = seconds(line.get("timestamp"))
            if when is not None and since <= when < self._began:
                self.history.put(HOST if kind == HOST else str(line.get("gpu_index")), when, line, replayed=True)
            if number % 500 == 499:
                if self._stop.is_set():
                    return
                time.sleep(0.001)


def _with(readings: Iterable[Reading], values: Mapping[str, Value]) -> list[Reading]:
    """The host's with more values."""
    return [one._replace(values={**one.values, **values}) if one.scope == HOST else one for one in readings]
