"""A run's files from the trainer's side: opened by a thread, so that storage which hangs keeps nobody waiting.

What is written before they are open waits in memory. Where they cannot be opened (a full disk, a folder that
may not be written) it is tried again until the run ends.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trainvitals.errors import RunInUse, TrainVitalsError
from trainvitals.journal import slow
from trainvitals.journal.append import WarnOnce
from trainvitals.journal.record import encode, timestamp
from trainvitals.journal.run_files import RunFiles

RETRY_SECONDS = 2.0
MAX_EARLY = 10_000
MAX_EARLY_BYTES = 8 * 2**20
# No call of a run may take 50 ms, whatever the storage does. A local disk is waited for: what is logged is then
# on it when the call returns.
PATIENCE_SLOW, PATIENCE = 0.03, 1.0
END_SECONDS = 2.0


class Files:
    def __init__(self, find_root: Callable[[], Path], open_files: Callable[[Path], RunFiles], warn: WarnOnce,
                 opened: Callable[[RunFiles], None]) -> None:  # fmt: skip
        self._find_root, self._open_files, self._warn, self._opened = find_root, open_files, warn, opened
        self._lock = threading.RLock()
        self._early: deque[tuple[str, bytes]] = deque()
        self._early_bytes = 0
        self._facts: dict[str, Any] = {}
        self._last_words: tuple[str, dict[str, Any]] | None = None
        self._placed, self._answered, self._wake, self._done = (threading.Event() for _ in range(4))
        self._is_slow = True
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
            self._facts |= {**facts, "config": self._facts.get("config", {}) | dict(facts.get("config") or {})}
            self._see_to_it()

    def end(self, status: str, details: Mapping[str, Any]) -> None:
        """On slow storage it is the thread that ends; `wait` gives it time."""
        with self._lock:
            self._last_words = (status, dict(details))
            self._see_to_it()

    def wait(self, deadline: float) -> None:
        """At the interpreter's end: what is on its way gets there, or is given up."""
        self._done.wait(max(0.0, deadline - time.monotonic()))

    def _append(self, kind: str, line: bytes) -> bool:
        if self.files is None:
            with self._lock:
                if self.files is None:
                    return self._hold(kind, line)
        return (self.files.metrics if kind == "metrics" else self.files.events).append_line(line)

    def _hold(self, kind: str, line: bytes) -> bool:
        if len(self._early) >= MAX_EARLY or self._early_bytes + len(line) > MAX_EARLY_BYTES:
            self.dropped += 1
            return False
        self._early_bytes += len(line)
        self._early.append((kind, line))
        return True

    def _see_to_it(self) -> None:
        if self.files is None or self._is_slow:
            self._wake.set()
        else:
            self._say()

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="trainvitals-run", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no more threads
            if not self._try_open():
                self._done.set()
            return
        self._placed.wait(PATIENCE_SLOW / 2)
        self._answered.wait(PATIENCE_SLOW / 2 if self._is_slow else PATIENCE)

    def _run(self) -> None:
        """On a local disk over as soon as the files are open."""
        try:
            self._open()
            while self._is_slow and not self._done.is_set():
                self._wake.wait()
                self._wake.clear()
                self._say()
        finally:
            if self.files is None or self._is_slow:
                self._done.set()
            self._answered.set()

    def _open(self) -> None:
        """Until it went well; once more when the run ends."""
        while not self._try_open():
            if self.is_refused or self._last_words:
                return
            self._answered.set()
            self._wake.wait(RETRY_SECONDS)

    def _try_open(self) -> bool:
        try:
            root = self._find_root()
            self._is_slow = slow.is_slow(root)
            self._placed.set()
            files = self._open_files(root)
        except RunInUse as error:
            self.is_refused = True
            self._warn("dropping", f"nothing is recorded: {error}")
        except (OSError, TrainVitalsError) as error:
            self._warn("dropping", f"nothing is recorded until this is mended: {error}")
        else:
            self._hand_over(files)
            return True
        return False

    def _hand_over(self, files: RunFiles) -> None:
        with self._lock:
            for kind, line in self._early:
                (files.metrics if kind == "metrics" else files.events).append_line(line)
            self._early.clear()
            self.files = files
            self._opened(files)
        self._say()

    def _say(self) -> None:
        """What is known of the run only now, and its last words."""
        with self._lock:
            facts, self._facts = self._facts, {}
            words, self._last_words = self._last_words, None
        if self.files is None:
            return
        if facts:
            self.files.describe(**facts)
        if words is not None:
            try:
                self.files.end(words[0], **words[1])
            finally:
                self._done.set()
