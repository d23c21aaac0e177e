"""Everything that is judged, in one place: hand in what comes, in the order of its time, and take the news.

engine = Engine()
engine.training("gemma", 0, [{"timestamp": …, "step": 812, "loss": nan}])
engine.tick(now)  ->  [Change("open", Finding("TrainingNonFinite", "page", …), …)]

Pure but for the log: no file is read, nothing is sent, and the only clock is that of what comes in.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from trainvitals.detect.advice import ADVICE
from trainvitals.detect.book import Book
from trainvitals.detect.finding import Change, Finding, Place
from trainvitals.detect.gpu_errors import xid
from trainvitals.detect.limit import Values
from trainvitals.detect.limits import Limits, limits
from trainvitals.detect.node_watch import GpuWatch, NodeWatch
from trainvitals.detect.run_watch import ENDINGS, RunWatch
from trainvitals.detect.stalled import Load
from trainvitals.errors import SettingError, plain
from trainvitals.journal.record import Record, as_number, seconds

log = logging.getLogger("trainvitals.detect")
# What a run that is over, or was started anew, cannot be any more.
_LIVING = ("TrainingStalled", "TrainingHangSuspected", "TrainingCheckpointOverdue", "TrainingDataStarved",
           "TrainingStraggler", "TrainingThroughputRegression", "HostMemoryLeak")  # fmt: skip
PAGE_STAYS_SECONDS = 180.0
NOWHERE: Mapping[int, str] = {}
NO_GPUS: Mapping[int, set[str]] = {}


class OwnRules(Protocol):
    """Rules of the user's own."""

    def training(self, run: str, rank: int, when: float, record: Record) -> Iterable[Finding]: ...
    def gpu(self, when: float, labels: Mapping[str, str], values: Values) -> Iterable[Finding]: ...
    def host(self, when: float, values: Values, host: str) -> Iterable[Finding]: ...
    def forget(self, run: str) -> None: ...
    def kinds_now(self) -> Iterable[str]: ...


class Engine:
    """An agent judges its own machine, which needs no name; of several each is handed in as a `host`."""

    def __init__(self, given: Limits | None = None, rules: OwnRules | None = None) -> None:
        self.limits, self.rules = given or Limits(), rules
        self.book = Book()
        self._runs: dict[str, RunWatch] = {}
        # By run and machine: without a run by the machine's own numbers, else by those that a run brings.
        self._nodes: dict[tuple[str, str], NodeWatch] = {}
        self._gpus: dict[str, GpuWatch] = {}
        self._demanding: set[str] = set()
        self._gpus_of: dict[str, dict[int, set[str]]] = {}
        # Runs of which the memory of their processes is known.
        self._told_memory: set[str] = set()
        self._limits_of: dict[str, Limits] = {}
        self.now = 0.0
        self.failures = 0

    def begin(self, run: str, when: float) -> None:
        """A process of the run was started."""
        self._run(run).begin(when)
        for uuid in self.book.gpus.get(run, set()) & self._gpus.keys():
            self._gpus[uuid].memory.begin()
        self.book.end((*_LIVING, *ENDINGS.values()), when, run)

    def resume(self, run: str, began: float) -> None:
        """A process lives since then; news only where nothing of the run is known from after that."""
        watch = self._run(run)
        watch.is_alive = True
        last = watch.progress.last
        if last is None or began > last or watch.is_over:
            self.begin(run, began)

    def info(self, run: str, info: Mapping[str, Any], gpus: Mapping[int, Iterable[str]],
             hosts: Mapping[int, str] = NOWHERE) -> None:  # fmt: skip
        """What is known of a run: what run.json says, the UUIDs of its ranks' GPUs, and the machine each rank is on."""
        if run not in self._limits_of:
            self._take_limits(run, info)
        self._run(run).plan(as_number(info.get("planned_steps")))
        self._run(run).settle_on(hosts)
        self._gpus_of[run] = {rank: set(uuids) - {""} for rank, uuids in gpus.items()}
        self.book.gpus[run] = set().union(*self._gpus_of[run].values())
        self.book.hosts[run] = set(hosts.values())

    def _take_limits(self, run: str, info: Mapping[str, Any]) -> None:
        """Thresholds that the run brings."""
        config = info.get("config")
        given = config.get("alert_thresholds") if isinstance(config, Mapping) else None
        if not isinstance(given, Mapping):
            return
        try:
            own = limits(given, f"run {run}: alert_thresholds", self.limits)
        except SettingError as error:
            log.warning("%s", plain(str(error)))
            own = self.limits
        self._limits_of[run] = own
        self._runs.pop(run, None)
        if any(str(name).startswith(("gpu_", "host_")) for name in given):
            self._demanding.add(run)

    def training(self, run: str, rank: int, records: Iterable[Record], since: float = 0.0) -> None:
        """Of lines of before `since` no more is known than that there were steps."""
        watch, used = self._run(run), self._used(run, rank)
        for record in records:
            self._guarded(self._line, watch, rank, record, used, since)

    def _line(self, watch: RunWatch, rank: int, record: Record, used: float | None, since: float) -> None:
        stamp = seconds(record.get("timestamp"))
        if stamp and stamp < since:
            watch.pass_by(rank, record, stamp)
            return
        when = stamp or self.now
        if watch.is_revived(when):
            self.begin(watch.run, when)
        if watch.is_over:
            return
        self._note(when, watch.take(rank, record, when, used))
        if self.rules:
            self._note(when, self.rules.training(watch.run, rank, when, record))

    def run_event(self, run: str, rank: int, record: Record) -> None:
        watch = self._run(run)
        self._guarded(watch.event, rank, record)
        if record.get("event") == "alert":
            when = seconds(record.get("timestamp")) or self.now
            self._guarded(lambda: self._note(when, watch.alert(rank, record)))

    def ended(self, run: str, status: str, when: float, error: str = "", rank: int | None = None) -> None:
        watch = self._run(run)
        self.book.end((*_LIVING, *watch.own, *(self.rules.kinds_now() if self.rules else ())), when, run)
        if finding := watch.ended(status, when, error, rank):
            self._note(when, (finding,))

    def lost(self, run: str, rank: int, when: float) -> None:
        """A process of a run is gone without an end, and others live."""
        if finding := self._run(run).lost(rank, when):
            self._note(when, (finding,))

    def forget(self, run: str) -> None:
        self._runs.pop(run, None)
        self._gpus_of.pop(run, None)
        self.book.gpus.pop(run, None)
        self.book.hosts.pop(run, None)
        self._told_memory.discard(run)
        self._limits_of.pop(run, None)
        self._demanding.discard(run)
        self._nodes = {key: node for key, node in self._nodes.items() if key[0] != run}
        if self.rules:
            self.rules.forget(run)

    def gpu(self, when: float, gpu: str, uuid: str, values: Values, host: str = "") -> None:
        ranks = sum(uuid in uuids for of_rank in self._gpus_of.values() for uuids in of_rank.values())
        machine = self._node("", host)
        self._gpus[uuid] = watch = machine.gpu(gpu, uuid)
        price = machine.host.price / len(machine.gpus) if machine.host.price else None
        for run, node in self._watching(host):
            node.host.gone.pop(uuid, None)
            if not run or uuid in self.book.gpus.get(run, ()):
                self._guarded(self._heed, run, when, node.gpu(gpu, uuid).update(when, values, price, ranks), host)
        if self.rules:
            self._note(when, self.rules.gpu(when, watch.place.labels(), values), host)

    def host(self, when: float, values: Values, host: str = "") -> None:
        for run, node in self._watching(host):
            self._guarded(self._heed, run, when, node.host.update(when, values), host)
        self._guarded(lambda: self._note(when, self._growth(when, values, host), host))
        if self.rules:
            self._note(when, self.rules.host(when, values, host), host)

    def _growth(self, when: float, values: Values, host: str) -> Iterable[Finding]:
        """Of the machine as a whole, which says something of a run that is alone there and of whose processes nobody
        tells."""
        used, available = values.get("memory_used_bytes"), values.get("memory_available_bytes")
        alive = [watch for run, watch in self._runs.items() if not watch.is_over and self._is_on(run, host)]
        if used is None or available is None or len(alive) != 1 or alive[0].run in self._told_memory:
            return ()
        return alive[0].memory(when, used, available, host)

    def disk(self, when: float, values: Values, mountpoint: str, host: str = "") -> None:
        for run, node in self._watching(host):
            self._guarded(self._heed, run, when, node.host.disk(when, values, mountpoint), host)

    def source(self, when: float, name: str, is_up: bool, host: str = "") -> None:
        self._note(when, self._node("", host).host.source(when, name, is_up), host)

    def journal(self, when: float, dropped: float | None, unread: float | None = None, *, host: str = "") -> None:
        self._note(when, self._node("", host).host.journal(when, dropped, unread), host)

    def memory(self, run: str, when: float, resident: float, available: float) -> None:
        self._told_memory.add(run)
        self._guarded(lambda: self._note(when, self._run(run).memory(when, resident, available)))

    def xid(self, when: float, gpu: str, uuid: str, number: int, host: str = "") -> None:
        if finding := xid(number, self.limits):
            place = Place(gpu=gpu, uuid=uuid, part=finding.place.part)
            self._note(when, (finding._replace(place=place),), host)

    def missing(self, when: float, gpu: str, uuid: str, words: str, host: str = "") -> None:
        """A GPU that is known to be gone, by its number. Where the machine counts them, that says when it is told."""
        for _, node in self._watching(host):
            node.host.gone[uuid] = gpu
        own = self._node("", host).host
        self.book.missing[host] = own.gone
        if not own.counts:
            self._note(when, (Finding("GpuMissing", "page", words, place=Place(gpu=gpu, uuid=uuid)),), host)

    def tick(self, now: float) -> list[Change]:
        """Time has passed; what is news since the last tick."""
        self.now = max(self.now, now)
        for run, watch in self._runs.items():
            self._guarded(lambda run=run, watch=watch: self._note(now, watch.tick(now, self._loads(run))))
        self.book.settle(now)
        return self.news()

    def news(self) -> list[Change]:
        return self.book.news()

    def _loads(self, run: str) -> Sequence[Load]:
        """Of the run's GPUs, where it told which; else of all."""
        uuids = self.book.gpus.get(run) or self._gpus.keys()
        return [load for uuid in uuids if uuid in self._gpus and (load := self._gpus[uuid].load)]

    def _used(self, run: str, rank: int) -> float | None:
        uuids = self._gpus_of.get(run, NO_GPUS).get(rank)
        if not uuids:
            return None
        return max((used for uuid in uuids if (gpu := self._gpus.get(uuid)) and (used := gpu.used) is not None),
                   default=None)  # fmt: skip

    def _run(self, run: str) -> RunWatch:
        watch = self._runs.get(run)
        if watch is None:
            watch = self._runs[run] = RunWatch(run, self._limits_of.get(run, self.limits))
        return watch

    def _node(self, run: str, host: str) -> NodeWatch:
        if (run, host) not in self._nodes:
            self._nodes[run, host] = NodeWatch(self._limits_of.get(run, self.limits))
        return self._nodes[run, host]

    def _watching(self, host: str) -> Iterator[tuple[str, NodeWatch]]:
        """By the machine's own numbers, and by those of runs there: a run may ask for more than its machine does, and
        takes nothing from others."""
        yield "", self._node("", host)
        for run in self._demanding:
            if self._is_on(run, host):
                yield run, self._node(run, host)

    def _is_on(self, run: str, host: str) -> bool:
        return not host or host in (self.book.hosts.get(run) or {host})

    def _heed(self, run: str, when: float, findings: Iterable[Finding], host: str) -> None:
        """By a run's numbers as long as it goes on."""
        found = list(findings)
        if not run or not self._run(run).is_over:
            self._note(when, found, host)

    def _note(self, when: float, findings: Iterable[Finding], host: str = "") -> None:
        """A page stays for as long as the rule of its name does, or that would be told anew when this one ends. Words
        of others forge no line of a log."""
        for finding in findings:
            has_rule = finding.severity == "page" and finding.kind in ADVICE
            least = PAGE_STAYS_SECONDS if has_rule else 0.0
            place = finding.place._replace(host=host) if host else finding.place
            what = plain(finding.what)
            is_as_told = place is finding.place and finding.stays >= least and what is finding.what
            told = finding if is_as_told else finding._replace(stays=max(finding.stays, least), place=place, what=what)
            self.book.note(told, when)

    def _guarded(self, action: Callable[..., Any], *arguments: object) -> None:
        """A record that nobody foresaw is no reason to judge nothing else."""
        try:
            action(*arguments)
        except Exception:
            self.failures += 1
            if self.failures == 1:
                log.exception("a record could not be judged; the others are")
