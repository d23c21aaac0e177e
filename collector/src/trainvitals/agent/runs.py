"""Follows the runs of this node: finds them, reads their files, and tells the living from the dead."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from trainvitals.agent import run_folder
from trainvitals.agent.followed import Followed
from trainvitals.agent.past import Past
from trainvitals.agent.run_state import RunState, as_label
from trainvitals.agent.verdict import verdict
from trainvitals.clock import SYSTEM, Clock
from trainvitals.journal import layout, runs
from trainvitals.journal.append import Appender
from trainvitals.journal.near import near_ranks
from trainvitals.journal.record import Record, seconds
from trainvitals.journal.tail import Tail
from trainvitals.journal.watch import Watch, open_watch
from trainvitals.model import Reading
from trainvitals.sources.host import process_trees

SCAN_SECONDS, SCAN_UNWATCHED_SECONDS = 5.0, 1.0
LOOK_SECONDS = 0.5
PROCESS_TREE_SECONDS = 10.0
LISTENED_WAKE_SECONDS = 0.02
STOP_SECONDS = 0.5
STUCK_SECONDS = 30.0

log = logging.getLogger("trainvitals.runs")


class Runs:
    def __init__(self, root: Path, host: str, clock: Clock = SYSTEM, *, polling: bool = False,
                 reports: bool = True) -> None:  # fmt: skip
        self._folder, self._host, self._clock, self._reports = root / "runs", host, clock, reports
        self.tail = Tail()
        self.read_errors = 0
        self.shelf = run_folder.Shelf(self._folder)
        self._watch: Watch | None = None if polling else open_watch()
        self._followed: dict[str, Followed] = {}
        self._over: dict[str, int] = {}
        # Followed since the last reading: what was written before nobody was told of.
        self.past, self._unread = Past(), set[Path]()
        self._stop, self._wanted, self._caught_up = threading.Event(), threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self.last_update = clock.monotonic()
        self._next_scan = self._next_look = self._next_trees = 0.0
        self._contents = run_folder.Contents()
        self._lock = threading.Lock()
        self.listeners: list[Callable[[str, int, list[Record], bool], None]] = []
        self.updated: Callable[[], None] = lambda: None
        self.gpu_by_uuid: dict[str, str] = {}

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="trainvitals-runs", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)
        if self._watch and not (self._thread and self._thread.is_alive()):
            self._watch.close()

    def is_stuck(self) -> bool:
        """The journal's disk does not answer, or is far behind."""
        return self._clock.monotonic() - self.last_update > STUCK_SECONDS

    def catch_up(self, timeout: float) -> None:
        """Has what is new read first; a disk that hangs is not waited for."""
        self._caught_up.clear()
        self._wanted.set()
        self._caught_up.wait(timeout)

    def readings(self) -> list[Reading]:
        now = self._clock.now()
        found: list[Reading] = []
        with self._lock:
            for run in filter(self._recent, list(self._followed.values())):
                self._guarded(run, lambda state=run.state: found.extend(list(state.readings(now))))
        return found

    def states(self) -> list[RunState]:
        return [run.state for run in list(self._followed.values())]

    def report(self, name: str, line: Record) -> bool:
        """Into this host's file of the run; False where there is no such run."""
        return (run := self._followed.get(name)) is not None and run.report(line)

    def update(self) -> None:
        """Reads what is new. Cheap when nothing is."""
        now = self._clock.monotonic()
        changed, lost = self._watch.changed() if self._watch else (set(), True)
        if now >= self._next_scan or any(path.parent == self._folder for path in changed):
            self._next_scan = now + (SCAN_SECONDS if self._is_watched() else SCAN_UNWATCHED_SECONDS)
            self._scan()
            lost = True
        if now >= self._next_look:
            self._next_look = now + LOOK_SECONDS
            for run in list(self._followed.values()):
                self._guarded(run, self._look, run)
        self._read(None if lost else changed)
        if now >= self._next_trees:
            self._next_trees = now + PROCESS_TREE_SECONDS
            self._measure_processes()

    def _is_watched(self) -> bool:
        """Whether a new run's folder is told of at once; not before the folder for runs is there."""
        return self._watch is not None and self._watch.add(self._folder)

    def _guarded(self, run: Followed, action: Callable[..., None], *arguments: object) -> None:
        """A run whose files hold what nobody foresaw is no reason to lose sight of the others."""
        try:
            action(*arguments)
        except Exception:
            if not run.failed:
                log.exception("run %s cannot be followed as it is", run.state.run, extra={"run": run.state.run})
            run.failed = True

    def _run(self) -> None:
        while not self._stop.is_set():
            wanted = self._wanted.is_set()
            self._wanted.clear()
            try:
                self.update()
                self.last_update = self._clock.monotonic()
                self.updated()
            except Exception:
                log.exception("following the runs failed; it goes on")
            if wanted:
                self._caught_up.set()
            self._rest()

    def _rest(self) -> None:
        """With a listener until something is written; without one until somebody wants to know."""
        left = max(0.0, self._next_look - self._clock.monotonic())
        if not self.listeners:
            self._wanted.wait(left)
            return
        time.sleep(LISTENED_WAKE_SECONDS)
        if self._watch and not self._stop.is_set():
            self._watch.wait(left)

    def _scan(self) -> None:
        names = self.shelf.runs()
        if names is None:
            return
        for run in names:
            self._scan_run(run)
        there = {run.name for run in names}
        for gone in self._followed.keys() - there:
            self._forget(gone)
        self.past.settle(there)

    def _scan_run(self, folder: Path) -> None:
        try:
            changed = folder.stat().st_mtime_ns
        except OSError:
            return
        if self._over.get(folder.name) == changed:
            return
        followed = self._followed.get(folder.name)
        if followed is None:
            reports = Appender(folder / "agent", f"{self._host}.jsonl") if self._reports else None
            followed = self._followed[folder.name] = Followed(folder, RunState(folder.name), reports)
            self.past.drop(folder.name)
            self._guarded(followed, self._look, followed)
        self.read_errors += followed.is_newly_unreadable()
        if not self._recent(followed):
            self._over[folder.name] = changed
            self.past.add(folder, followed.state)
            self._forget(folder.name)
        elif self._watch:
            self._watch.add(folder)

    def _look(self, run: Followed) -> None:
        """Which ranks there are, which of their files are ours to read, and how the run stands."""
        content = self._contents.get
        processes = {path: content(path, runs.read_process) for path in runs.process_files(run.folder)}
        # Where storage is not shared, a node without rank 0 has no run.json; how large the run is each rank says.
        world = {"world_size": next((told.get("world_size") for told in processes.values() if told), None)}
        run.state.info = content(run.folder / layout.RUN_FILE, runs.read_json) or run.state.info or world
        near = near_ranks(run.folder, processes, self._host)
        ours = run_folder.own_ranks(processes, near)
        alive = {rank for rank, path in ours.items() if runs.is_alive(path)}
        here = {rank: as_label((processes[path] or {}).get("started")) for rank, path in near.items()}
        run.state.alive = {rank: seconds((processes[ours[rank]] or {}).get("started")) or 0.0 for rank in sorted(alive)}
        self._judge(run, here, alive, known=bool(processes))
        if self._recent(run):
            self._follow_files(run, None if not processes else set(ours))
            run.state.gpus, run.state.hosts = run_folder.places(ours, processes, self.gpu_by_uuid)

    def _judge(self, run: Followed, here: dict[int, str], alive: set[int], known: bool) -> None:
        """`here` are the ranks of this machine and when each started; `alive` may hold others, whose locks show."""
        state = run.state
        told = str(state.info.get("status", ""))
        if not known:
            state.ended = run_folder.last_change(run.folder)
            return
        dead = {(rank, started) for rank, started in here.items() if rank not in alive}
        self._report_killed(run, dead, told in layout.ENDINGS)
        if alive:
            state.status, state.ended, state.gone, run.lived = "running", None, run.gone(dead), True
        elif here:
            ends = [end for rank, started in here.items() if (end := run.ends.of(rank, started))]
            status, error = verdict(told, ends, bool(set(here.items()) & run.reported.keys()))
            state.info = {**state.info, "error": error} if error else state.info
            # Before the status is shown: one of long ago is never shown as new.
            run.set_end(status, self._clock.now())
            state.status = status
        elif told in layout.ENDINGS:
            self._believe(run, told)
        elif not state.status:
            state.ended = None

    def _believe(self, run: Followed, told: str) -> None:
        """An end that no agent but its own tells of as news."""
        run.set_end(told, self._clock.now())
        if not self._recent(run):
            run.state.status = told

    def _report_killed(self, run: Followed, dead: set[tuple[int, str]], ended: bool) -> None:
        """One line in this host's file of the run for each rank that went without an end, each time it did."""
        if dead - run.settled:
            run.reported |= run_folder.reported_killed(run.folder, self._host)
        for rank, started in sorted(dead - run.settled - run.reported.keys()):
            self._read_events(run, rank)
            run.settled.add((rank, started))
            run.ends.settle(rank, run_folder.last_change(run.folder))
            if ended or run.ends.of(rank, started):
                continue
            log.warning("run %s: rank %d is gone without an end", run.state.run, rank, extra={"run": run.state.run})
            run.report({"event": "status", "status": "killed", "rank": rank, "started": started})
            run.reported[rank, started] = self._clock.now()

    def _recent(self, run: Followed) -> bool:
        return run.is_recent(self._clock.now())

    def _follow_files(self, run: Followed, ranks: set[int] | None) -> None:
        with suppress(OSError):
            for path in run.folder.iterdir():
                rank = layout.training_rank(path.name)
                events = layout.EVENTS_FILE.match(path.name)
                number = int(events[1]) if events else rank
                if number is not None and path not in run.files and (ranks is None or number in ranks):
                    run.files[path] = number
                    self.tail.follow(path)
                    self._unread.add(path)

    def _read(self, changed: set[Path] | None) -> None:
        unread, self._unread = self._unread, set()
        for run in self._followed.values():
            for path in sorted(run.files.keys() if changed is None else (changed | unread) & run.files.keys()):
                if changed is not None or self.tail.has_news(path):
                    self._guarded(run, self._read_file, run, path)

    def _read_file(self, run: Followed, path: Path) -> None:
        rank = run.files[path]
        while records := self.tail.read(path):
            self.last_update = self._clock.monotonic()
            if path.name.startswith("events."):
                self._take_events(run, rank, records)
            else:
                with self._lock:
                    self.tail.garbage_lines += run.state.rank(rank).take(records)
            for listener in self.listeners:
                listener(run.state.run, rank, records, path.name.startswith("events."))

    def _read_events(self, run: Followed, rank: int) -> None:
        path = run.folder / f"events.rank{rank}.jsonl"
        if path.exists():
            run.files.setdefault(path, rank)
            self.tail.follow(path)
            self._read_file(run, path)

    def _take_events(self, run: Followed, rank: int, records: list[Record]) -> None:
        for record in records:
            if record.get("event") == "checkpoint":
                run.state.checkpoint = seconds(record.get("timestamp")) or run.state.checkpoint
            run.ends.take(rank, record)
            run.state.phases.take(rank, record)

    def _measure_processes(self) -> None:
        for run in self._followed.values():
            files = runs.process_files(run.folder) if run.state.status == "running" else []
            pids = [pid for path in files if (pid := runs.holder(path))]
            run.state.processes = process_trees(pids) if pids else {}

    def _forget(self, name: str) -> None:
        run = self._followed.pop(name)
        run.close()
        if self._watch:
            self._watch.remove(run.folder)
        for path in run.files:
            self.tail.forget(path)
        self._contents.forget(run.folder)
