"""Where the journal lies and what its files are called; the names are public.

gpu/<host>/gpu_metrics_20250730_123456.jsonl
runs/<run>/training_metrics_20250730_123456.rank1.jsonl
"""

import hashlib
import os
import re
import socket
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from trainvitals.errors import SettingError

SHARED_ROOT = Path("/var/lib/trainvitals")
# A rank has one spelling: rank00 is not rank0.
_RANK = r"\.rank(0|[1-9][0-9]{0,5})"
_WHEN = r"([0-9]{8}_[0-9]{6})"
TRAINING_FILE = re.compile(rf"training_metrics_{_WHEN}(?:{_RANK})?\.jsonl\Z")
NODE_FILE = re.compile(rf"(gpu|host)_metrics_{_WHEN}\.jsonl\Z")
PROCESS_FILE = re.compile(rf"process{_RANK}\.json\Z")
EVENTS_FILE = re.compile(rf"events{_RANK}\.jsonl\Z")
INDEX_FILE = re.compile(rf".+\.index{_RANK}\.jsonl\Z")
RUN_FILE = "run.json"
# What a run says of its own end; that it was killed is the agent's to say.
ENDINGS = ("finished", "crashed", "preempted")
# An end so soon after a signal is the signal's doing.
PREEMPTION_SECONDS = 1800.0
# Those that turn the reading direction too: what follows such a name would be read backwards.
_UNSAFE = re.compile(r"[/\x00-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069]+")
_MAX_NAME_BYTES, _MAX_ENDING_BYTES = 120, 80


def find_root(environ: Mapping[str, str] = os.environ, shared: Path = SHARED_ROOT) -> Path:
    """The same answer in trainer and agent, whatever their working directories."""
    named = environ.get("TRAINVITALS_DIR")
    if named:
        return _absolute(named, "give an absolute path")
    if shared.is_dir() and os.access(shared, os.W_OK | os.X_OK):
        return shared
    state = environ.get("XDG_STATE_HOME")
    if state and Path(state).is_absolute():
        return Path(state) / "trainvitals"
    return _absolute("~/.local/state/trainvitals", "this user has no home folder, so give an absolute path")


def _absolute(path: str, fix: str) -> Path:
    # Not Path.expanduser(), which raises where nobody has that home.
    expanded = Path(os.path.expanduser(path))
    if not expanded.is_absolute():
        raise SettingError("TRAINVITALS_DIR", path, fix)
    return expanded


def host_name(*, is_simulated: bool = False) -> str:
    """The bare name: what Prometheus has as `instance` and the journal as a folder. Simulated readings never stand
    among real ones."""
    name = safe_name(os.environ.get("TRAINVITALS_HOSTNAME") or socket.gethostname().partition(".")[0])
    return f"{name}-simulated" if is_simulated else name


def boot_id() -> str:
    """Names this start of this kernel, the same in all its containers."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return host_name()


def boot_time() -> float:
    """When this kernel started, by today's clock."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def safe_name(name: str, ending: str = "") -> str:
    """`name` as one path component: nothing climbs out of the folder, nothing hides in it. Where it is too long it is
    `name` that is cut, and `ending` that stays."""
    tail = _encoded(ending)
    if len(tail) > _MAX_ENDING_BYTES:
        tail = f"-{hashlib.sha256(tail).hexdigest()[:16]}".encode()
    head = _encoded(name).lstrip(b".")[: _MAX_NAME_BYTES - len(tail)].decode("utf-8", "ignore")
    return (head or "unnamed") + tail.decode()


def _encoded(text: str) -> bytes:
    return _UNSAFE.sub("_", text).strip().encode("utf-8", "replace")


def gpu_folder(root: Path, host: str) -> Path:
    return root / "gpu" / host


def run_folder(root: Path, run: str) -> Path:
    return root / "runs" / run


def is_folder(path: Path) -> bool:
    """A folder itself. A link is another name for one; in a folder like /tmp the kernel may let nobody follow it."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def make_shared(folder: Path, like: Path | None = None) -> None:
    """A folder that other users write into too, where the one above it (or `like`) is of that kind:
    trainers and agent seldom run as the same user."""
    folder.mkdir(parents=True, exist_ok=True)
    with suppress(OSError):
        if (like or folder.parent).stat().st_mode & stat.S_IWOTH:
            _open_to_all(folder)


def _open_to_all(folder: Path) -> None:
    """What another user put there as a link leads to what is nobody's to open."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchmod(fd, 0o1777)
    finally:
        os.close(fd)


def stamped(prefix: str, suffix: str, when: float) -> str:
    return f"{prefix}_{time.strftime('%Y%m%d_%H%M%S', time.gmtime(when))}{suffix}"


def training_suffix(rank: int, world_size: int) -> str:
    return f".rank{rank}.jsonl" if world_size > 1 else ".jsonl"


def children(folder: Path) -> list[Path]:
    """Nothing where it cannot be read."""
    with suppress(OSError):
        return list(folder.iterdir())
    return []


def index_file(host: str, rank: int) -> str:
    return f"{host}.index.rank{rank}.jsonl"


def reports(run_folder: Path) -> list[Path]:
    """What agents saw of a run: a file of each host's."""
    files = sorted(children(run_folder / "agent"))
    return [path for path in files if path.suffix == ".jsonl" and not INDEX_FILE.match(path.name)]


def training_rank(file_name: str) -> int | None:
    """The rank that wrote a training file, None where the name is not one's."""
    match = TRAINING_FILE.match(file_name)
    return None if match is None else int(match[2] or 0)


def training_files(folder: Path) -> dict[int, list[Path]]:
    """Of each rank, in the order of their times."""
    found: dict[int, list[Path]] = {}
    for path in sorted(children(folder)):
        if (rank := training_rank(path.name)) is not None:
            found.setdefault(rank, []).append(path)
    return found


def rank_of(file_name: str) -> int | None:
    """The rank whose file it is, of those that a rank writes as it goes."""
    match = PROCESS_FILE.match(file_name) or EVENTS_FILE.match(file_name)
    return training_rank(file_name) if match is None else int(match[1])
