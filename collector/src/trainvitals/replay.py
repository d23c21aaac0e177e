"""Recorded runs judged as they would have been, on the recorded clock: what would have paged me last night, and when.

replay([Path("runs/gemma")], Engine())  ->  [Told(Finding("TrainingNonFinite", …), first=…, last=…), …]

All ranks' lines, their events, and the GPUs' and the hosts' lines of the time are merged by their timestamps; of a
whole journal all lines of its machines, whether a run was there or not. A folder in which nothing lies but
training_metrics_*.jsonl files is a run too.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from pathlib import Path
from typing import Any

import orjson

from trainvitals.detect.engine import Engine
from trainvitals.detect.finding import WEIGHT, Change, Finding, describe
from trainvitals.errors import SettingError, plain
from trainvitals.journal import layout
from trainvitals.journal.record import Record, as_json, timestamp_at
from trainvitals.recorded import Item, Journal, folders, node_folders, node_items, read

TICK_SECONDS, MOST_TICKS = 5.0, 500


@dataclass(slots=True)
class Told:
    """A finding from its first to its last moment, and when it became as severe as it is, where it was less before;
    what follows from it is its evidence."""

    finding: Finding
    first: float
    last: float
    evidence: tuple[Finding, ...] = ()
    escalated: float | None = None

    @property
    def when(self) -> float:
        return self.first if self.escalated is None else self.escalated

    def record(self) -> Record:
        one = self.finding
        place = {"run": one.place.run or None, **_numbers(one)}
        told = {"kind": one.kind, "severity": one.severity, **place, "step": one.step,
                "first_timestamp": timestamp_at(self.first), "last_timestamp": timestamp_at(self.last),
                "escalated_timestamp": None if self.escalated is None else timestamp_at(self.escalated)}  # fmt: skip
        return (
            told
            | describe(one)
            | place
            | {"evidence": [describe(each) | _known(_numbers(each)) for each in self.evidence]}
        )


def json_lines(told: Sequence[Told]) -> Iterator[str]:
    for one in told:
        yield orjson.dumps(_plain(one.record())).decode()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return as_json(value) if isinstance(value, float) else value


def _numbers(finding: Finding) -> dict[str, int | None]:
    return {"rank": _number(finding.place.rank), "gpu": _number(finding.place.gpu)}


def _known(values: dict[str, int | None]) -> dict[str, int | None]:
    return {name: value for name, value in values.items() if value is not None}


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def recorded(paths: Sequence[Path]) -> Journal:
    """A journal's root stands for all of its runs and machines."""
    found = Journal()
    for path in paths:
        if not path.is_dir():
            raise SettingError("RUN_DIR", str(path), "name the folder of a run, or a journal with runs/ or gpu/ in it")
        if not (path / "runs").is_dir() and _is_run(path):
            found.runs.append(read(path))
        elif (runs := path / "runs").is_dir() or node_folders(path):
            found.runs += map(read, filter(_is_run, folders(runs)))
            found.nodes += node_folders(path)
        else:
            fix = "no training_metrics_*.jsonl lies there: name the folder of a run, or a journal"
            raise SettingError("RUN_DIR", str(path), fix)
    return found


def _is_run(folder: Path) -> bool:
    return any(layout.rank_of(file.name) is not None for file in folder.iterdir())


def replay(paths: Sequence[Path], engine: Engine) -> list[Told]:
    told: dict[object, Told] = {}
    done: list[Told] = []
    for change in _changes(recorded(paths), engine):
        _enter(change, told, done)
    for one in told.values():
        one.last = max(one.last, one.first)
    return sorted([*done, *told.values()], key=lambda one: one.when)


def _enter(change: Change, told: dict[object, Told], done: list[Told]) -> None:
    key = change.finding.key
    if change.cause is not None:
        return
    if change.state == "open":
        told[key] = Told(change.finding, change.opened, change.when)
    known = told.get(key)
    if known is None:
        return
    if WEIGHT[change.finding.severity] > WEIGHT[known.finding.severity]:
        known.finding, known.escalated = change.finding, change.when
    known.evidence, known.last = change.evidence, max(known.last, change.last)
    if change.state == "close":
        done.append(told.pop(key))


def _changes(journal: Journal, engine: Engine) -> Iterator[Change]:
    for one in journal.runs:
        engine.info(one.run, one.info, one.gpus, one.hosts)
    last: float | None = None
    for item in merged(journal):
        if last is not None:
            yield from _pass(engine, last, item.when)
        item.give(engine)
        last = item.when if last is None else max(last, item.when)
        yield from engine.tick(last)
    yield from _closing(engine)


def merged(journal: Journal) -> Iterable[Item]:
    streams = [stream for one in journal.runs for stream in one.streams]
    return merge(*streams, *node_items(journal), key=lambda item: item.when)


def _pass(engine: Engine, since: float, until: float) -> Iterator[Change]:
    """Time that nothing was written in; what lasts long is told by it."""
    step = max(TICK_SECONDS, (until - since) / MOST_TICKS)
    now = since + step
    while now < until:
        yield from engine.tick(now)
        now += step


def _closing(engine: Engine) -> Iterator[Change]:
    """What is open at the end was last seen when it was last told."""
    for one in engine.book.open.values():
        cause = engine.book.open[one.cause].finding if one.cause in engine.book.open else None
        yield Change("update", one.finding, one.opened, one.last, cause, tuple(one.evidence), one.last)


def lines(told: Sequence[Told]) -> list[str]:
    """For people: what was told, when, of whom; the worst is known by its first word."""
    if not told:
        return ["Nothing would have been told."]
    pages = sum(one.finding.severity == "page" for one in told)
    found = [plain(line) for one in told for line in _lines(one)]
    return [*found, f"{_counted(len(told), 'finding')}, {_counted(pages, 'page')} among them."]


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}{'s' * (count != 1)}"


def _lines(one: Told) -> Iterator[str]:
    finding = one.finding
    where = " ".join(f"{name} {value}" for name, value in finding.place.labels().items() if name != "uuid")
    step = "" if finding.step is None else f" step {finding.step:,}"
    yield f"{finding.severity:6} {timestamp_at(one.when)}  {finding.kind}  {where}{step}: {finding.what}"
    if one.escalated is not None:
        yield f"{'':6} less severe since {timestamp_at(one.first)}"
    for each in one.evidence:
        yield f"{'':6} and so: {each.kind}: {each.what}"
