"""The lock on a journal's runs, held for as long as it takes to choose a run's folder."""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

CLAIM_SECONDS = 10.0


@contextmanager
def claiming(root: Path) -> Iterator[None]:
    """One claimant at a time on this machine, so that two ranks agree on one folder. One that hangs while
    it claims, or a file system without locks, keeps nobody from training."""
    fd = _open_claim(root / "runs" / ".claim")
    deadline = time.monotonic() + CLAIM_SECONDS
    try:
        while not _try_lock(fd) and time.monotonic() < deadline:
            time.sleep(0.002)
        yield
    finally:
        os.close(fd)


def _open_claim(path: Path) -> int:
    # In a folder that all may write to the kernel refuses O_CREAT on another user's file.
    with suppress(FileNotFoundError):
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    with suppress(OSError):
        os.fchmod(fd, 0o666)
    return fd


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        return error.errno in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
    return True
