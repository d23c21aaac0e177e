"""Which folders changed: inotify where the kernel has it, None where it has not (then readers poll).

Used by readers only; the training process never imports it.
"""

import ctypes
import errno
import os
import select
import struct
import weakref
from pathlib import Path

_CREATE, _MODIFY, _MOVED, _DELETE, _MOVED_AWAY = 0x100, 0x2, 0x40 | 0x80, 0x200, 0x800
_OVERFLOW, _IGNORED = 0x4000, 0x8000
_ONLY_DIR = 0x01000000
_MASK = _CREATE | _MODIFY | _MOVED | _DELETE | _MOVED_AWAY | _ONLY_DIR
_NON_BLOCKING = os.O_NONBLOCK | os.O_CLOEXEC
_EVENT = struct.Struct("iIII")


class Watch:
    """Watches folders, not files: a file that comes, grows, moves or goes shows in its folder."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.fd: int = self._libc.inotify_init1(_NON_BLOCKING)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        # A user has 128 of them by default: none may stay behind.
        self.close = weakref.finalize(self, os.close, self.fd)
        self._folders: dict[int, Path] = {}
        self._known: dict[Path, int] = {}
        self._unseen: set[Path] = set()

    def add(self, folder: Path) -> bool:
        """Whether the folder is watched from now on. One that is there and cannot be watched (the kernel limits
        the number of watches) is tried again, and until then each answer tells the reader to look for itself."""
        if folder in self._known:
            return True
        number = self._libc.inotify_add_watch(self.fd, os.fsencode(folder), _MASK)
        if number >= 0:
            self._folders[number] = folder
            self._known[folder] = number
            self._unseen.discard(folder)
        elif ctypes.get_errno() not in (errno.ENOENT, errno.ENOTDIR):
            self._unseen.add(folder)
        return folder in self._known

    def remove(self, folder: Path) -> None:
        """Gives the watch back; nothing happens for a folder that has none."""
        self._unseen.discard(folder)
        if folder in self._known:
            self._forget(self._known[folder])

    def wait(self, timeout: float) -> bool:
        """True as soon as something changed."""
        # Not select(), which knows no descriptor over 1023.
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        return bool(poll.poll(max(0.0, timeout) * 1000))

    def changed(self) -> tuple[set[Path], bool]:
        """The paths that changed since the last call, and whether some were lost on the way."""
        paths: set[Path] = set()
        lost = bool(self._unseen)
        self._retry()
        for number, mask, name in self._events():
            folder = self._folders.get(number)
            lost = lost or bool(mask & _OVERFLOW)
            if folder is not None and mask & (_IGNORED | _MOVED_AWAY):
                self._forget(number)
            elif folder is not None:
                paths.add(folder / name)
        return paths, lost

    def _forget(self, number: int) -> None:
        """The name may come to mean another folder, which `add` then takes."""
        self._known.pop(self._folders.pop(number), None)
        self._libc.inotify_rm_watch(self.fd, number)

    def _retry(self) -> None:
        for folder in list(self._unseen):
            self._unseen.discard(folder)
            self.add(folder)

    def _events(self) -> list[tuple[int, int, str]]:
        try:
            block = os.read(self.fd, 1 << 18)
        except BlockingIOError:
            return []
        events, at = [], 0
        while at < len(block):
            number, mask, _, length = _EVENT.unpack_from(block, at)
            at += _EVENT.size
            events.append((number, mask, os.fsdecode(block[at : at + length].rstrip(b"\0"))))
            at += length
        return events


def open_watch() -> Watch | None:
    try:
        return Watch()
    except (OSError, AttributeError):
        return None
