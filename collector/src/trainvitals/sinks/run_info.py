"""What a run says of itself and how it stands, as run.json, its ranks' files and the agents' reports tell together."""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from trainvitals.journal import layout, runs
from trainvitals.journal.near import near_ranks
from trainvitals.journal.record import Record, seconds
from trainvitals.journal.tail import Tail

SILENT_SECONDS = 3600.0


class RunInfo(NamedTuple):
    run: str
    name: str
    status: str
    began: float
    ended: float | None = None
    error: str = ""
    config: Mapping[str, Any] = {}
    tags: tuple[str, ...] = ()
    # Of each rank that uses one GPU alone: its host, and the GPU's number (where it was told) and uuid.
    places: Mapping[int, tuple[str, str, str]] = {}
    # What the series of such a rank's GPU are called, as gpu_0; filled in as it becomes known.
    gpus: Mapping[int, str] = {}
    # The GPUs that the ranks of a host named, by uuid.
    hosts: Mapping[str, frozenset[str]] = {}
    # Where rank 0 runs, whose GPUs go by their numbers alone.
    main_host: str = ""

    @property
    def is_over(self) -> bool:
        return self.status != "running"


def read(folder: Path) -> RunInfo:
    told = runs.read_json(folder / layout.RUN_FILE) or {}
    ranks = _ranks(folder)
    name, config = told.get("name"), told.get("config")
    status = _status(folder, str(told.get("status", "")), ranks)
    started = told.get("start") or next((process.get("started") for process in ranks.values()), None)
    return RunInfo(
        run=folder.name, name=str(name) if name else folder.name, status=status,
        began=seconds(started) or _touched(folder), ended=_ended(folder, told.get("end"), status),
        error=str(told.get("error") or ""), config=config if isinstance(config, dict) else {},
        tags=tuple(str(tag) for tag in told.get("tags") or ()) if isinstance(told.get("tags"), list) else (),
        places=_places(ranks), hosts=_hosts(ranks), main_host=_host(ranks.get(0, {})))  # fmt: skip


def is_ours(folder: Path) -> bool:
    """Whether this node is to hand the run on: rank 0 is or was here, or, where storage is not shared, any rank."""
    ranks = _ranks(folder)
    near = _near(folder, ranks)
    return 0 in near if 0 in ranks else bool(near)


def _near(folder: Path, ranks: Mapping[int, Mapping[str, Any]]) -> dict[int, Path]:
    processes = {folder / f"process.rank{rank}.json": dict(told) for rank, told in ranks.items()}
    return near_ranks(folder, processes, layout.host_name())


def is_alive(folder: Path) -> bool:
    return any(runs.is_alive(path) for path in runs.process_files(folder))


def last_written(folder: Path) -> float:
    """When one of the run's own files was last written to."""
    return max((_touched(path) for path in folder.iterdir() if path.is_file()), default=0.0)


def _ranks(folder: Path) -> dict[int, dict[str, Any]]:
    found = ((layout.PROCESS_FILE.match(path.name), runs.read_process(path)) for path in runs.process_files(folder))
    return {int(match[1]): told for match, told in found if match and told}


def _status(folder: Path, told: str, ranks: Mapping[int, Mapping[str, Any]]) -> str:
    if is_alive(folder):
        return "running"
    if told in layout.ENDINGS:
        return "crashed" if any(_has_crashed(folder, rank, process) for rank, process in ranks.items()) else told
    # Elsewhere a lock need not show: there the word of that host's agent counts, or a long silence.
    silent = time.time() - last_written(folder) > SILENT_SECONDS
    return _how_gone(folder) if _near(folder, ranks) or silent or _was_reported(folder, ranks) else "running"


def _has_crashed(folder: Path, rank: int, process: Mapping[str, Any]) -> bool:
    """In the life that it is in: before it was resumed it may have crashed, too."""
    ends = (line for line in _lines([folder / f"events.rank{rank}.jsonl"]) if line.get("event") == "end")
    began = seconds(process.get("started")) or 0.0
    return any(end.get("status") == "crashed" and (seconds(end.get("timestamp")) or 0.0) >= began for end in ends)


def _how_gone(folder: Path) -> str:
    """A signal that a rank told of not long before is why."""
    since = last_written(folder) - layout.PREEMPTION_SECONDS
    signals = (line for line in _lines(folder.glob("events.rank*.jsonl")) if line.get("event") == "signal")
    return "preempted" if any((seconds(line.get("timestamp")) or 0.0) > since for line in signals) else "killed"


def _was_reported(folder: Path, ranks: Mapping[int, Mapping[str, Any]]) -> bool:
    started = {(rank, process.get("started")) for rank, process in ranks.items()}
    reports = (line for line in _lines(layout.reports(folder)) if line.get("status") == "killed")
    return any((line.get("rank"), line.get("started")) in started for line in reports)


def _lines(paths: Iterable[Path]) -> Iterator[Record]:
    with suppress(OSError):
        for path in paths:
            reader = Tail()
            reader.follow(path)
            yield from reader.read(path)


def _ended(folder: Path, told: object, status: str) -> float | None:
    return None if status == "running" else seconds(told) or last_written(folder)


def _gpus(process: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    told = process.get("gpus")
    return [gpu for gpu in told if isinstance(gpu, dict)] if isinstance(told, list) else []


def _places(ranks: Mapping[int, Mapping[str, Any]]) -> dict[int, tuple[str, str, str]]:
    used = ((rank, _host(process), _gpus(process)) for rank, process in ranks.items())
    return {rank: (host, str(gpus[0].get("gpu", "")), str(gpus[0].get("uuid", "")))
            for rank, host, gpus in used if len(gpus) == 1}  # fmt: skip


def _host(process: Mapping[str, Any]) -> str:
    return layout.safe_name(str(process.get("host") or ""))


def _hosts(ranks: Mapping[int, Mapping[str, Any]]) -> dict[str, frozenset[str]]:
    """A host of which no rank says what it uses stands for all its GPUs."""
    hosts: dict[str, frozenset[str]] = {}
    for process in ranks.values():
        uuids = frozenset(str(gpu["uuid"]) for gpu in _gpus(process) if gpu.get("uuid"))
        hosts[_host(process)] = hosts.get(_host(process), frozenset()) | uuids
    return hosts


def _touched(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0
