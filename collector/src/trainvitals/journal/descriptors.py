"""File descriptors that wait for nobody, and that no file of the trainer's will have the number of."""

import errno
import fcntl
import os
import resource
import stat

FOLDER_FLAGS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
LEFT_ABOVE, MOST_BELOW = 64, 4032


def moved_up(fd: int) -> int:
    """Where a program that makes itself a daemon closes all it has, its next files get the low numbers; what is still
    written to a low number of ours would go into one of them. One that then opens more files than there are numbers
    below ours gets some of our lines until the next look at the file's identity, a second later at most."""
    try:
        moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _lowest())
    except (OSError, ValueError):  # no such number may be had
        return fd
    os.close(fd)
    return moved


def _lowest() -> int:
    """Near the limit, and not so high that each process carries a long table."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return MOST_BELOW
    return min(max(limit - LEFT_ABOVE, limit // 2), MOST_BELOW)


def open_regular(path: str | os.PathLike[str], flags: int, folder: int | None = None) -> int:
    """Something that is no file, put there under a file's name, keeps nobody waiting."""
    fd = os.open(path, flags | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK, 0o644, dir_fd=folder)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise OSError(errno.EINVAL, f"{path} is not a regular file")


def identity(fd: int) -> tuple[int, int] | None:
    """Of the file behind the number, None where there is none."""
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def close_if(fd: int, ours: tuple[int, int]) -> None:
    """Leaves a number alone that went to another file."""
    if identity(fd) == ours:
        os.close(fd)


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
