"""Where a target stands with a run, on disk: runs/<run>/agent/sinks/<host>.<target>.json, one writer by a lock.

    {"sink":"wandb=p","id":"3f…","began":1753…,"rows":120,"position":{…},"marks":[[180,{…}]],"kept":{…},"over":[]}
`rows` and `position` belong together: what is before them is with the target for certain. A mark is a portion
that was begun: how many rows there are behind it, and up to where it was read.
"""

import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson

from trainvitals.journal.descriptors import FOLDER_FLAGS, open_regular
from trainvitals.journal.small_files import is_anothers, replace_in
from trainvitals.sinks import SinkError, Target

_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW


class SinkBusy(SinkError):
    """Another process hands the run on to this target."""


@dataclass(slots=True)
class State:
    sink: str
    id: str
    began: float
    rows: int = 0
    points: int = 0
    position: dict[str, Any] = field(default_factory=dict)
    marks: list[tuple[int, dict[str, int]]] = field(default_factory=list)
    kept: dict[str, Any] = field(default_factory=dict)
    over: list[Any] = field(default_factory=list)

    def reset(self) -> None:
        """What the target had is gone: it gets everything again."""
        self.rows, self.points, self.position, self.marks, self.over = 0, 0, {}, [], []


def state_path(run_folder: Path, host: str, target: Target) -> Path:
    return run_folder / "agent" / "sinks" / f"{host}.{target.key}.json"


def peek(path: Path) -> State | None:
    """What the file says; None where there is none that could be used."""
    with suppress(OSError, SinkError):
        folder = _open_folder(path)
        try:
            return _read(folder, path)
        finally:
            os.close(folder)
    return None


class StateFile:
    """The state of one target and run, held by this process until `close`."""

    def __init__(self, path: Path, target: Target, began: float) -> None:
        self._path, self._folder, self._lock = path, -1, -1
        try:
            with _told(path, target):
                self._folder = _open_folder(path, make=True)
                self._lock = _take(self._folder, path, target)
                self.state = _read(self._folder, path) or State(target.shown, secrets.token_hex(6), began)
        except BaseException:
            self.close()
            raise

    def save(self) -> None:
        """All of it or what was there before; a kill in between costs nothing."""
        replace_in(self._folder, self._path.name, orjson.dumps(asdict(self.state)))

    def close(self) -> None:
        for fd in (self._lock, self._folder):
            if fd >= 0:
                os.close(fd)
        self._lock = self._folder = -1


@contextmanager
def _told(path: Path, target: Target) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SinkError(f"{path.parent} cannot be written ({error.strerror}): {target.shown} keeps its place there; "
                        "run this as the user of the agent or of the run") from error  # fmt: skip


def _open_folder(path: Path, make: bool = False) -> int:
    """From folder to folder: each is the run's user's, who may at any time put a link to anything in its place. A run
    that was tidied up does not come back as a folder of ours."""
    sinks, agent, run = path.parents[:3]
    is_shared = bool(run.parent.stat().st_mode & stat.S_IWOTH)
    folder = _open_inside(str(run))
    for name in (agent.name, sinks.name):
        try:
            is_new = make and _make(name, folder)
            inner = _open_inside(name, folder)
        finally:
            os.close(folder)
        folder = inner
        if is_new and is_shared:
            _open_to_all(folder)
        is_shared = bool(os.fstat(folder).st_mode & stat.S_IWOTH)
    return folder


def _open_inside(name: str, folder: int | None = None) -> int:
    try:
        return os.open(name, FOLDER_FLAGS, dir_fd=folder)
    except NotADirectoryError:
        raise NotADirectoryError(errno.ENOTDIR, f"{name} is a link, or no folder") from None


def _make(name: str, folder: int) -> bool:
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
        return True
    return False


def _open_to_all(folder: int) -> None:
    """As one that was just made; what was put in its place may hold something."""
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        if not os.listdir(fd):
            os.fchmod(fd, 0o1777)
    finally:
        os.close(fd)


def _take(folder: int, path: Path, target: Target) -> int:
    lock = _open_ours(f".{path.name}.lock", _LOCK_FLAGS, folder, path)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise SinkBusy(f"{target.shown}: another process hands this run on to it already") from error
    return lock


def _read(folder: int, path: Path) -> State | None:
    """None where there is none yet, or one of another make."""
    with suppress(FileNotFoundError, orjson.JSONDecodeError, TypeError):
        fd = _open_ours(path.name, os.O_RDONLY | os.O_NOFOLLOW, folder, path)
        with open(fd, "rb") as file:
            content = file.read()
        return State(**orjson.loads(content))
    return None


def _open_ours(name: str, flags: int, folder: int, path: Path) -> int:
    """Another user's state would have us write wherever he says, and his lock would keep us waiting for ever."""
    fd = open_regular(name, flags, folder)
    if not is_anothers(fd, folder):
        return fd
    owner = os.fstat(fd).st_uid
    os.close(fd)
    raise SinkError(f"{path.parent / name} belongs to another user (uid {owner}) and is not followed: remove it, or "
                    "run this as that user")  # fmt: skip
