"""The locks on a journal's runs, held for as long as it takes to choose a run's folder.

runs/.claim          everybody's: any user may hold it, and for as long as he likes
runs/.claim.<uid>    one user's, as the ranks of a run are: nobody else can keep them from agreeing on one folder
"""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from trainvitals.journal.descriptors import open_regular
from trainvitals.journal.small_files import is_anothers

# Less than a process waits at its end for what it recorded.
SHARED_SECONDS, OWN_SECONDS = 1.0, 10.0
_FLAGS = os.O_RDWR | os.O_NOFOLLOW


@contextmanager
def claiming(root: Path) -> Iterator[None]:
    """One claimant at a time on this machine, so that two ranks agree on one folder. One that hangs while it claims, a
    file system without locks, or a lock that cannot be opened, keeps nobody from training."""
    with _locked(root / "runs" / ".claim", 0o666, SHARED_SECONDS), _locked(own_lock(root), 0o600, OWN_SECONDS):
        yield


def own_lock(root: Path) -> Path:
    return root / "runs" / f".claim.{os.geteuid()}"


@contextmanager
def _locked(path: Path, mode: int, seconds: float) -> Iterator[None]:
    fd = -1
    try:
        with suppress(OSError):
            fd = _open(path, mode)
            _wait_for(fd, seconds)
        yield
    finally:
        if fd >= 0:
            os.close(fd)


def _wait_for(fd: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not _try_lock(fd) and time.monotonic() < deadline:
        time.sleep(0.002)


def _open(path: Path, mode: int) -> int:
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fd = _found_or_made(path.name, folder, mode)
        if mode == 0o600 and is_anothers(fd, folder):
            os.close(fd)
            raise PermissionError(errno.EPERM, "another user made it", str(path))
        return fd
    finally:
        os.close(folder)


def _found_or_made(name: str, folder: int, mode: int) -> int:
    # In a folder that all may write to the kernel refuses O_CREAT on another user's file.
    with suppress(FileNotFoundError):
        return open_regular(name, _FLAGS, folder)
    fd = open_regular(name, _FLAGS | os.O_CREAT, folder)
    with suppress(OSError):
        os.fchmod(fd, mode)
    return fd


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        return error.errno in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
    return True
