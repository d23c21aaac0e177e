"""What a run's folder tells, read as it stands: which ranks are ours, their GPUs, what was reported of them."""

import logging
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from trainvitals.agent.run_state import as_label
from trainvitals.journal import layout
from trainvitals.journal.record import Record, seconds
from trainvitals.journal.tail import Tail

log = logging.getLogger("trainvitals.runs")


def is_run(folder: Path) -> bool:
    """A name that is no text could be shown nowhere; nothing of ours makes one."""
    return layout.is_folder(folder) and not folder.name.startswith(".") and folder.name == as_label(folder.name)


class Shelf:
    """The folder that the runs' folders lie in. That it cannot be listed is told once for each reason."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._problem = folder, ""
        self.errors = 0

    def runs(self) -> list[Path] | None:
        try:
            found = [entry for entry in self._folder.iterdir() if is_run(entry)]
        except FileNotFoundError:
            return None
        except OSError as error:
            self._tell(error.strerror or "?")
            return None
        self._problem = ""
        return found

    def _tell(self, problem: str) -> None:
        if problem != self._problem:
            self.errors += 1
            log.warning("%s cannot be listed (%s): new runs are not seen", self._folder, problem)
        self._problem = problem


def unreadable(folder: Path) -> Path | None:
    """What this process is not allowed to read of a run: its folder, or one of its files."""
    try:
        files = [path for path in folder.iterdir() if layout.rank_of(path.name) is not None]
    except PermissionError:
        return folder
    except OSError:
        return None
    return next((path for path in files if not os.access(path, os.R_OK) and os.path.exists(path)), None)


class Contents:
    """Small files' records, read again only when the file changed."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[int, int, int], Record | None]] = {}

    def get(self, path: Path, read: Callable[[Path], Record | None]) -> Record | None:
        try:
            status = path.stat()
        except OSError:
            return None
        identity = (status.st_mtime_ns, status.st_ino, status.st_size)
        known, content = self._known.get(path, (None, None))
        if identity != known or content is None:
            content = read(path)
            self._known[path] = (identity, content)
        return content

    def forget(self, folder: Path) -> None:
        self._known = {path: kept for path, kept in self._known.items() if folder not in path.parents}


def own_ranks(processes: Mapping[Path, Record | None], here: dict[int, Path]) -> dict[int, Path]:
    """Those that are here; all of them where rank 0 is, whose agent reads for the whole run."""
    if 0 not in here:
        return here
    return {_rank(path): path for path, told in processes.items() if told}


def places(ranks: Mapping[int, Path], processes: Mapping[Path, Record | None],
           numbers: Mapping[str, str]) -> tuple[dict[int, list[tuple[str, str]]], dict[int, str]]:  # fmt: skip
    """GPUs and machine of each rank."""
    told = {rank: processes[path] or {} for rank, path in ranks.items()}
    return ({rank: gpus_of(process, numbers) for rank, process in told.items()},
            {rank: as_label(process.get("host")) for rank, process in told.items()})  # fmt: skip


def gpus_of(process: Mapping[str, Any] | None, numbers: Mapping[str, str]) -> list[tuple[str, str]]:
    """Number and UUID of each GPU that a rank said it uses, each once. A trainer that knows the UUID alone
    has its number from `numbers`."""
    told = (process or {}).get("gpus")
    listed = [gpu for gpu in told if isinstance(gpu, dict)] if isinstance(told, list) else []
    uuids = [as_label(gpu.get("uuid")) for gpu in listed]
    named = [(as_label(gpu.get("gpu", numbers.get(uuid, ""))), uuid) for gpu, uuid in zip(listed, uuids, strict=True)]
    return list(dict.fromkeys(named))


def reported_killed(folder: Path, host: str) -> dict[tuple[int, str], float]:
    """The ranks of which this host's agent has said so already, before a restart perhaps, each with when it started,
    and when that was said."""
    reports = folder / "agent" / f"{host}.jsonl"
    reader = Tail()
    reader.follow(reports)
    killed = (line for line in reader.read(reports) if line.get("status") == "killed")
    return {(line["rank"], as_label(line.get("started"))): seconds(line.get("timestamp")) or 0.0
            for line in killed if isinstance(line.get("rank"), int)}  # fmt: skip


def last_change(folder: Path) -> float:
    """By the run itself: what agents write of it later is none."""
    with suppress(OSError):
        return max(path.stat().st_mtime for path in (folder, *folder.iterdir()) if path.name != "agent")
    return time.time()


def _rank(process_file: Path) -> int:
    match = layout.PROCESS_FILE.match(process_file.name)
    assert match is not None
    return int(match[1])
