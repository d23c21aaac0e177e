"""Storage that may make a writer wait: how it is known, and the queue that waits in its place.

The mount table is read, not the file system: asking a hung NFS server what it is would hang too.
"""

import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

MAX_LINES = 10_000
MAX_BYTES = 8 * 2**20
FLUSH_SECONDS = 2.0
_ESCAPED = re.compile(r"\\([0-7]{3})")
_SLOW_TYPES = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "beegfs", "ceph", "glusterfs", "gpfs", "lustre", "ocfs2",
     "orangefs", "panfs", "pvfs2", "virtiofs", "wekafs", "fuse", "fuseblk")
)  # fmt: skip


def is_slow(folder: Path, mounts: str = "/proc/self/mountinfo") -> bool:
    """By the path as written first, so that no link on a hanging mount is followed."""
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as table:
            types = _mount_types(table.read())
    except OSError:
        return False
    written = os.path.abspath(folder)
    return _type_of(written, types) or _type_of(os.path.realpath(written), types)


def _mount_types(table: str) -> dict[str, str]:
    """mount point -> type; a later mount on the same point hides the earlier one."""
    types = {}
    for line in table.splitlines():
        before, _, after = line.partition(" - ")
        point = _ESCAPED.sub(lambda match: chr(int(match[1], 8)), before.split(" ")[4])
        types[point] = after.partition(" ")[0]
    return types


def _type_of(path: str, types: dict[str, str]) -> bool:
    while path not in types and path != os.path.dirname(path):
        path = os.path.dirname(path)
    kind = types.get(path, "")
    return kind in _SLOW_TYPES or kind.startswith("fuse.")


class Queue:
    """Lines on their way to slow storage, written in one go by a daemon thread."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        self._wake = threading.Event()
        self._idle = threading.Event()
        self._idle.set()
        self._thread: threading.Thread | None = None

    def put(self, line: bytes) -> bool:
        if len(self._lines) >= MAX_LINES or self._bytes + len(line) > MAX_BYTES:
            return False
        self._idle.clear()
        self._bytes += len(line)
        self._lines.append(line)
        self._wake.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="trainvitals-journal", daemon=True)
            self._thread.start()
        return True

    def close(self) -> None:
        self._idle.wait(FLUSH_SECONDS)

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            while self._lines:
                self._write(self._take())
            self._idle.set()
            time.sleep(0.01)

    def _take(self) -> bytes:
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        block = b"".join(lines)
        self._bytes -= len(block)
        return block
