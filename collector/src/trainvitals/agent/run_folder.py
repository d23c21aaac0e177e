"""What a run's folder tells, read as it stands: which ranks are ours, their GPUs, what was reported of them."""

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from trainvitals.agent.run_state import as_label
from trainvitals.journal import layout
from trainvitals.journal.record import Record
from trainvitals.journal.tail import Tail


def is_run(folder: Path) -> bool:
    """A name that is no text could be shown nowhere; nothing of ours makes one."""
    return folder.is_dir() and not folder.name.startswith(".") and folder.name == as_label(folder.name)


def own_ranks(processes: Mapping[Path, Record | None], boot_id: str) -> dict[int, Path]:
    """Ranks on this kernel; all of them where rank 0 is, whose agent reads for the whole run."""
    here = {_rank(path): path for path, told in processes.items() if told and told.get("boot_id") == boot_id}
    if 0 not in here:
        return here
    return {_rank(path): path for path, told in processes.items() if told}


def gpus_of(process: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Number and UUID of each GPU that a rank said it uses."""
    told = process.get("gpus")
    listed = told if isinstance(told, list) else []
    return [(as_label(gpu.get("gpu")), as_label(gpu.get("uuid"))) for gpu in listed if isinstance(gpu, dict)]


def reported_killed(folder: Path, host: str) -> set[int]:
    """The ranks of which this host's agent has said so already, before a restart perhaps."""
    reports = folder / "agent" / f"{host}.jsonl"
    reader = Tail()
    reader.follow(reports)
    return {line["rank"] for line in reader.read(reports)
            if line.get("status") == "killed" and isinstance(line.get("rank"), int)}  # fmt: skip


def last_change(folder: Path) -> float:
    with suppress(OSError):
        return max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
    return time.time()


def _rank(process_file: Path) -> int:
    match = layout.PROCESS_FILE.match(process_file.name)
    assert match is not None
    return int(match[1])
