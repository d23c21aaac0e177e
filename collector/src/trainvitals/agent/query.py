"""GPUs and host over time: from memory where it is kept there, from the journal where it is not.

node(agent, Asked(("0",), ("utilization_percent",), ("cpu_usage_percent",), start, end, 1000))
->  {"gpus": {"0": {"utilization_percent": {"x": […], "mean": […], "peak": […]}}}, "host": {…}, "step_seconds": 10}
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from trainvitals.agent.history import HISTORY_FIELDS, HOST, HOST_FIELDS, Point
from trainvitals.agent.node_log import carried, read_lines
from trainvitals.agent.run_state import as_label
from trainvitals.agent.service import Agent
from trainvitals.agent.shortened import MAX_DIGITS, shortened
from trainvitals.catalog import SERIES
from trainvitals.journal import layout
from trainvitals.journal.record import as_number, seconds

DEFAULT_SECONDS = 3600.0
MAX_SECONDS = 31 * 86400.0
DEFAULT_POINTS, MAX_POINTS = 1000, 4000
MAX_GPUS = 64
NONE = "none"
# So many points' width without a value is a gap.
GAP_POINTS, LEAST_GAP_SECONDS = 3, 180.0
Columns = dict[str, list[float | None]]
Key = tuple[str, str]


class Asked(NamedTuple):
    """`gpus` is None where all are meant; of more than `peaks` of them no peaks are told."""

    gpus: tuple[str, ...] | None
    fields: tuple[str, ...]
    host: tuple[str, ...]
    start: float
    end: float
    points: int
    digits: int = MAX_DIGITS
    peaks: int = MAX_GPUS


def parse(parameters: Mapping[str, str], now: float) -> Asked:
    """ValueError names the parameter, its value and what it may be."""
    end = moment(parameters["to"], "to") if "to" in parameters else now
    start = moment(parameters["from"], "from") if "from" in parameters else end - DEFAULT_SECONDS
    if not 0 <= end - start <= MAX_SECONDS:
        raise ValueError(f"from: {start:g} cannot be used: ask for 31 days at most, from before to")
    points = whole_number(parameters.get("points"), "points", DEFAULT_POINTS, 1, MAX_POINTS)
    return Asked(gpu_numbers(parameters.get("gpu", "")), _fields(parameters, "fields", "gpu", HISTORY_FIELDS),
                 _fields(parameters, "host", "host", HOST_FIELDS), start, end, points,
                 whole_number(parameters.get("digits"), "digits", MAX_DIGITS, 1, MAX_DIGITS),
                 whole_number(parameters.get("peaks"), "peaks", MAX_GPUS, 0, MAX_GPUS))  # fmt: skip


def whole_number(text: str | None, name: str, default: int, least: int, most: int) -> int:
    """ValueError names the parameter, its value and what it may be."""
    if text is None:
        return default
    if text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= most:
        return int(text)
    raise ValueError(f"{name}: {text!r} cannot be used: give a whole number from {least} to {most}")


def moment(text: str, name: str) -> float:
    """ValueError names the parameter, its value and what it may be."""
    found = seconds(text)
    try:
        found = float(text) if found is None else found
    except ValueError:
        found = float("nan")
    if not 0 <= found < 1e11:
        fix = "give seconds since 1970 or a time such as 2025-07-30T12:00:00Z"
        raise ValueError(f"{name}: {text!r} cannot be used: {fix}")
    return found


def gpu_numbers(text: str) -> tuple[str, ...] | None:
    """None where nothing is said: all."""
    gpus = tuple(dict.fromkeys(gpu for gpu in text.split(",") if gpu not in ("", NONE)))
    if len(gpus) > MAX_GPUS or not all(gpu.isascii() and gpu.isdigit() and len(gpu) < 6 for gpu in gpus):
        raise ValueError(f"gpu: {text!r} cannot be used: give the numbers of GPUs, {MAX_GPUS} at most, or {NONE}")
    return gpus or (() if text == NONE else None)


def _fields(parameters: Mapping[str, str], name: str, scope: str, usual: Mapping[str, Any]) -> tuple[str, ...]:
    text = parameters.get(name, "")
    fields = tuple(dict.fromkeys(field for field in text.split(",") if field not in ("", NONE)))
    for field in fields:
        if field not in usual and field not in SERIES[scope]:
            raise ValueError(f"{name}: {field!r} cannot be used: docs/metrics.md lists the fields of a {scope}")
    return fields or (() if text == NONE else tuple(usual))


def node(agent: Agent, asked: Asked) -> dict[str, Any]:
    """A gap is a point without values. `step_seconds`: the width of what is kept in memory."""
    gpus = agent.history.gpus() if asked.gpus is None else asked.gpus
    kept, width = _from_memory(agent, asked, gpus)
    found = {**kept, **_from_journal(agent, asked, gpus)}

    def told(key: str, name: str) -> dict[str, Any]:
        columns = shortened(found.get((key, name), _columns([])), asked.digits)
        has_peak = key == HOST or len(gpus) <= asked.peaks
        return columns if has_peak else {part: columns[part] for part in ("x", "mean")}

    return {"gpus": {gpu: {name: told(gpu, name) for name in asked.fields} for gpu in gpus},
            "host": {name: told(HOST, name) for name in asked.host}, "step_seconds": width}  # fmt: skip


def _from_memory(agent: Agent, asked: Asked, gpus: Iterable[str]) -> tuple[dict[Key, Columns], int]:
    keys = [(gpu, name) for gpu in gpus for name in asked.fields if name in HISTORY_FIELDS]
    keys += [(HOST, name) for name in asked.host if name in HOST_FIELDS]
    found: dict[Key, Columns] = {}
    width = 1
    for key in keys:
        width, points = agent.history.points(*key, asked.start, asked.end, agent.snapshot.timestamp, asked.points)
        found[key] = _columns(points)
    return found, width


def _columns(points: Iterable[Point]) -> Columns:
    """Of a gap one point is enough."""
    shown: list[Point] = []
    for point in points:
        if point.mean is not None or (shown and shown[-1].mean is not None):
            shown.append(point)
    return {"x": [point.timestamp for point in shown], "mean": [point.mean for point in shown],
            "peak": [point.peak for point in shown]}  # fmt: skip


def _from_journal(agent: Agent, asked: Asked, gpus: Iterable[str]) -> dict[Key, Columns]:
    fields = [name for name in asked.fields if name not in HISTORY_FIELDS]
    host = [name for name in asked.host if name not in HOST_FIELDS]
    width = float(max(1, math.ceil((asked.end - asked.start) / asked.points)))
    slots: dict[Key, dict[int, list[float]]] = {}
    for key, when, line in _lines(agent, asked, fields and list(gpus), host):
        for name in host if key == HOST else fields:
            if (value := as_number(line.get(name))) is not None and math.isfinite(value):
                slots.setdefault((key, name), {}).setdefault(int(when // width), []).append(value)
    return {key: _columns(_points(found, width)) for key, found in slots.items()}


def _lines(agent: Agent, asked: Asked, gpus: list[str], host: list[str]) -> Iterator[tuple[str, float, dict[str, Any]]]:
    """Those of the time and the things that are asked for."""
    folder = layout.gpu_folder(agent.root, agent.host)
    for kind in ["gpu"] * bool(gpus) + ["host"] * bool(host):
        for line in carried(read_lines(folder, asked.start, kind)):
            when, key = seconds(line.get("timestamp")), HOST if kind == "host" else as_label(line.get("gpu_index"))
            if when is not None and asked.start <= when <= asked.end and (kind == "host" or key in gpus):
                yield key, when, line


def _points(slots: Mapping[int, list[float]], width: float) -> Iterator[Point]:
    before = None
    for slot, values in sorted(slots.items()):
        if before is not None and (slot - before) * width > max(GAP_POINTS * width, LEAST_GAP_SECONDS):
            yield Point((before + 1) * width, None, None)
        yield Point(slot * width, sum(values) / len(values), max(values))
        before = slot
