"""How much room there is where the journal lies, whatever that is: network storage, FUSE, a disk in memory.

journal.ask()  ->  Space("/mnt/nfs", "server:/export", 1e12, 2e11), or None while it does not answer
Storage that is gone may keep who asks waiting for ever, so a thread asks; the next one when that has come back.
"""

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from trainvitals.journal import slow

WAIT_SECONDS = 2.0


class Space(NamedTuple):
    mountpoint: str
    device: str
    size_bytes: float
    free_bytes: float


def space(mountpoint: str, device: str, at: str | Path) -> Space:
    told = os.statvfs(at)
    return Space(mountpoint, device, float(told.f_blocks * told.f_frsize), float(told.f_bavail * told.f_frsize))


class JournalDisk:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._asking: threading.Thread | None = None

    def ask(self) -> Space | None:
        if self._asking is not None and self._asking.is_alive():
            return None
        answers: list[Space] = []
        self._asking = threading.Thread(target=self._look, args=(answers,), name="journal-disk", daemon=True)
        with suppress(RuntimeError):  # no thread to be had
            self._asking.start()
            self._asking.join(WAIT_SECONDS)
        return next((answer for answer in answers if answer.size_bytes), None)

    def _look(self, answers: list[Space]) -> None:
        with suppress(OSError):
            mount = slow.mount_of(self._folder)
            answers.append(space(mount.folder.encode("utf-8", "replace").decode(), mount.source, self._folder))
