"""Writing: one record, one write(2), and a file that is never left torn.

What cannot be written is dropped and counted; the first failure is logged once. On slow storage the
lines go through a bounded queue, so that the caller never waits.
"""

import logging
import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakSet

from trainvitals.journal import slow
from trainvitals.journal.layout import stamped
from trainvitals.journal.record import encode, timestamp

MAX_FILE_BYTES = 64 * 2**20
SLOW_WRITE_SECONDS = 0.02
RETRY_SECONDS = 1.0
_DAY = 86400
_CLOSED = -1
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOCTTY

log = logging.getLogger("trainvitals.journal")


@dataclass(slots=True)
class Counts:
    written: int = 0
    dropped: int = 0


class Appender:
    """The one writer of a file, or of a series of files where it rotates."""

    def __init__(self, folder: Path, name: str, *, suffix: str = "", max_bytes: int = 0) -> None:
        """`name` is the file's; with `max_bytes` a prefix, and files are started by size and by day."""
        self._folder, self._name, self._suffix, self._max_bytes = folder, name, suffix, max_bytes
        self._lock = threading.RLock()
        self._fd = _CLOSED
        self._size = 0
        self._torn = False
        self._check_at = 0.0
        self._day = 0
        self._warned: set[str] = set()
        self._foreign = False
        self._queue: slow.Queue | None = None
        self.path: Path | None = None
        self.counts = Counts()
        _living.add(self)
        if slow.is_slow(folder):
            self._defer("is on network storage")

    def append(self, record: Mapping[str, Any]) -> bool:
        """True when the record is with the kernel (on slow storage: with the queue)."""
        try:
            line = encode({"timestamp": timestamp(), **record})
        except ValueError as error:
            return self._drop(1, f"a record cannot be written as JSON: {error}")
        if self._queue is not None:
            return self._queue.put(line) or self._drop(1, "storage is slower than the records come")
        with self._lock:
            return self._write(line)

    def close(self) -> None:
        """Writes what waits, for two seconds at most."""
        if self._queue is not None and not self._foreign:
            self._queue.close()
        if self._lock.acquire(timeout=slow.FLUSH_SECONDS):
            self._shut()
            self._lock.release()

    def _write(self, line: bytes) -> bool:
        if self._foreign:
            return False
        began = time.monotonic()
        if (began >= self._check_at or self._torn) and not self._ready(began, len(line)):
            return False
        try:
            written = os.write(self._fd, line)
        except OSError as error:
            return self._fail(error.strerror or str(error), line.count(b"\n"))
        if time.monotonic() - began > SLOW_WRITE_SECONDS:
            self._defer("took over 20 ms for a write")
        return self._settle(line, written)

    def _settle(self, line: bytes, written: int) -> bool:
        """After a short write only whole lines stay."""
        lines = line.count(b"\n") if self._queue else 1
        if written == len(line):
            self._size += written
            self.counts.written += lines
            return True
        self._size += line.rfind(b"\n", 0, written) + 1
        kept = line.count(b"\n", 0, written)
        self.counts.written += kept
        self._torn = True
        self._cut_back()
        return self._fail("no space left for a whole line", lines - kept)

    def _cut_back(self) -> None:
        with suppress(OSError):
            os.ftruncate(self._fd, self._size)
            self._torn = False

    def _ready(self, now: float, length: int) -> bool:
        """Once a second, and after each failure: a file that is there, whole, and the day's."""
        self._check_at = now + RETRY_SECONDS
        try:
            if self._fd != _CLOSED and (os.fstat(self._fd).st_nlink == 0 or self._is_full(length)):
                self._shut()
            if self._fd == _CLOSED:
                self._open()
        except OSError as error:
            return self._fail(error.strerror or str(error), 1)
        if self._torn:
            self._cut_back()
        return not self._torn or self._fail("a half-written line cannot be taken back", 1)

    def _is_full(self, length: int) -> bool:
        return bool(self._max_bytes) and (
            self._size + length > self._max_bytes or int(time.time()) // _DAY != self._day
        )

    def _open(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._fd = self._new_file() if self._max_bytes else self._known_file()
        self._day = int(time.time()) // _DAY

    def _known_file(self) -> int:
        self.path = self._folder / self._name
        fd = os.open(self.path, _FLAGS | os.O_CREAT | os.O_RDWR, 0o644)
        self._size = whole_length(fd)
        self._torn = self._size != os.fstat(fd).st_size
        return fd

    def _new_file(self) -> int:
        """A name of its own even when two writers start within one second."""
        for later in range(3600):
            self.path = self._folder / stamped(self._name, self._suffix, time.time() + later)
            with suppress(FileExistsError):
                self._size, self._torn = 0, False
                return os.open(self.path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o644)
        raise FileExistsError(f"no free name for {self._name} in {self._folder}")

    def _shut(self) -> None:
        if self._fd != _CLOSED:
            fd, self._fd, self._check_at = self._fd, _CLOSED, 0.0
            with suppress(OSError):
                os.close(fd)

    def _fail(self, problem: str, lost: int) -> bool:
        self._check_at = min(self._check_at, time.monotonic() + RETRY_SECONDS)
        return self._drop(lost, problem)

    def _drop(self, lost: int, problem: str) -> bool:
        self.counts.dropped += lost
        self._warn_once("dropping", f"{self._folder}: {problem}; records are dropped until that ends")
        return False

    def _warn_once(self, kind: str, text: str) -> None:
        if kind not in self._warned:
            self._warned.add(kind)
            log.warning("%s", text)

    def _defer(self, reason: str) -> None:
        if self._queue is None:
            self._queue = slow.Queue(self._write_queued)
            self._warn_once("slow", f"{self._folder} {reason}: a kill may now lose the last second of records")

    def _write_queued(self, lines: bytes) -> None:
        with self._lock:
            self._write(lines)

    def _after_fork(self) -> None:
        """The file has one writer: the child's copy of it writes nothing."""
        self._foreign = True
        self._lock = threading.RLock()
        self._queue = None


def whole_length(fd: int) -> int:
    """The length up to and with the last newline: what is past it was cut off by a crash."""
    end = os.fstat(fd).st_size
    while end > 0:
        start = max(0, end - 65536)
        newline = os.pread(fd, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


_living: "WeakSet[Appender]" = WeakSet()


def _silence_children() -> None:
    for appender in list(_living):
        appender._after_fork()


os.register_at_fork(after_in_child=_silence_children)
