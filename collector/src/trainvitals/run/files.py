"""A run's files from the trainer's side: opened by a thread, so that storage which hangs keeps nobody waiting.

What is written before they are open waits in memory. Where they cannot be opened (a full disk, a folder that
may not be written) it is tried again until the run ends.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from trainvitals.errors import JournalError, RunInUse, TrainVitalsError
from trainvitals.journal import slow
from trainvitals.journal.append import WarnOnce
from trainvitals.journal.claiming import own_lock
from trainvitals.journal.configuration import taken
from trainvitals.journal.record import encode, timestamp
from trainvitals.journal.run_files import RunFiles
from trainvitals.run.flag import Bell, Flag
from trainvitals.run.harmless import told

RETRY_SECONDS = 2.0
MAX_EARLY = 10_000
MAX_EARLY_BYTES = 8 * 2**20
# No call of a run may take 50 ms, whatever the storage does. A local disk is waited for by several of them: what is
# logged is then on it when the call returns.
CALL_SECONDS, PATIENCE_SECONDS = 0.03, 1.0
GONE_SECONDS = 0.01
END_SECONDS = 2.0


class Place(Protocol):
    """Where the files lie, and who is told of them."""

    warn: WarnOnce

    def root(self) -> Path: ...
    def open(self, root: Path) -> RunFiles: ...
    def opened(self, files: RunFiles) -> None: ...
    def settled(self, files: RunFiles) -> None: ...
    def refused(self) -> None: ...


class Files:
    def __init__(self, place: Place) -> None:
        self._place, self._warn = place, place.warn
        self._lock = threading.RLock()
        self._early: deque[tuple[str, bytes]] = deque()
        self._early_bytes = 0
        self._facts: dict[str, Any] = {}
        self._last_words: tuple[str, dict[str, Any]] | None = None
        self._answered, self._done, self._wake = Flag(), Flag(), Bell()
        self._is_slow = True
        self._root = Path("the journal")
        self._patient_until = time.monotonic() + PATIENCE_SECONDS
        self.files: RunFiles | None = None
        self.dropped = 0
        self.is_refused = False
        self._start()

    def append_line(self, line: bytes) -> bool:
        return self._append("metrics", line)

    def event(self, record: Mapping[str, Any]) -> bool:
        return self._append("events", encode({"timestamp": timestamp(), **record}))

    def describe(self, **facts: Any) -> None:
        with self._lock:
            self._facts |= {**facts, "config": self._facts.get("config", {}) | taken(facts.get("config") or {})}
            self._see_to_it()

    def end(self, status: str, details: Mapping[str, Any]) -> None:
        """On slow storage it is the thread that ends; `wait` gives it time."""
        with self._lock:
            self._last_words = (status, dict(details))
            self._see_to_it()

    def wait(self, deadline: float) -> None:
        """At the interpreter's end: what is on its way gets there, or is given up."""
        if self._done.wait(max(0.0, deadline - time.monotonic())) or self.files is not None:
            return
        self._give_up()
        self._warn("dropping", f"{self.dropped} records are lost: {self._root} did not answer until the process ended; "
                   f"its storage hangs, or another process holds {own_lock(self._root)}: end that, or choose another "
                   "folder with TRAINVITALS_DIR")  # fmt: skip

    def _append(self, kind: str, line: bytes) -> bool:
        if self.files is None:
            self._be_patient()
            with self._lock:
                if self.files is None:
                    return self._hold(kind, line)
        return (self.files.metrics if kind == "metrics" else self.files.events).append_line(line)

    def _be_patient(self) -> None:
        left = self._patient_until - time.monotonic()
        if not self._is_slow and left > 0:
            self._answered.wait(min(CALL_SECONDS, left))

    def _hold(self, kind: str, line: bytes) -> bool:
        if self._done.is_set() or len(self._early) >= MAX_EARLY or self._early_bytes + len(line) > MAX_EARLY_BYTES:
            self.dropped += 1
            return False
        self._early_bytes += len(line)
        self._early.append((kind, line))
        return True

    def _see_to_it(self) -> None:
        if self.files is not None and not self._is_slow and not self.files.is_queued:
            self._say()
            return
        self._wake.ring()
        if self.files is not None and not self._is_slow:  # found to be slow since it was opened
            self._is_slow = True
            self._in_thread(self._serve, self._say)

    def _start(self) -> None:
        thread = self._in_thread(self._run, self._open_here)
        self._answered.wait(CALL_SECONDS)
        if self.files is not None and not self._is_slow and thread.is_alive():
            # From 3.12 on Python warns of a fork beside another thread.
            thread.join(GONE_SECONDS)

    def _in_thread(self, act: Callable[[], None], without: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=act, name="trainvitals-run", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no more threads
            without()
        return thread

    def _open_here(self) -> None:
        if not self._try_open(may_wait=False):
            self._give_up()
        self._answered.set()

    def _run(self) -> None:
        """On a local disk over as soon as the files are open."""
        try:
            self._open()
            self._answered.set()
            if self.files is not None:
                self._place.settled(self.files)
            self._serve()
        finally:
            if self.files is None:
                self._give_up()
            self._answered.set()

    def _give_up(self) -> None:
        """What waited is lost."""
        with self._lock:
            self.dropped += len(self._early)
            self._early.clear()
            self._done.set()

    def _serve(self) -> None:
        while self._is_slow and not self._done.is_set():
            self._wake.wait()
            self._say()

    def _open(self) -> None:
        """Until it went well; once more when the run ends."""
        while not self._try_open():
            if self.is_refused or self._last_words:
                self._is_slow = False
                return
            self._answered.set()
            self._wake.wait(RETRY_SECONDS)

    def _try_open(self, may_wait: bool = True) -> bool:
        try:
            root = self._root = self._place.root()
            self._is_slow = slow.is_slow(root)
            if self._is_slow and not may_wait:
                raise JournalError("its storage may be slow, and there is no thread to wait for it")
            files = self._place.open(root)
        except RunInUse as error:
            self._warn("dropping", f"nothing is recorded: {error}")
            self.is_refused = True
            self._place.refused()
        except Exception as error:
            words = str(error) if isinstance(error, (OSError, TrainVitalsError)) else told(error)
            self._warn("dropping", f"nothing is recorded until this is mended: {words}")
        else:
            self._hand_over(files)
            return True
        return False

    def _hand_over(self, files: RunFiles) -> None:
        """What waits goes first. It is written without the lock, for a write may warn, and who listens may log."""
        while self.files is None:
            with self._lock:
                early, self._early = self._early, deque()
                if not early:
                    self.files = files
                    self._place.opened(files)
            for kind, line in early:
                (files.metrics if kind == "metrics" else files.events).append_line(line)
        self._say()

    def _say(self) -> None:
        """What is known of the run only now, and its last words."""
        with self._lock:
            facts, self._facts = self._facts, {}
            words, self._last_words = self._last_words, None
        if self.files is None:
            return
        try:
            if facts:
                self.files.describe(**facts)
        finally:
            if words is not None:
                self._end(self.files, *words)

    def _end(self, files: RunFiles, status: str, details: Mapping[str, Any]) -> None:
        try:
            files.end(status, **details)
        finally:
            self._done.set()
