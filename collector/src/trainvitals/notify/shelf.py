"""A channel's file: a line for each change of a case, written anew when it has grown; for its owner's eyes alone.

A thread of its own reads and writes it, so that a disk that hangs costs a message no more than a moment. Killed at any
time, the file is the old one, the new one, or ends amid a line, which is skipped. Without space it goes on from memory.
"""

import errno
import logging
import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from trainvitals.journal.descriptors import FOLDER_FLAGS
from trainvitals.journal.small_files import is_foreign
from trainvitals.notify.case import Case, case_of
from trainvitals.notify.ledger import Ledger
from trainvitals.notify.limits import QUEUE_BYTES

_DRAFT = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_CLOSED = -1
# Beyond this a file is written anew, once most of it is past.
_LITTLE_BYTES = 2**16
_MAX_READ_BYTES = 4 * QUEUE_BYTES

log = logging.getLogger("trainvitals.notify")


class Shelf(threading.Thread):
    def __init__(self, path: Path, ledger: Ledger, lock: threading.Lock) -> None:
        super().__init__(name=f"queue-{path.stem}"[:15], daemon=True)
        self._path, self._ledger, self._lock = path, ledger, lock
        self._turn = threading.Condition()
        self._asked = self._answered = 0
        self._fd, self._size = _CLOSED, 0
        self._problem = ""
        # Whether the file is another than the ledger's lines make.
        self.is_behind = True
        self.loaded = threading.Event()

    def run(self) -> None:
        self._load()
        self.loaded.set()
        while True:
            with self._turn:
                self._turn.wait_for(lambda: self._asked > self._answered)
                asked = self._asked
            self._save()
            with self._turn:
                self._answered = asked
                self._turn.notify_all()

    def nudge(self) -> int:
        """Saves what is news, without waiting for it."""
        with self._turn:
            self._asked += 1
            self._turn.notify_all()
            return self._asked

    def save(self, seconds: float) -> bool:
        """Whether all that is news now is saved within that time; it goes on meanwhile."""
        asked = self.nudge()
        with self._turn:
            return self._turn.wait_for(lambda: self._answered >= asked, seconds)

    def _load(self) -> None:
        try:
            found = read(self._path)
        except FileNotFoundError:
            return
        except OSError as error:
            self._complain(error)
            return
        with self._lock:
            self._ledger.restore(found)

    def _save(self) -> None:
        is_gone = self._is_gone()
        with self._lock:
            lines, live = self._ledger.news(), self._ledger.live_bytes
            anew = lines is None or self.is_behind or is_gone or self._is_long(live)
            lines = self._ledger.whole() if anew else lines
        if not (lines or anew):
            return
        try:
            self._write(b"".join(lines or ()), anew)
            self.is_behind, self._problem = False, ""
        except OSError as error:
            self.is_behind = True
            self._complain(error)

    def _is_long(self, live: int) -> bool:
        return self._size > max(_LITTLE_BYTES, 4 * live)

    def _write(self, content: bytes, anew: bool) -> None:
        if anew:
            self._replace(content)
        elif os.write(self._fd, content) != len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        else:
            self._size += len(content)

    def _is_gone(self) -> bool:
        return self._fd == _CLOSED or os.fstat(self._fd).st_nlink == 0

    def _replace(self, content: bytes) -> None:
        """By way of the folder itself, which is no link to another's, and of a name that nobody can have guessed."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if is_foreign(self._path.parent):
            raise OSError(None, "another user made this folder")
        folder = os.open(self._path.parent, FOLDER_FLAGS)
        draft = f".{self._path.name}.{os.urandom(8).hex()}"
        try:
            fd = os.open(draft, _DRAFT, 0o600, dir_fd=folder)
            try:
                _write_all(fd, content)
                os.replace(draft, self._path.name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                os.close(fd)
                with suppress(OSError):
                    os.unlink(draft, dir_fd=folder)
                raise
        finally:
            os.close(folder)
        self._keep(fd, len(content))

    def _keep(self, fd: int, size: int) -> None:
        old, self._fd, self._size = self._fd, fd, size
        if old != _CLOSED:
            os.close(old)

    def _complain(self, error: OSError) -> None:
        """Once, until it works again."""
        problem = error.strerror or str(error)
        if problem != self._problem:
            self._problem = problem
            log.warning("%s: %s; messages go on, but those that wait would be lost with the agent",
                        self._path, problem)  # fmt: skip


def _write_all(fd: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        written = os.write(fd, view)
        if not written:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        view = view[written:]


def read(path: Path) -> list[Case]:
    """What the file knows; a line that is none is skipped, and that is said."""
    if is_foreign(path.parent):
        raise OSError(None, "another user made this folder")
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        cases, skipped = _cases(file.read(_MAX_READ_BYTES).splitlines())
    if skipped:
        log.warning("%s: %d lines are none of a queue and were skipped", path, skipped)
    return cases


def _cases(lines: Iterable[bytes]) -> tuple[list[Case], int]:
    found: dict[int, Case | None] = {}
    skipped = 0
    for line in lines:
        try:
            number, case = case_of(line)
            found[number] = case
        except ValueError:
            skipped += 1
    return [case for case in found.values() if case], skipped
