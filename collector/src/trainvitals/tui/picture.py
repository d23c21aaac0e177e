"""What an agent tells, as the screen draws it: checked, of known types, every text harmless.

picture(json)  ->  Picture(node="gpu1", gpus=(Gpu(0, "NVIDIA H100", {"utilization_percent": 97.0}), …), runs=(…), …)

An answer may come from another version, or from no agent at all: what does not fit is Unreadable, what is missing is
not known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainvitals.journal.record import seconds
from trainvitals.tui.text import clean

Json = dict[str, Any]
Values = Mapping[str, float]
_ODD = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
RANK_FIELDS = ("step", "loss", "learning_rate", "gradient_norm", "throughput_samples_per_sec", "tokens_per_second",
               "last_step_timestamp_seconds")  # fmt: skip
PHASE = "phase_seconds_total_"
MOST = 4096


class Unreadable(ValueError):
    """The answer is no snapshot."""


@dataclass(frozen=True, slots=True)
class Process:
    pid: str
    user: str
    command: str
    memory_mb: float | None


@dataclass(frozen=True, slots=True)
class Gpu:
    number: int
    name: str = ""
    uuid: str = ""
    values: Values = field(default_factory=dict)
    throttle: tuple[str, ...] = ()
    processes: tuple[Process, ...] = ()
    # It was there before, and does not answer now.
    is_missing: bool = False


@dataclass(frozen=True, slots=True)
class Rank:
    number: int
    values: Values
    gpus: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Run:
    run: str
    name: str = ""
    status: str = ""
    framework: str = ""
    world_size: str = ""
    values: Values = field(default_factory=dict)
    progress: Mapping[str, float | str] = field(default_factory=dict)
    ranks: tuple[Rank, ...] = ()

    @property
    def is_live(self) -> bool:
        return self.status == "running"


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    severity: str
    where: str
    what: str
    starts: float | None
    # Somebody knows of it, or wants to hear no more: how.
    quiet: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """`at` is None before the first tick; `told` is how a verdict came: its state and words."""

    at: float | None = None
    node: str = ""
    interval: float = 1.0
    problems: tuple[str, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    runs: tuple[Run, ...] = ()
    host: Values = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    told: tuple[str, str] | None = None


def picture(json: Any) -> Picture:
    """Unreadable where this is no snapshot."""
    try:
        return _picture(json)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Unreadable(f"what it answers is no snapshot ({type(error).__name__})") from error


def _picture(json: Json) -> Picture:
    sources = [dict(one) for one in dict(json["sources"]).values()]
    problems = [*json.get("problems", ()), *(one["problem"] for one in sources if one.get("problem"))]
    verdict = json.get("verdict")
    xids = _xids(json.get("xids", ()))
    return Picture(
        at=seconds(json["timestamp"]),
        node=clean(json.get("node", "")),
        interval=max(0.1, _number(json.get("interval")) or 1.0),
        problems=tuple(map(clean, problems)),
        gpus=tuple(sorted((_gpu(one, xids) for one in json["gpus"][:MOST]), key=lambda gpu: gpu.number)),
        runs=tuple(_in_order(map(_run, json["runs"][:MOST]))),
        host=_numbers(json["host"]),
        findings=tuple(map(_finding, dict(json.get("alerts") or {}).get("firing", ())[:MOST])),
        told=(clean(verdict["state"]), clean(_verdict(verdict))) if verdict else None,
    )


def _verdict(told: Json) -> str:
    """What is wrong stands first: the end of a long line is cut off."""
    if told["state"] == "well" or "first" not in told:
        return str(told["words"])
    return "; ".join(filter(None, (str(told["first"]), str(told.get("rest", "")))))


def _gpu(json: Json, xids: Mapping[int, float]) -> Gpu:
    number = int(json["gpu"])
    values = _numbers(json) | ({"xid": xids[number]} if number in xids else {})
    return Gpu(number, clean(json.get("name", "")), clean(json.get("uuid", "")), values,
               tuple(map(clean, json.get("throttle_active", ()))),
               tuple(map(_process, json.get("processes", ())[:MOST])))  # fmt: skip


def _xids(told: Sequence[Json]) -> dict[int, float]:
    """The last one of each GPU."""
    ordered = sorted(told, key=lambda xid: _number(xid.get("last_timestamp_seconds")) or 0.0)
    return {int(xid["gpu"]): float(xid["xid"]) for xid in ordered}


def _process(json: Json) -> Process:
    held = _number(json.get("memory_bytes"))
    return Process(clean(json["pid"]), clean(json.get("user", "")), clean(json.get("command", "")),
                   None if held is None else held / 2**20)  # fmt: skip


def _run(json: Json) -> Run:
    progress = json.get("progress") or {}
    return Run(clean(json["run"]), clean(json.get("name", "")), clean(json.get("status", "")),
               clean(json.get("framework") or ""), clean(json.get("world_size") or ""), _numbers(json),
               {**{name: clean(value) for name, value in progress.items() if isinstance(value, str)},
                **_numbers(progress)},
               tuple(map(_rank, json["ranks"][:MOST])))  # fmt: skip


def _rank(json: Json) -> Rank:
    values = {name: value for name, value in _numbers(json).items() if name in RANK_FIELDS or name.startswith(PHASE)}
    return Rank(int(json["rank"]), values, tuple(clean(gpu["gpu"]) for gpu in json.get("gpus", ())))


def _finding(json: Json) -> Finding:
    labels, annotations = dict(json.get("labels") or {}), dict(json.get("annotations") or {})
    return Finding(clean(json["name"]), clean(labels.get("severity", "")), clean(json.get("where", "")),
                   clean(annotations.get("summary") or annotations.get("description") or ""),
                   seconds(json.get("starts")), _quiet(json))  # fmt: skip


def _quiet(json: Json) -> str:
    if known := json.get("acknowledged"):
        return clean(f"acknowledged by {known['by']}" if known.get("by") else "acknowledged")
    return "silenced" if json.get("silenced") else ""


def _in_order(runs: Any) -> list[Run]:
    """Those that live first, and of these the newest."""
    return sorted(runs, key=lambda run: (not run.is_live, -run.values.get("start_timestamp_seconds", 0.0), run.run))


def _numbers(json: Json) -> dict[str, float]:
    return {str(name): number for name, value in json.items() if (number := _number(value)) is not None}


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    return _ODD.get(value) if isinstance(value, str) else float(value)
