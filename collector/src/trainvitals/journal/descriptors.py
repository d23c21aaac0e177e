"""File descriptors that no file of the trainer's will have the number of."""

import fcntl
import os

LOWEST = 512


def moved_up(fd: int) -> int:
    """Where a program that makes itself a daemon closes all it has, its next files get the low numbers; what is still
    written to a low number of ours would go into one of them."""
    try:
        moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, LOWEST)
    except OSError:  # no such number may be had
        return fd
    os.close(fd)
    return moved
