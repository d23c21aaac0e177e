"""A run's folder: claiming a name, holding a rank, and telling from outside whether it lives.

A rank is alive while its process holds a lock on process.rankN.json. The kernel drops it however the process ends, and
shows it across containers. Closing any other descriptor of that file would drop what tells the process's number, so
within its own process the file is only ever reached through `Rank`.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainvitals.errors import JournalError, RunInUse
from trainvitals.journal import layout, locks, slow
from trainvitals.journal.claiming import claiming
from trainvitals.journal.descriptors import close_if, identity, moved_up, open_regular
from trainvitals.journal.record import decode, encode, timestamp
from trainvitals.journal.small_files import is_foreign, replace

_RUNNING = "run {!r} is running already: choose another run_id, or end it"
_MAX_BYTES = 1 << 20
# As torchrun makes one up where it is given none; eight digits tell them apart, and can be read out.
_RANDOM_ID = re.compile(r"\A([0-9a-f]{8})(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
# Something that is no file, put there under a file's name, must not keep the reader waiting.
_READ_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
_held: dict[tuple[int, int], int] = {}


@dataclass(slots=True)
class Rank:
    """This process as a rank of a run, for as long as it lives or until `release`."""

    root: Path
    run: str
    rank: int
    world_size: int
    fd: int = field(repr=False)
    facts: dict[str, Any] = field(default_factory=dict, repr=False)
    pid: int = field(default_factory=os.getpid, repr=False)
    _file: tuple[int, int] | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._file = identity(self.fd)

    @property
    def folder(self) -> Path:
        return layout.run_folder(self.root, self.run)

    @property
    def is_mine(self) -> bool:
        """False in a forked worker, which has a copy of everything but the rank."""
        return self.fd >= 0 and self.pid == os.getpid()

    def tell(self, **facts: Any) -> None:
        """What is known of this process only later, as the GPUs that it uses."""
        if self.is_mine:
            self.facts |= facts
            content = encode(self.facts)
            # Longer than before, so that no reader ever meets half of it.
            if identity(self.fd) == self._file:
                os.pwrite(self.fd, content, 0)

    def release(self) -> None:
        if self.is_mine:
            fd, self.fd = self.fd, -1
            if self._file and _held.get(self._file) == fd:
                del _held[self._file]
                if identity(fd) == self._file:
                    locks.give_up(fd)
                    os.close(fd)


def claim(root: Path, name: str, *, rank: int = 0, world_size: int = 1, run_id: str = "", resume: bool = False,
          facts: Mapping[str, Any] | None = None, environ: Mapping[str, str] = os.environ) -> Rank:  # fmt: skip
    """Takes a run's folder for this rank; `facts` go into process.rankN.json beside who and where."""
    wanted = run_id or environ.get("TRAINVITALS_RUN_ID")
    me = {"host": layout.host_name(), "boot_id": layout.boot_id(), "pid": os.getpid(),
          "launcher": _launcher(), "rank": rank, "world_size": world_size, "started": timestamp(),
          **(facts or {})}  # fmt: skip
    try:
        layout.make_shared(root / "runs")
        with claiming(root):
            run = layout.safe_name(wanted) if wanted else _free_name(root, name, me, resume, environ)
            folder = layout.run_folder(root, run)
            with _made(folder):
                fd = _hold(folder / f"process.rank{rank}.json", me, run)
    except OSError as error:
        fix = "choose another journal folder with TRAINVITALS_DIR"
        raise JournalError(f"{error.filename or root} cannot be written ({error.strerror}): {fix}") from error
    return Rank(root, run, rank, world_size, fd, me)


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """The run's user owns it; the agent, another user, writes into a folder in it. A disk that is full may still take
    a folder, and one more each time that it is tried again: they go."""
    is_new = not folder.exists()
    try:
        with suppress(FileExistsError):
            folder.mkdir()
        _refuse_foreign(folder)
        layout.make_shared(folder / "agent", like=folder.parent)
        yield
    except OSError:
        if is_new:
            _clear(folder)
        raise


def _refuse_foreign(folder: Path) -> None:
    """What another user made he may have filled with links, and may fill at any time."""
    if is_foreign(folder):
        owner = os.lstat(folder).st_uid
        raise JournalError(f"the run folder {folder} belongs to another user (uid {owner}; this process writes as uid "
                           f"{os.geteuid()}) or is no folder: choose another run_id, or start all ranks of the run "
                           "as the user who owns it")  # fmt: skip


def _clear(folder: Path) -> None:
    with suppress(OSError):
        for path in process_files(folder):
            if not path.stat().st_size:
                path.unlink()
        folder.joinpath("agent").rmdir()
        folder.rmdir()


def is_alive(process_file: Path) -> bool:
    return holder(process_file) is not None


def holder(process_file: Path) -> int | None:
    """The process that holds the file's lock, by its number in our own namespace (0: not visible
    from here); None where the rank has ended. Asks only; never takes the lock."""
    try:
        fd, mine = _open_to_read(process_file)
    except OSError:
        return None
    try:
        return os.getpid() if mine else locks.holder(fd)
    finally:
        if not mine:
            os.close(fd)


def read_process(process_file: Path) -> dict[str, Any] | None:
    """What a rank said of itself; None while it has not."""
    try:
        fd, mine = _open_to_read(process_file)
    except OSError:
        return None
    try:
        return _parse(os.pread(fd, _MAX_BYTES, 0))
    except OSError:
        return None
    finally:
        if not mine:
            os.close(fd)


def read_json(path: Path) -> dict[str, Any] | None:
    """A small file such as run.json; None where it is missing or broken."""
    try:
        fd = open_regular(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        return _parse(os.pread(fd, _MAX_BYTES, 0))
    except OSError:
        return None
    finally:
        os.close(fd)


def write_run(folder: Path, run: Mapping[str, Any]) -> None:
    """Rank 0's alone. Readers see the old file or the new one."""
    replace(folder / layout.RUN_FILE, encode(run))


def _parse(content: bytes) -> dict[str, Any] | None:
    try:
        return decode(content)
    except ValueError:
        return None


def _launch_id(environ: Mapping[str, str]) -> str:
    """One on all nodes where the launcher has one. torchrun's default id, "none", names nothing."""
    for key in ("SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", "RAY_JOB_ID"):
        value = environ.get(key, "")
        if value and value != "none":
            step = environ.get("SLURM_STEP_ID", "0") if key == "SLURM_JOB_ID" else "0"
            # One job may run several steps, one after another or at once.
            return _RANDOM_ID.sub(r"\1", value) if step == "0" else f"{value}.{step}"
    return ""


def _launcher() -> str:
    """The parent process, so that the local ranks of one launch know each other."""
    parent = os.getppid()
    try:
        status = Path(f"/proc/{parent}/stat").read_text(encoding="utf-8", errors="replace")
        started = status.rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        started = "0"
    return f"{layout.boot_id()}:{parent}:{started}"


def _free_name(root: Path, name: str, me: Mapping[str, Any], resume: bool, environ: Mapping[str, str]) -> str:
    launch = _launch_id(environ)
    first = layout.safe_name(name, f"-{launch}" if launch else "")
    number = 1
    while True:
        candidate = first if number == 1 else f"{first}-{number}"
        folder = layout.run_folder(root, candidate)
        # A launcher starts its ranks again under the same id: theirs is any folder where nobody has their place.
        is_free = not is_alive(folder / f"process.rank{me['rank']}.json") if launch else not folder.exists()
        if (resume or is_free or _is_ours(folder, me)) and not is_foreign(folder):
            return candidate
        number += 1


def _is_ours(folder: Path, me: Mapping[str, Any]) -> bool:
    """A folder that a living rank of the same launch claimed, in which my rank is still free."""
    if folder.joinpath(f"process.rank{me['rank']}.json").exists():
        return False
    return any(is_alive(path) and _are_of_one_launch(read_process(path) or {}, me) for path in process_files(folder))


def _are_of_one_launch(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Children of one process, or one the child of the other: Lightning's rank 0 starts the rest by itself."""
    launchers = [str(rank.get("launcher")) for rank in (one, other)]
    parents = [launcher.rpartition(":")[0] for launcher in launchers]
    processes = [f"{rank.get('boot_id')}:{rank.get('pid')}" for rank in (other, one)]
    return launchers[0] == launchers[1] or parents[0] == processes[0] or parents[1] == processes[1]


def process_files(folder: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(path for path in folder.iterdir() if layout.PROCESS_FILE.match(path.name))
    return []


def _hold(path: Path, content: Mapping[str, Any], run: str) -> int:
    if _is_held_here(path):
        raise RunInUse(_RUNNING.format(run))
    fd = moved_up(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644))
    try:
        if not locks.take(fd):
            raise RunInUse(_RUNNING.format(run))
        os.ftruncate(fd, 0)
        os.pwrite(fd, encode(content), 0)
    except BaseException:
        os.close(fd)
        raise
    if file := identity(fd):
        _held[file] = fd
        # Some file systems of others never hear that such a lock is gone when its process is.
        if not slow.is_slow(path.parent):
            locks.take_for_open_file(fd)
    return fd


def _is_held_here(path: Path) -> bool:
    with suppress(FileNotFoundError):
        return _held_as(path) is not None
    return False


def _held_as(path: Path) -> int | None:
    """The number by which this process holds the file; one that went to another file holds nothing any more."""
    status = os.stat(path)
    known = (status.st_dev, status.st_ino)
    fd = _held.get(known)
    return fd if fd is not None and identity(fd) == known else None


def _open_to_read(path: Path) -> tuple[int, bool]:
    """A descriptor and whether it is this process's own lock, which closing would drop."""
    held = _held_as(path)
    if held is not None:
        return held, True
    return os.open(path, _READ_FLAGS), False


def _leave() -> None:
    """A forked worker that outlives the run is not the run: it keeps no hold on what the run's lock lies on."""
    for file, fd in _held.items():
        close_if(fd, file)
    _held.clear()


os.register_at_fork(after_in_child=_leave)
