"""The file of an index, in a folder that another user may have filled first. One writer: the agent of its host.

file = IndexFile(root / "runs" / "gemma", "gpu1.index.rank0.jsonl", head=b'{"index":1,…}\n')
file.append(lines)   ->  whether they are there; all of them or none
file.read()          ->  the whole lines behind the head, nothing where the head is another
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from trainvitals.journal.descriptors import FOLDER_FLAGS, open_regular, whole_length
from trainvitals.journal.small_files import is_anothers

MAX_BYTES = 256 << 20
Stamp = tuple[int, int]


class IndexFile:
    def __init__(self, run_folder: Path, name: str, head: bytes) -> None:
        self._run_folder, self._name, self._head = run_folder, name, head

    def stamp(self) -> Stamp | None:
        """Changes with whatever is done to the file by others; None where there is none."""
        with suppress(OSError):
            status = os.stat(self._run_folder / "agent" / self._name, follow_symlinks=False)
            return status.st_ino, status.st_size
        return None

    def read(self) -> bytes:
        with suppress(OSError), self._opened(os.O_RDONLY) as fd:
            content = os.pread(fd, min(whole_length(fd), MAX_BYTES), 0)
            if content.startswith(self._head):
                return content[len(self._head) :]
        return b""

    def append(self, lines: bytes) -> bool:
        with suppress(OSError), self._opened(os.O_RDWR | os.O_CREAT | os.O_APPEND) as fd:
            whole = self._prepare(fd)
            lines = lines if whole else self._head + lines
            try:
                if os.write(fd, lines) == len(lines):
                    return True
            except OSError:
                pass
            os.ftruncate(fd, whole)
        return False

    def clear(self) -> None:
        with suppress(OSError), self._opened(os.O_RDWR) as fd:
            os.ftruncate(fd, 0)

    def _prepare(self, fd: int) -> int:
        """Cuts off what was not written to its end, or by another version; the length that stays."""
        whole = whole_length(fd) if os.pread(fd, len(self._head), 0) == self._head else 0
        if whole != os.fstat(fd).st_size:
            os.ftruncate(fd, whole)
        return whole

    @contextmanager
    def _opened(self, flags: int) -> Iterator[int]:
        """No link leads elsewhere, and what another user made is neither believed nor written to."""
        run = os.open(self._run_folder, FOLDER_FLAGS)
        try:
            folder = os.open("agent", FOLDER_FLAGS, dir_fd=run)
        finally:
            os.close(run)
        try:
            fd = open_regular(self._name, flags | os.O_NOFOLLOW, folder)
            try:
                if is_anothers(fd, folder):
                    raise PermissionError(f"{self._name} is another user's")
                yield fd
            finally:
                os.close(fd)
        finally:
            os.close(folder)
