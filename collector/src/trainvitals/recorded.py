"""What a run's folder holds, as one stream a file of what an engine takes, each with its time.

read(Path("runs/gemma")).streams   ->  iterators of Item, each in the order of time
node_items(journal)                ->  the same of the machines' own lines, at that time or at all
"""

import itertools
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from trainvitals.agent.beside import COUNTS, FILESYSTEMS, SOURCE_UP
from trainvitals.agent.node_log import carried, read_lines
from trainvitals.detect.engine import Engine
from trainvitals.journal import layout
from trainvitals.journal.node_events import EVENTS, OLDER_EVENTS
from trainvitals.journal.record import Record, as_number, decode, seconds
from trainvitals.journal.runs import process_files, read_json, read_process
from trainvitals.journal.tail import Tail

# A file that begins so long after the one before it ended was begun by another process.
RESTART_SECONDS = 60.0
# Machines' lines count from so long before a run to so long after its end, or after the last word of one without end.
AROUND_SECONDS, UNENDED_SECONDS = 600.0, 3600.0
LAST_BYTES = 1 << 16
# A GPU of which nothing was written for so long, while so many lines of another were, is gone.
GONE_SECONDS, GONE_LINES = 10.0, 3


class Item(NamedTuple):
    when: float
    method: Callable[..., Any]
    arguments: tuple[Any, ...]

    def give(self, engine: Engine) -> None:
        self.method(engine, *self.arguments)


class Moment(NamedTuple):
    when: float
    step: float
    file: Path


class Seen(NamedTuple):
    """A GPU and the times of its last lines."""

    gpu: str
    lines: deque[float]


@dataclass
class Recorded:
    run: str
    info: Record
    gpus: dict[int, list[str]]
    hosts: dict[int, str]
    # Of each rank, when the process that had it last was started.
    started: dict[int, float]
    # The folders of its machines' own lines.
    nodes: list[Path]
    streams: list[Iterator[Item]] = field(default_factory=list)
    began: float = float("inf")
    last: float = 0.0


@dataclass
class Journal:
    """`nodes`: the folders of machines that are judged all the time, and not around a run alone."""

    runs: list[Recorded] = field(default_factory=list)
    nodes: list[Path] = field(default_factory=list)


def read(folder: Path) -> Recorded:
    folder = folder.resolve()
    told = {rank: process for file in process_files(folder)
            if (rank := layout.rank_of(file.name)) is not None and (process := read_process(file))}  # fmt: skip
    gpus = {rank: [str(gpu.get("uuid", "")) for gpu in process.get("gpus") or [] if isinstance(gpu, dict)]
            for rank, process in told.items()}  # fmt: skip
    hosts = {rank: str(process["host"]) for rank, process in told.items() if process.get("host")}
    root = folder.parent.parent if folder.parent.name == "runs" else folder
    started = {rank: seconds(process.get("started")) or 0.0 for rank, process in told.items()}
    nodes = _nodes(root, set(hosts.values()))
    found = Recorded(folder.name, read_json(folder / layout.RUN_FILE) or {}, gpus, hosts, started, nodes)
    found.streams = list(_streams(folder, found, max(1, len(told))))
    return found


def _streams(folder: Path, run: Recorded, ranks: int) -> Iterator[Iterator[Item]]:
    files = sorted(folder.iterdir())
    mine: dict[int, list[Path]] = {}
    for file in files:
        if (rank := layout.training_rank(file.name)) is not None:
            mine.setdefault(rank, []).append(file)
            _note_span(run, file)
    yield from (_training(run, rank, of_rank, run.started.get(rank, 0.0)) for rank, of_rank in mine.items())
    for file in files:
        if match := layout.EVENTS_FILE.match(file.name):
            yield _events(run.run, int(match[1]), file, ranks)
    for file in layout.reports(folder):
        yield _statuses(run.run, file)


def _note_span(run: Recorded, file: Path) -> None:
    if (first := _first(file)) is not None:
        run.began, run.last = min(run.began, first), max(run.last, _last(file))


def _first(file: Path) -> float | None:
    return next((when for record in _records(file) if (when := seconds(record.get("timestamp")))), None)


def _last(file: Path) -> float:
    with file.open("rb") as lines:
        lines.seek(max(0, file.stat().st_size - LAST_BYTES))
        ends = lines.read().splitlines()
    for line in reversed(ends):
        with suppress(ValueError):
            if when := seconds(decode(line).get("timestamp")):
                return when
    return 0.0


def _records(file: Path) -> Iterator[Record]:
    tail = Tail()
    tail.follow(file)
    while records := tail.read(file):
        yield from records


def _timed(file: Path) -> Iterator[tuple[float, Record]]:
    """A line without a time is of the time of the one before."""
    when = 0.0
    for record in _records(file):
        when = max(when, seconds(record.get("timestamp")) or when)
        yield when, record


def _training(run: Recorded, rank: int, files: Sequence[Path], started: float) -> Iterator[Item]:
    """Life by life: between two nobody waits, nor after the last word of a run of which no machine tells more."""
    begun, before = True, Moment(0.0, 0, files[0])
    for moment, record in _moments(files):
        if not begun and _is_new_life(before, moment, started):
            yield Item(before.when, Engine.ended, (run.run, "", before.when))
            begun = True
        if begun:
            yield Item(moment.when, Engine.begin, (run.run, moment.when))
            begun = False
        before = moment
        yield Item(moment.when, Engine.training, (run.run, rank, (record,)))
    if not run.nodes and before.when >= run.last:
        yield Item(before.when, Engine.ended, (run.run, "", before.when))


def _moments(files: Sequence[Path]) -> Iterator[tuple[Moment, Record]]:
    for file in files:
        for when, record in _timed(file):
            yield Moment(when, as_number(record.get("step")) or 0.0, file), record


def _is_new_life(before: Moment, after: Moment, started: float) -> bool:
    """Another file after a while, steps that are done again after a while, or what process.rankN.json says."""
    waited = after.when - before.when
    return (before.when < started <= after.when
            or (waited > RESTART_SECONDS and (after.file != before.file or after.step <= before.step)))  # fmt: skip


def _events(run: str, rank: int, file: Path, ranks: int) -> Iterator[Item]:
    for when, record in _timed(file):
        yield Item(when, Engine.run_event, (run, rank, record))
        status = str(record.get("status", ""))
        if record.get("event") == "end" and (status == "crashed" or rank == 0 or ranks == 1):
            yield Item(when, Engine.ended, (run, status, when, str(record.get("error") or "")))


def _statuses(run: str, file: Path) -> Iterator[Item]:
    for when, record in _timed(file):
        if record.get("status") == "killed":
            yield Item(when, Engine.ended, (run, "killed", when, "", as_rank(record.get("rank"))))


def as_rank(value: object) -> int | None:
    return value if isinstance(value, int) else None


def node_items(journal: Journal) -> Iterator[Iterator[Item]]:
    """Of each machine once: all its lines, or those around the runs that name it, or beside which they lie."""
    nodes = {node.resolve(): (0.0, math.inf) for node in journal.nodes}
    for run in journal.runs:
        since = run.began - AROUND_SECONDS
        until = run.last + (0.0 if run.info.get("end") else UNENDED_SECONDS) + AROUND_SECONDS
        for folder in run.nodes:
            begun, ended = nodes.get(folder, (since, until))
            nodes[folder] = min(begun, since), max(ended, until)
    for folder, (since, until) in sorted(nodes.items()):
        yield _within(_gpu_items(folder, since), since, until)
        yield _within(_host_items(folder, since), since, until)
        for name in (OLDER_EVENTS, EVENTS):
            yield _within(_node_events(folder / name), since, until)


def node_folders(root: Path) -> list[Path]:
    return folders(root / "gpu")


def folders(folder: Path) -> list[Path]:
    return sorted(filter(layout.is_folder, folder.iterdir())) if folder.is_dir() else []


def _nodes(root: Path, hosts: set[str]) -> list[Path]:
    there = node_folders(root)
    return [one for one in there if one.name in hosts] or ([] if hosts else there)


def _within(items: Iterable[Item], since: float, until: float) -> Iterator[Item]:
    return itertools.takewhile(lambda item: item.when <= until, (item for item in items if item.when >= since))


def _gpu_items(folder: Path, since: float) -> Iterator[Item]:
    seen: dict[str, Seen] = {}
    for line in carried(read_lines(folder, since)):
        when, gpu = seconds(line.get("timestamp")), str(line.get("gpu_index", ""))
        if when is None:
            continue
        uuid = str(line.get("uuid") or f"{folder.name}/gpu{gpu}")
        mine = seen.setdefault(uuid, Seen(gpu, deque(maxlen=GONE_LINES)))
        mine.lines.append(when)
        values = {name: value for name, value in line.items() if value is not None}
        yield Item(when, Engine.gpu, (when, gpu, uuid, values, folder.name))
        for lost, (number, lines) in seen.items():
            if when - lines[-1] > GONE_SECONDS and mine.lines[0] > lines[-1]:
                words = f"GPU {number} has not answered for {when - lines[-1]:.0f} s"
                yield Item(when, Engine.missing, (when, number, lost, words, folder.name))


def _host_items(folder: Path, since: float) -> Iterator[Item]:
    for line in carried(read_lines(folder, since, "host")):
        if (when := seconds(line.get("timestamp"))) is not None:
            values = {name: value for name, value in line.items() if value is not None}
            yield Item(when, give_host, (when, values, folder.name))


def give_host(engine: Engine, when: float, values: Record, host: str) -> None:
    rooms = values.pop(FILESYSTEMS, None)
    engine.host(when, values, host)
    for mountpoint, room in rooms.items() if isinstance(rooms, dict) else ():
        engine.disk(when, room, mountpoint, host)
    for name, is_up in values.items():
        if name.startswith(SOURCE_UP):
            engine.source(when, name.removeprefix(SOURCE_UP), bool(is_up), host)
    engine.journal(when, *(as_number(values.get(name)) for name in COUNTS), host=host)


def _node_events(file: Path) -> Iterator[Item]:
    """Of the machine whose folder it lies in."""
    for when, record in _timed(file) if file.exists() else ():
        number = as_number(record.get("xid"))
        if record.get("event") == "xid" and number is not None:
            gpu, uuid = str(record.get("gpu", "")), str(record.get("uuid", ""))
            yield Item(when, Engine.xid, (when, gpu, uuid, int(number), file.parent.name))
