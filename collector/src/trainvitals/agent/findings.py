"""Findings open and past, the worst first, as page and programs are told of them.

Findings(agent).listed("all", 200, now)  ->  {"findings": [{"id": "5f0c…", "state": "open", "kind": "GpuMissing", …}],
                                              "more": 0}

What is open the agent knows; what was, event files tell, each read no further back than a bound and only when it has
changed. What came by Alertmanager stands beside, but for what this agent found itself.
"""

import math
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from trainvitals.agent import twins
from trainvitals.agent.service import Agent
from trainvitals.alerting import received
from trainvitals.detect.finding import WEIGHT, Change, Place, describe
from trainvitals.detect.quieting import identity
from trainvitals.journal import layout
from trainvitals.journal.node_events import EVENTS, OLDER_EVENTS
from trainvitals.journal.record import Record, as_number, seconds, timestamp_at
from trainvitals.journal.tail import Tail

NODE_BYTES, RUN_BYTES = 4 * 2**20, 128 * 2**10
MAX_RUNS, MAX_OF_RUN, MAX_PAST = 100, 50, 1000
# Of two that speak of the same, one may have been a little late.
LATE_SECONDS = 600.0
_NUMBERS = ("step", "value", "threshold")
_TEXTS = ("kind", "severity", "what", "todo", "runbook")


class Findings:
    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._files: dict[Path, tuple[tuple[int, int], list[Record]]] = {}
        self._lock = threading.Lock()

    def listed(self, state: str, limit: int, now: float) -> Record:
        """May wait for the disk where what is past is asked for."""
        found = open_ones(self._agent, now) if state != "past" else []
        found += self._past(now) if state != "open" else []
        return {"findings": found[:limit], "more": max(0, len(found) - limit)}

    def _past(self, now: float) -> list[Record]:
        """What ended last first."""
        there = {one["id"] for one in open_ones(self._agent, now)}
        there |= {received.identity(alert) for alert in twins.others(self._agent, now)}
        with self._lock:
            lines = list(self._lines())
        own = [one for one in _own_past(lines, self._agent) if one["id"] not in there]
        rest = [one for one in _others_past(lines, self._agent) if one["id"] not in there]
        rest = _untold(rest, [*own, *(_of_change(change, self._agent) for change in self._agent.open())])
        found = sorted([*own, *rest], key=lambda one: str(one.get("closed") or one["opened"]))[-MAX_PAST:]
        return [one | _marks(self._agent, one) for one in found[::-1]]

    def _lines(self) -> Iterator[Record]:
        folder = layout.gpu_folder(self._agent.root, self._agent.host)
        bounds = {folder / OLDER_EVENTS: (NODE_BYTES, MAX_PAST), folder / EVENTS: (NODE_BYTES, MAX_PAST)}
        bounds |= dict.fromkeys(_newest(self._agent), (RUN_BYTES, MAX_OF_RUN))
        self._files = {path: known for path, known in self._files.items() if path in bounds}
        for path, (most_bytes, most) in bounds.items():
            yield from self._read(path, most_bytes, most)

    def _read(self, path: Path, most_bytes: int, most: int) -> list[Record]:
        try:
            status = path.stat()
        except OSError:
            return []
        mark, known = (status.st_size, status.st_mtime_ns), self._files.get(path)
        if known is None or known[0] != mark:
            known = self._files[path] = mark, _last(path, max(0, status.st_size - most_bytes))[-most:]
        return known[1]


def _newest(agent: Agent) -> list[Path]:
    """The runs' own event files, those that changed last."""
    found = []
    with suppress(OSError):
        for run in (agent.root / "runs").iterdir():
            path = run / "agent" / f"{agent.host}.jsonl"
            with suppress(OSError):
                found.append((path.stat().st_mtime, path))
    return [path for _, path in sorted(found)[-MAX_RUNS:]]


def _last(path: Path, start: int) -> list[Record]:
    """Of each finding its last line, and of each alert."""
    tail, found = Tail({str(path): [start, ""]}), dict[object, Record]()
    while records := tail.read(path):
        for record in records:
            if key := _key(record):
                found.pop(key, None)
                found[key] = record
    return list(found.values())


def _key(record: Mapping[str, Any]) -> tuple[str, ...]:
    """What a line is of, where it is one of these."""
    names = {"finding": ("kind", "opened", *Place._fields), "alert": ("fingerprint", "starts")}
    return tuple(str(record.get(name) or "") for name in names.get(str(record.get("event")), ()))


def _place(record: Mapping[str, Any]) -> Place:
    return Place(*(str(record.get(name) or "") for name in Place._fields))


# --- What this agent found ---


def open_ones(agent: Agent, now: float) -> list[Record]:
    own = [_of_change(change, agent) for change in agent.open()]
    there = {key for one in own for key in (_where(one), _where(one | {"instance": ""}))}
    rest = [_of_alert(alert, "open") for alert in twins.others(agent, now)]
    found = [*own, *(one for one in rest if _where(one) not in there)]
    found.sort(key=lambda one: str(one["opened"]), reverse=True)
    found.sort(key=lambda one: -WEIGHT.get(one["severity"], -1))
    return [one | _marks(agent, one) for one in found]


def _of_change(change: Change, agent: Agent) -> Record:
    told = describe(change.finding) | {"opened": timestamp_at(change.opened)}
    return _own(told, agent) | {"state": "open", "evidence": [_described(describe(one)) for one in change.evidence]}


def _own_past(lines: Iterable[Record], agent: Agent) -> list[Record]:
    """What hung on another is evidence of that one."""
    return [_closed(record, agent) for record in lines
            if record.get("event") == "finding" and "cause" not in record and _is_whole(record)]  # fmt: skip


def _is_whole(record: Mapping[str, Any]) -> bool:
    texts = (record.get(name) for name in ("kind", "opened", "timestamp"))
    return all(isinstance(text, str) for text in texts) and seconds(record["opened"]) is not None


def _closed(record: Record, agent: Agent) -> Record:
    """Of one whose end nobody saw it is not known when that was."""
    evidence = record.get("evidence")
    told = [_described(one) for one in evidence if isinstance(one, dict)] if isinstance(evidence, list) else []
    end = {"closed": record["timestamp"]} if record.get("state") == "close" else {}
    return _own(record, agent) | {"state": "closed", **end, "evidence": told}


def _own(told: Mapping[str, Any], agent: Agent) -> Record:
    name = identity(str(told["kind"]), _place(told), str(told["opened"]))
    return {"id": name, "source": "agent", "instance": agent.host, **_described(told), "opened": str(told["opened"])}


def _described(told: Mapping[str, Any]) -> Record:
    texts = {name: _text(told.get(name)) for name in _TEXTS}
    place = {name: _text(value) for name, value in _place(told).labels().items()}
    numbers = {name: as_number(told.get(name)) for name in _NUMBERS}
    return texts | place | {name: _number(value) for name, value in numbers.items() if value is not None}


def _number(value: float) -> float | str:
    """JSON has no NaN; a step is a whole number."""
    if math.isfinite(value):
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _text(value: object) -> str:
    """A name that is no UTF-8 is told as near as can be."""
    return str(value or "").encode("utf-8", "replace").decode()


# --- What came by Alertmanager ---


def _others_past(lines: Iterable[Record], agent: Agent) -> Iterator[Record]:
    """What goes on, as far as Alertmanager tells, is not past; and what it says last of an alert is from the end."""
    for record in lines:
        if received.is_alert(record) and not twins.is_own(record, agent.host):
            yield _of_alert(record, "closed")


def _of_alert(alert: Record, state: str) -> Record:
    labels, notes = alert["labels"], alert["annotations"]
    place = {name: labels.get(name) for name in Place._fields}
    known = {**place, "part": place["part"] or labels.get("mountpoint"), "kind": alert["name"],
             "severity": labels.get("severity"), "what": notes.get("summary") or notes.get("description"),
             "todo": notes.get("description"), "runbook": notes.get("runbook_url")}  # fmt: skip
    end = {"closed": alert["ends"]} if state == "closed" and alert.get("ends") else {}
    return {"id": received.identity(alert), "state": state, "source": _text(labels.get("source")) or "prometheus",
            "instance": _text(labels.get("instance")), **_described(known), "opened": alert["starts"], **end,
            "evidence": []}  # fmt: skip


# --- Of both ---


def _where(one: Mapping[str, Any]) -> tuple[object, ...]:
    """Of what tells nothing of a machine, as a rule about a run, the machine is no difference."""
    return tuple(one.get(name, "") for name in ("kind", "instance", "run", "rank", "uuid"))


def _untold(others: Iterable[Record], own: Iterable[Record]) -> list[Record]:
    """Without those of which this agent found the same, at the same time."""
    there: dict[object, list[Record]] = {}
    for one in own:
        for key in (_where(one), _where(one | {"instance": ""})):
            there.setdefault(key, []).append(one)
    return [one for one in others if not any(_overlap(one, same) for same in there.get(_where(one), ()))]


def _overlap(one: Record, other: Record) -> bool:
    spans = [(seconds(each["opened"]) or 0.0, seconds(each.get("closed")) or float("inf")) for each in (one, other)]
    return max(begin for begin, _ in spans) - min(end for _, end in spans) < LATE_SECONDS


def _marks(agent: Agent, one: Record) -> Record:
    key = (str(one["kind"]), _place(one))
    marks = agent.quiet.marks(one["id"], key, one["severity"], str(one["opened"]), (one["source"], one["instance"]))
    return marks if one["state"] == "open" else marks | {"silenced": None}
