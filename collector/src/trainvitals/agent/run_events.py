"""What happened in a run, as marks on its charts: checkpoints, phases, notes, alerts, findings, restarts and ends.

events(folder, lambda: blocks, 1000)
->  {"events": [{"timestamp": "2025-07-30T12:34:56.789Z", "step": 812, "kind": "checkpoint", "text": "…"}], "more": 0}

What all ranks tell alike is told once. What has no step of its own has the last one before it.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from trainvitals.agent.run_state import as_label
from trainvitals.journal import layout, runs
from trainvitals.journal.index import Block, step_of
from trainvitals.journal.lines import part
from trainvitals.journal.record import Record, seconds, timestamp_at

# Of all files together, and of each the end.
MAX_BYTES, MAX_FILE_BYTES = 64 << 20, 4 << 20
MAX_TEXT = 500
_OF_ALL_RANKS = frozenset(("checkpoint", "phase", "end"))
Event = dict[str, Any]


def events(folder: Path, blocks: Callable[[], Sequence[Block]], limit: int) -> dict[str, Any]:
    found = [*_of_ranks(folder), *_of_agents(folder), *_restarts(folder)]
    found.sort(key=lambda event: event["when"])
    shown = found[-limit:]
    steps = _Steps(blocks() if any(event.get("step") is None for event in shown) else ())
    return {"events": [_shown(event, steps) for event in shown], "more": len(found) - len(shown)}


class _Steps:
    """The step that was reached at a time, as near as the blocks tell."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._known = sorted((block.times[0], block.steps[1]) for block in blocks if block.times and block.steps)

    def at(self, when: float) -> float | None:
        found = bisect_right(self._known, (when, float("inf")))
        return self._known[found - 1][1] if found else None


def _shown(event: Event, steps: _Steps) -> Event:
    when, step = event.pop("when"), event.pop("step", None)
    step = steps.at(when) if step is None else step
    return {"timestamp": timestamp_at(when), "step": step, **event}


def _of_ranks(folder: Path) -> Iterator[Event]:
    """The lowest rank speaks for all, where they say the same."""
    files = sorted((int(match[1]), path) for path in layout.children(folder)
                   if (match := layout.EVENTS_FILE.match(path.name)))  # fmt: skip
    most = min(MAX_FILE_BYTES, MAX_BYTES // max(1, len(files)))
    told: set[object] = set()
    for rank, path in files:
        for event in _paired(filter(None, map(_of_rank, part(path, -most, most)))):
            same = (event["kind"], event.get("step"), event["text"])
            if event["kind"] not in _OF_ALL_RANKS or same not in told:
                event["rank"] = rank
                yield event
            told.add(same)


def _paired(found: Iterator[Event]) -> Iterator[Event]:
    """A phase is one event, which knows how long it took when it is over."""
    open_phases: dict[str, Event] = {}
    for event in found:
        is_open = event.pop("open", None)
        if is_open is False:
            if (begun := open_phases.pop(event["text"], None)) is not None:
                begun["seconds"] = event["when"] - begun["when"]
            continue
        if is_open:
            open_phases[event["text"]] = event
        yield event


def _of_rank(record: Record) -> Event | None:
    kind, when = record.get("event"), seconds(record.get("timestamp"))
    make = _KINDS.get(kind) if isinstance(kind, str) else None
    return None if make is None or when is None else {"when": when, "step": step_of(record), **make(record)}


def _text(value: object, otherwise: str = "") -> str:
    return as_label(value)[:MAX_TEXT] or otherwise


def _end(record: Record) -> Event:
    return {"kind": "end", "text": ": ".join(filter(None, [_text(record.get("status")), _text(record.get("error"))]))}


def _alert(record: Record) -> Event:
    return {"kind": "alert", "text": _text(record.get("message")) or _text(record.get("name")),
            "name": _text(record.get("name")), "severity": _text(record.get("severity"))}  # fmt: skip


_KINDS: dict[str, Callable[[Record], Event]] = {
    "checkpoint": lambda record: {"kind": "checkpoint", "text": _text(record.get("path"), "checkpoint")},
    "phase": lambda record: {"kind": "phase", "text": _text(record.get("phase")), "open": record.get("open") is True},
    "note": lambda record: {"kind": "note", "text": _text(record.get("text"))},
    "signal": lambda record: {"kind": "note", "text": f"told to end by {_text(record.get('signal'))}"},
    "alert": _alert,
    "end": _end,
}


def _of_agents(folder: Path) -> Iterator[Event]:
    """Findings from when they opened; what follows from another, and what became worse, is no mark of its own."""
    files = layout.reports(folder)
    most = min(MAX_FILE_BYTES, MAX_BYTES // max(1, len(files)))
    for path in files:
        opened: dict[object, Event] = {}
        for record in part(path, -most, most):
            when = seconds(record.get("timestamp"))
            if when is not None and record.get("status") == "killed":
                yield {"when": when, "kind": "killed", "text": "gone without an end", **_rank(record)}
            elif when is not None and record.get("event") == "finding" and "cause" not in record:
                _take_finding(record, when, opened)
        yield from opened.values()


def _take_finding(record: Record, when: float, opened: dict[object, Event]) -> None:
    name = _text(record.get("kind"))
    begun = seconds(record.get("opened")) or when
    key = (name, begun, _text(record.get("rank")), _text(record.get("uuid")), _text(record.get("part")))
    if key not in opened:
        opened[key] = {"when": begun, "step": step_of(record), "kind": "finding", "name": name,
                       "text": _text(record.get("what")), **_rank(record)}  # fmt: skip
    opened[key]["severity"] = _text(record.get("severity"))
    if record.get("state") == "close":
        opened[key]["closed"] = timestamp_at(when)


def _rank(record: Record) -> Event:
    rank = _text(record.get("rank"))
    return {"rank": int(rank)} if rank.isascii() and rank.isdigit() and len(rank) < 7 else {}


def _restarts(folder: Path) -> Iterator[Event]:
    told = (runs.read_json(folder / layout.RUN_FILE) or {}).get("resumed")
    for stamp in told if isinstance(told, list) else ():
        if (when := seconds(stamp)) is not None:
            yield {"when": when, "kind": "restart", "text": "went on after a restart"}
