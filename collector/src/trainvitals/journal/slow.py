"""Storage that may make a writer wait: how it is known, and the queue that waits in its place.

The mount table is read, not the file system: asking a hung NFS server what it is would hang too.
"""

import os
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

MAX_LINES = 10_000
MAX_BYTES = 8 * 2**20
FLUSH_SECONDS = 2.0
GATHER_SECONDS = 0.01
# A processor that was busy elsewhere, or a large checkpoint, makes a write wait just as slow storage does.
CALM_SECONDS = 60.0
MOST_CALM_SECONDS = 3600.0
NEVER = float("inf")
_ESCAPED = re.compile(r"\\([0-7]{3})")
_SLOW_TYPES = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "beegfs", "ceph", "glusterfs", "gpfs", "lustre", "ocfs2",
     "orangefs", "panfs", "pvfs2", "virtiofs", "wekafs", "fuse", "fuseblk")
)  # fmt: skip

MOUNTS = "/proc/self/mountinfo"


class Mount(NamedTuple):
    number: str = ""
    folder: str = ""
    kind: str = ""
    source: str = ""


# (the mount it lies on, its folder) -> the mount
_Mounts = dict[tuple[str, str], Mount]


def is_slow(folder: Path, mounts: str = MOUNTS) -> bool:
    """By the path as written first, so that no link on a hanging mount is followed."""
    try:
        table = _read(mounts)
    except OSError:
        return False
    written = os.path.abspath(folder)
    return _is_slow(written, table) or _is_slow(os.path.realpath(written), table)


def mount_of(folder: Path, mounts: str = MOUNTS) -> Mount:
    """What a folder lies on, links followed: on network storage that may take for ever."""
    return _mount_of(os.path.realpath(folder), _read(mounts))


def _read(mounts: str) -> _Mounts:
    with open(mounts, encoding="utf-8", errors="surrogateescape") as file:
        return _mount_table(file.read())


def _is_slow(path: str, mounts: _Mounts) -> bool:
    kind = _mount_of(path, mounts).kind
    return kind in _SLOW_TYPES or kind.startswith("fuse.")


def _mount_table(text: str) -> _Mounts:
    mounts: _Mounts = {}
    for line in text.split("\n"):
        before, _, after = line.partition(" - ")
        with suppress(ValueError):
            number, parent, _, _, point, *_ = before.split(" ")
            folder = _ESCAPED.sub(lambda match: chr(int(match[1], 8)), point)
            kind, source, *_ = after.split(" ")
            mounts[parent, folder] = Mount(number, folder, kind, source)
    return mounts


def _mount_of(path: str, mounts: _Mounts) -> Mount:
    """Found as the kernel does, from the root downwards: a mount beneath one that came later is hidden."""
    left = dict(mounts)
    here = _root(left)
    for folder in (*reversed(Path(path).parents), Path(path)):
        while (here.number, str(folder)) in left:
            here = left.pop((here.number, str(folder)))
    return here


def _root(mounts: _Mounts) -> Mount:
    numbers = {mount.number for mount in mounts.values()}
    for (parent, folder), mount in mounts.items():
        if folder == "/" and (parent == mount.number or parent not in numbers):
            return mount
    return Mount()


def flush_deadline() -> float:
    """Until when what waits is written at a close; one for all that are closed together."""
    return time.monotonic() + FLUSH_SECONDS


class Queue:
    """Lines on their way to slow storage, written in one go by a daemon thread.

    `put` may be called from a signal handler that came in the middle of another `put`.
    """

    def __init__(self, write: Callable[[bytes], None], calm_seconds: float = NEVER) -> None:
        self._write, self._calm_seconds = write, calm_seconds
        self._calm_at = time.monotonic() + calm_seconds
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        self._lock = threading.RLock()
        self._bytes = 0
        self._thread: threading.Thread | None = None

    @property
    def is_calm(self) -> bool:
        """Whether all is written, and no write was slow for so long that the next may be direct again."""
        return not self._bytes and time.monotonic() >= self._calm_at

    def disturb(self) -> None:
        """A write was slow again: the next calm has to last twice as long, so that few calls ever wait."""
        self._calm_seconds = max(self._calm_seconds, min(2 * self._calm_seconds, MOST_CALM_SECONDS))
        self._calm_at = time.monotonic() + self._calm_seconds

    def put(self, line: bytes) -> bool:
        with self._lock:
            if self._lines.qsize() >= MAX_LINES or self._bytes + len(line) > MAX_BYTES:
                return False
            self._bytes += len(line)
            self._lines.put(line)
            if self._thread is None:
                self._start()
        return True

    def close(self, timeout: float | None = None) -> None:
        """Waits until all is written, for `timeout` seconds (FLUSH_SECONDS) at most."""
        deadline = flush_deadline() if timeout is None else time.monotonic() + timeout
        while self._bytes and time.monotonic() < deadline:
            time.sleep(GATHER_SECONDS / 2)

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="trainvitals-journal", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self._thread = None

    def _run(self) -> None:
        while True:
            block = self._lines.get() + b"".join(self._lines.get() for _ in range(self._lines.qsize()))
            self._write(block)
            with self._lock:
                self._bytes = 0 if self._lines.empty() else self._bytes - len(block)
            time.sleep(GATHER_SECONDS)
