"""The ranks of this machine: those on its kernel, else those that went down with it, of which nobody could tell.

    near_ranks(folder, {path: {"boot_id": "…", "host": "gpu1", …}}, "gpu1")  ->  {0: path}
After a power cut or a panic their boot id is no longer the kernel's, and so is that of another machine's live ranks on
shared storage, whose locks need not show. It takes proof that such a rank ran here: this machine's name, or a disk that
it alone writes to.
"""

import os
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from trainvitals.journal import layout, runs, slow
from trainvitals.journal.record import Record

# What was silent for longer before the machine started is an old journal, or one that was copied here.
LONGEST_SECONDS = 86400.0
# A machine that lends its disk to others (NFS) gives them their locks back in the first minutes after its start.
RECLAIM_SECONDS = 300.0


def near_ranks(folder: Path, processes: Mapping[Path, Record | None], host: str) -> dict[int, Path]:
    """Only of these is it certain that one whose lock does not show is dead."""
    boot_id = layout.boot_id()
    here = {rank: path for path, told in processes.items() if told and told.get("boot_id") == boot_id
            if (rank := layout.rank_of(path.name)) is not None}  # fmt: skip
    return here or _lost_ranks(folder, processes, host)


def is_settled() -> bool:
    """Whether the answer is no longer another one because the machine has been up for longer."""
    return layout.boot_time() + RECLAIM_SECONDS <= time.time()


def _lost_ranks(folder: Path, processes: Mapping[Path, Record | None], host: str) -> dict[int, Path]:
    """Of a run that has no rank on this kernel."""
    is_local, booted = _is_local(folder.parent), layout.boot_time()
    near = {path: told.get("host") == host for path, told in processes.items() if told}
    return {rank: path for path, is_named in near.items() if is_named or is_local
            if (rank := layout.rank_of(path.name)) is not None and _is_lost(path, rank, is_named, booted)}  # fmt: skip


def _is_lost(path: Path, rank: int, is_named: bool, booted: float) -> bool:
    last = _last_written(path.parent, rank)
    if last is None or not booted - LONGEST_SECONDS <= last.st_mtime < booted:
        return False
    return (is_named or _was_written_here(last)) and not runs.is_alive(path)


def _was_written_here(last: os.stat_result) -> bool:
    """By a container, whose name is its own. A copy keeps the time of the writing and has another of its own."""
    return last.st_ctime_ns == last.st_mtime_ns and is_settled()


def _last_written(folder: Path, rank: int) -> os.stat_result | None:
    """Of the rank's own files the one that was written to last."""
    try:
        found = [path.stat() for path in folder.iterdir() if layout.rank_of(path.name) == rank]
    except OSError:
        return None
    return max(found, key=lambda status: status.st_mtime_ns, default=None)


@lru_cache(maxsize=16)
def _is_local(folder: Path) -> bool:
    return not slow.is_slow(folder)
