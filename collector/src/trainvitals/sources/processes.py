"""Who a process belongs to and what it runs, told by its number: the host's, as drivers give it.

process_readings(labels, [(4711, 2**30)], now)
->  [Reading("gpu", labels, {"compute_processes": 1.0, "compute_processes_memory_bytes": 2.0**30}, now),
     Reading("process", (*labels, ("pid", "4711"), ("user", "ada"), ("command", "python train.py")), {…}, now)]

Of its arguments only the script's or module's name is told: the others may hold secrets. In a container that sees
other processes than the host, a number stands for nobody.
"""

import os
import pwd
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import psutil

from trainvitals.model import Labels, Reading, Value

_PROC = "/proc"
# The kernel's first namespace has this number on every machine.
_HOST_NAMESPACE = "pid:[4026531836]"
_WITH_VALUE = frozenset({"-X", "-W", "--check-hash-based-pycs"})
MOST_LETTERS = 80
MOST_PROCESSES = 64


def process_readings(gpu: Labels, told: Sequence[tuple[int, int | None]], now: float) -> list[Reading]:
    """What computes on a GPU, as numbers and one by one. `told`: number and bytes, which may be unknown; a number may
    come again, for another part of the GPU."""
    held: dict[int, float | None] = {}
    for pid, used in told:
        before = held.get(pid, 0.0)
        held[pid] = None if used is None or before is None else before + used
    known = [used for used in held.values() if used is not None]
    sums: dict[str, Value] = {"compute_processes_memory_bytes": sum(known, 0.0)} if len(known) == len(held) else {}
    readings = [Reading("gpu", gpu, {"compute_processes": float(len(told)), **sums}, now)]
    largest = sorted(held.items(), key=lambda one: -(one[1] or 0.0))[:MOST_PROCESSES]
    return [*readings, *(_reading(gpu, pid, used, now) for pid, used in largest)]


def _reading(gpu: Labels, pid: int, used: float | None, now: float) -> Reading:
    user, words = who(pid)
    labels = (*gpu, ("pid", str(pid)), ("user", user), ("command", words))
    return Reading("process", labels, {} if used is None else {"memory_bytes": used}, now)


def who(pid: int) -> tuple[str, str]:
    """User and command; each empty where it is not known."""
    proc = psutil.PROCFS_PATH
    if proc == _PROC and not _sees_host():
        return "", ""
    folder = Path(proc, str(pid))
    try:
        user = _name(folder.stat().st_uid)
        words = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        return user, command(words) or (folder / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "", ""


def command(words: Sequence[str]) -> str:
    """`python train.py`, `python -m torch.distributed.run`, `ray::train`"""
    program = os.path.basename((words[0].split() or [""])[0]) if words else ""
    script = _script(words[1:]) if program.startswith("python") else ""
    return f"{program} {script}".strip()[:MOST_LETTERS]


def _script(arguments: Sequence[str]) -> str:
    left = iter(arguments)
    for word in left:
        if word == "-m":
            return f"-m {next(left, '')}"
        if word == "-c":
            return "-c"
        if word in _WITH_VALUE:
            next(left, "")
        elif not word.startswith("-"):
            return os.path.basename(word)
    return ""


@lru_cache(maxsize=1)
def _sees_host() -> bool:
    try:
        return os.readlink(f"{_PROC}/self/ns/pid") == _HOST_NAMESPACE
    except OSError:
        return False


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
