"""A GPU's field over time: from memory where it is kept there, from the journal where it is not."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainvitals.agent.history import HISTORY_FIELDS
from trainvitals.agent.node_log import carried, read_lines
from trainvitals.agent.service import Agent
from trainvitals.catalog import SERIES
from trainvitals.journal import layout
from trainvitals.journal.record import seconds

MAX_POINTS = 5000
DEFAULT_SECONDS = 3600.0
MAX_SECONDS = 31 * 86400.0


@dataclass(frozen=True, slots=True)
class Asked:
    gpu: str
    field: str
    start: float
    end: float


def parse(parameters: Mapping[str, str], now: float) -> Asked:
    """ValueError names the parameter, its value and what it may be."""
    gpu, field = parameters.get("gpu", "0"), parameters.get("field", "utilization_percent")
    if not gpu.isdigit():
        raise ValueError(f"gpu: {gpu!r} cannot be used: give a GPU's number")
    if field not in HISTORY_FIELDS and field not in SERIES["gpu"]:
        raise ValueError(f"field: {field!r} cannot be used: docs/metrics.md lists the fields of a GPU")
    end = _time(parameters, "to", now)
    start = _time(parameters, "from", end - DEFAULT_SECONDS)
    if not 0 <= end - start <= MAX_SECONDS:
        raise ValueError(f"from: {start:g} cannot be used: ask for 31 days at most, from before to")
    return Asked(gpu, field, start, end)


def history(agent: Agent, asked: Asked) -> dict[str, Any]:
    """`points` are [time, mean, peak]; a gap is a point without values, or none."""
    width: float
    points: list[list[float | None]]
    if asked.field in HISTORY_FIELDS:
        width, kept = agent.history.points(asked.gpu, asked.field, asked.start, asked.end, agent.snapshot.timestamp)
        points = [[at, mean, peak] for at, mean, peak in kept]
    else:
        width, points = _from_journal(agent, asked)
    return {"gpu": asked.gpu, "field": asked.field, "step_seconds": width, "points": points}


def _time(parameters: Mapping[str, str], name: str, default: float) -> float:
    text = parameters.get(name)
    if text is None:
        return default
    found = seconds(text)
    try:
        found = float(text) if found is None else found
    except ValueError:
        found = float("nan")
    if not 0 <= found < 1e11:
        fix = "give seconds since 1970 or a time such as 2025-07-30T12:00:00Z"
        raise ValueError(f"{name}: {text!r} cannot be used: {fix}")
    return found


def _from_journal(agent: Agent, asked: Asked) -> tuple[float, list[list[float | None]]]:
    width = max(1.0, (asked.end - asked.start) / MAX_POINTS)
    slots: dict[int, list[float]] = {}
    folder = layout.gpu_folder(agent.root, agent.host)
    for line in carried(read_lines(folder, asked.start)):
        when, value = seconds(line.get("timestamp")), line.get(asked.field)
        if str(line.get("gpu_index")) != asked.gpu or when is None or not isinstance(value, (int, float)):
            continue
        if asked.start <= when <= asked.end:
            slots.setdefault(int(when // width), []).append(float(value))
    return width, [[slot * width, sum(seen) / len(seen), max(seen)] for slot, seen in sorted(slots.items())]
