"""What a run's folder tells, read as it stands: which ranks are ours, their GPUs, what was reported of them."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from trainvitals.agent.run_state import as_label
from trainvitals.journal import layout
from trainvitals.journal.record import Record
from trainvitals.journal.tail import Tail


def is_run(folder: Path) -> bool:
    """A name that is no text could be shown nowhere; nothing of ours makes one."""
    is_ours = folder.is_dir() and not folder.is_symlink()  # a link is another name for a run that is there
    return is_ours and not folder.name.startswith(".") and folder.name == as_label(folder.name)


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


def own_ranks(processes: Mapping[Path, Record | None], boot_id: str) -> dict[int, Path]:
    """Ranks on this kernel; all of them where rank 0 is, whose agent reads for the whole run."""
    here = ranks_here(processes, boot_id)
    if 0 not in here:
        return here
    return {_rank(path): path for path, told in processes.items() if told}


def ranks_here(processes: Mapping[Path, Record | None], boot_id: str) -> dict[int, Path]:
    """Ranks on this kernel: only of these is it certain that one whose lock does not show is dead."""
    return {_rank(path): path for path, told in processes.items() if told and told.get("boot_id") == boot_id}


def gpus_of(process: Mapping[str, Any] | None, numbers: Mapping[str, str]) -> list[tuple[str, str]]:
    """Number and UUID of each GPU that a rank said it uses, each once. A trainer that knows the UUID alone
    has its number from `numbers`."""
    told = (process or {}).get("gpus")
    listed = [gpu for gpu in told if isinstance(gpu, dict)] if isinstance(told, list) else []
    uuids = [as_label(gpu.get("uuid")) for gpu in listed]
    named = [(as_label(gpu.get("gpu", numbers.get(uuid, ""))), uuid) for gpu, uuid in zip(listed, uuids, strict=True)]
    return list(dict.fromkeys(named))


def reported_killed(folder: Path, host: str) -> set[tuple[int, str]]:
    """The ranks of which this host's agent has said so already, before a restart perhaps, and when each started."""
    reports = folder / "agent" / f"{host}.jsonl"
    reader = Tail()
    reader.follow(reports)
    return {(line["rank"], as_label(line.get("started"))) for line in reader.read(reports)
            if line.get("status") == "killed" and isinstance(line.get("rank"), int)}  # fmt: skip


def last_change(folder: Path) -> float:
    with suppress(OSError):
        return max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
    return time.time()


def _rank(process_file: Path) -> int:
    match = layout.PROCESS_FILE.match(process_file.name)
    assert match is not None
    return int(match[1])
