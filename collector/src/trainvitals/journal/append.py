"""Writing: one record, one write(2), and a file that is never left torn.

What cannot be written is dropped and counted; the first failure is logged once. On slow storage the
lines go through a bounded queue, so that the caller never waits.
"""

import errno
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakSet

from trainvitals.journal import slow
from trainvitals.journal.descriptors import FOLDER_FLAGS, close_if, moved_up, open_regular, whole_length
from trainvitals.journal.layout import stamped
from trainvitals.journal.record import encode, timestamp

MAX_FILE_BYTES = 64 * 2**20
SLOW_WRITE_SECONDS = 0.02
RETRY_SECONDS = 1.0
_CLOSED = _UNKNOWN = -1
# A folder that another user may write into may hold a link under the file's name.
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW

_SLOW = "took over 20 ms for a write"

log = logging.getLogger("trainvitals.journal")


@dataclass(slots=True)
class Counts:
    written: int = 0
    dropped: int = 0


class WarnOnce:
    """Says a thing of each kind once; files that are written together share one."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def __call__(self, kind: str, text: str) -> None:
        if kind not in self._said:
            self._said.add(kind)
            with suppress(Exception):  # a handler of the log may fail as well
                log.warning("%s", text)


class Appender:
    """The one writer of a file, or of a series of files where it rotates."""

    def __init__(self, folder: Path, name: str, *, suffix: str = "", max_bytes: int = 0,
                 warn: WarnOnce | None = None) -> None:  # fmt: skip
        """`name` is the file's; with `max_bytes` a prefix, and files are started by size and by day."""
        self._folder, self._name, self._suffix = folder, name, suffix
        self._rotates, self._max_bytes = max_bytes > 0, max_bytes or sys.maxsize
        self._lock = threading.RLock()
        self._fd = _CLOSED
        self._identity = (0, 0)
        # The length of the whole lines, and what a write makes of it. Where they differ, the last one failed.
        self._size = self._expected = 0
        self._check_at = 0.0
        self._day = 0
        self._warn = warn or WarnOnce()
        self._foreign = self._busy = False
        self._late: list[bytes] = []
        self._words: deque[tuple[str, str]] = deque()
        self._queue: slow.Queue | None = None
        self.path: Path | None = None
        self.counts = Counts()
        _living.add(self)
        if slow.is_slow(folder):
            self._defer("is on network storage", slow.NEVER)
            self._say()

    def append(self, record: Mapping[str, Any]) -> bool:
        """True when the record is with the kernel (on slow storage: with the queue)."""
        try:
            line = encode({"timestamp": timestamp(), **record})
        except Exception as error:  # a mapping of the user's own may raise anything
            return self._refuse(f"a record cannot be written as JSON ({type(error).__name__})")
        return self.append_line(line)

    def append_line(self, line: bytes) -> bool:
        """The same for a record that is encoded already, its timestamp first."""
        queue = self._queue
        if queue is not None and not queue.is_calm:
            return queue.put(line) or self._refuse("storage is slower than the records come")
        # Another thread's write may take long.
        if not self._lock.acquire(False) and not self._lock.acquire(timeout=SLOW_WRITE_SECONDS):
            return self._defer(_SLOW, slow.CALM_SECONDS).put(line)
        try:
            if self._write(line, 1):
                return True
        finally:
            self._lock.release()
        self._say()
        return False

    @property
    def is_queued(self) -> bool:
        """Whether lines go through the queue, because a write could make the caller wait."""
        return self._queue is not None and not self._queue.is_calm

    def close(self, deadline: float | None = None) -> None:
        """Writes what waits, until `deadline` (of time.monotonic(); two seconds from now) at most."""
        deadline = slow.flush_deadline() if deadline is None else deadline
        if self._queue is not None:
            self._queue.close(deadline - time.monotonic())
        if self._lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
            if not self._busy:
                self._shut()
            self._check_at = 0.0
            self._lock.release()
        self._say()

    def _write(self, lines: bytes, count: int) -> bool:
        if self._foreign:
            return False
        if self._busy:  # a signal handler in the middle of a write: its record follows at once
            self._late.append(lines)
            return True
        self._busy = True
        try:
            began = time.monotonic()
            if began >= self._check_at or (self._expected != self._size and self._fd != _CLOSED):
                self._make_ready(began)
            self._expected = size = self._size + len(lines)
            written = os.write(self._fd, lines)
            if time.monotonic() - began > SLOW_WRITE_SECONDS:
                self._defer(_SLOW, slow.CALM_SECONDS)
            if written != len(lines):
                return self._take_back(lines, written, count)
            self._size = size
            if size >= self._max_bytes:
                self._check_at = 0.0
            self.counts.written += count
            return True
        except OSError as error:
            if error.errno is None:  # a signal's handler raised it, a TimeoutError say, and meant the caller
                raise
            return self._drop(count, error.strerror or str(error))
        finally:
            self._busy = False
            if self._late:
                self._write_late()

    def _write_late(self) -> None:
        while self._late:
            self._write(self._late.pop(0), 1)

    def _take_back(self, lines: bytes, written: int, count: int) -> bool:
        """After a short write only whole lines stay."""
        kept = lines.count(b"\n", 0, written)
        self._size += lines.rfind(b"\n", 0, written) + 1
        with suppress(OSError):
            self._heal()
        self.counts.written += kept
        return self._drop(count - kept, "no space left for a whole line")

    def _heal(self) -> None:
        """Cuts off what a failed write left of its line; an interrupted one may have written it whole."""
        end, whole = os.fstat(self._fd).st_size, self._size
        if end == self._expected:
            whole = end
        elif self._expected == _UNKNOWN or end < whole:
            whole = whole_length(self._fd)
        if whole != end:
            os.ftruncate(self._fd, whole)
        self._size = self._expected = whole

    def _make_ready(self, now: float) -> None:
        """Once a second, and after each failure: a file that is there, whole, and the day's."""
        self._check_at = now + RETRY_SECONDS
        if self._fd != _CLOSED:
            self._look()
        if self._fd == _CLOSED:
            self._open()
        if self._expected != self._size:
            self._heal()

    def _look(self) -> None:
        """Leaves a file that was deleted, is full or of another day."""
        status = self._status()
        if status is None:
            self._fd = _CLOSED
        elif status.st_nlink == 0 or self._size >= self._max_bytes or (self._rotates and _today() != self._day):
            self._shut()
        elif status.st_size < self._size:
            self._expected = _UNKNOWN

    def _status(self) -> os.stat_result | None:
        """None where the descriptor is no longer ours: of one that a daemon closed the number goes to another file."""
        try:
            status = os.fstat(self._fd)
        except OSError as error:
            if error.errno is None:  # as in _write
                raise
            return None
        return status if (status.st_dev, status.st_ino) == self._identity else None

    def _open(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._expected = _UNKNOWN
        self._fd = self._open_file()
        self._day = _today()
        status = os.fstat(self._fd)
        self._identity = (status.st_dev, status.st_ino)
        self._size = whole_length(self._fd)
        self._expected = self._size if self._size == status.st_size else _UNKNOWN

    def _open_file(self) -> int:
        """By way of the folder itself, which is no link to another."""
        folder = os.open(self._folder, FOLDER_FLAGS)
        try:
            return self._new_file(folder) if self._rotates else self._known_file(folder)
        finally:
            os.close(folder)

    def _known_file(self, folder: int) -> int:
        self.path = self._folder / self._name
        return moved_up(open_regular(self._name, _FLAGS, folder))

    def _new_file(self, folder: int) -> int:
        """A name of its own even when two writers start within one second."""
        for later in range(3600):
            self.path = self._folder / stamped(self._name, self._suffix, time.time() + later)
            with suppress(FileExistsError):
                return moved_up(open_regular(self.path.name, _FLAGS | os.O_EXCL, folder))
        raise FileExistsError(errno.EEXIST, f"no free name for {self._name} in {self._folder}")

    def _shut(self) -> None:
        if self._fd != _CLOSED:
            fd, self._fd = self._fd, _CLOSED
            with suppress(OSError):
                close_if(fd, self._identity)

    def _refuse(self, problem: str) -> bool:
        self._drop(1, problem)
        self._say()
        return False

    def _drop(self, lost: int, problem: str) -> bool:
        self.counts.dropped += lost
        self._words.append(("dropping", f"{self._folder}: {problem}; records are dropped until that ends"))
        return False

    def _say(self) -> None:
        """Never with our lock held: a handler of the log may be in the hands of a thread that waits for it."""
        if self._lock._is_owned():  # type: ignore[attr-defined]  # by the write that a signal handler came into
            return
        while self._words:
            with suppress(IndexError):
                self._warn(*self._words.popleft())

    def _defer(self, reason: str, calm_seconds: float) -> slow.Queue:
        with _deferring:
            if self._queue is not None:
                self._queue.disturb()
                return self._queue
            self._queue = slow.Queue(self._write_queued, calm_seconds)
        self._words.append(("slow", f"{self._folder} {reason}: a kill may now lose the last second of records"))
        return self._queue

    def _write_queued(self, lines: bytes) -> None:
        with self._lock:
            self._write(lines, lines.count(b"\n"))
        self._say()

    def _after_fork(self) -> None:
        """The file has one writer: the child's copy of it writes nothing."""
        self._foreign = True
        self._late = []
        self._words.clear()
        self._lock = threading.RLock()
        self._queue = None


def _today() -> int:
    return int(time.time()) // 86400


_living: "WeakSet[Appender]" = WeakSet()
_deferring = threading.RLock()


def _silence_children() -> None:
    for appender in list(_living):
        appender._after_fork()


os.register_at_fork(after_in_child=_silence_children)
