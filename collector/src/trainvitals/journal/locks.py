"""The locks by which others see that a process lives, and which it is; the kernel drops them however it ends.

holder(fd)  ->  4711, 0 for one whose number is not known here, None where nobody holds the file

A POSIX lock tells the number, in the asker's own namespace, and no forked worker inherits it; but it goes as soon as
its process opens and closes the file once more, as to copy it. So a second lock lies beside it, on a range of its own:
one of the open file, which that leaves alone.
"""

import fcntl
import os
import struct
from contextlib import suppress

_FLOCK = struct.Struct("@hhqqi0q")
# Each lock's range, as where it starts and how long it is (0: to the end of all files).
_OF_THE_PROCESS, _OF_THE_OPEN_FILE = (0, 1 << 62), (1 << 62, 0)


def take(fd: int) -> bool:
    """False where another process holds the file."""
    if holder(fd) is not None:
        return False
    with suppress(BlockingIOError, PermissionError):
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, _OF_THE_PROCESS[1])
        return True
    return False


def take_for_open_file(fd: int) -> None:
    """A child shares it until it closes the descriptor. Some systems know no such lock."""
    with suppress(OSError):
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _flock(fcntl.F_WRLCK, _OF_THE_OPEN_FILE))


def give_up(fd: int) -> None:
    """Also where a child that C code forked has the descriptor still."""
    with suppress(OSError):
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _flock(fcntl.F_UNLCK, _OF_THE_OPEN_FILE))


def holder(fd: int) -> int | None:
    for part in (_OF_THE_PROCESS, _OF_THE_OPEN_FILE):
        kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_GETLK, _flock(fcntl.F_WRLCK, part)))
        if kind != fcntl.F_UNLCK:
            return max(int(pid), 0)
    return None


def _flock(kind: int, part: tuple[int, int]) -> bytes:
    return _FLOCK.pack(kind, os.SEEK_SET, *part, 0)
