"""A snapshot as the JSON that page, terminal and `trainvitals once --json` read: plain data, pure functions.

JSON has no NaN: a value that is NaN or infinite is told as the text "NaN", "Infinity" or "-Infinity".
"""

from collections.abc import Mapping
from typing import Any

from trainvitals.agent.node_log import gpu_values
from trainvitals.agent.sampler import SourceState
from trainvitals.journal.record import as_json, timestamp_at
from trainvitals.model import Histogram, Reading, Snapshot, Value

Json = dict[str, Any]


def snapshot_view(snapshot: Snapshot, sources: Mapping[str, SourceState]) -> Json:
    return {
        "timestamp": timestamp_at(snapshot.timestamp) if snapshot.timestamp else None,
        "gpus": gpus_view(snapshot),
        "mig": [_with_labels(reading) for reading in snapshot.of("mig")],
        "xids": [_with_labels(reading) for reading in snapshot.of("xid")],
        "host": host_view(snapshot),
        "runs": runs_view(snapshot),
        "sources": {name: source_view(state) for name, state in sources.items()},
    }


def gpus_view(snapshot: Snapshot) -> list[Json]:
    """One object a GPU, what it is and what it reads, in the order of the GPUs' numbers."""
    known = {reading.label("uuid"): dict(reading.labels) for reading in snapshot.of("gpu_info")}
    holding = _processes(snapshot)
    gpus = [
        {"gpu": int(reading.label("gpu")), "uuid": (uuid := reading.label("uuid")),
         **{key: value for key, value in known.get(uuid, {}).items() if key not in ("gpu", "uuid")},
         **{name: _plain(value) for name, value in gpu_values(reading).items()}, **holding.get(uuid, {})}
        for reading in snapshot.of("gpu")
    ]  # fmt: skip
    return sorted(gpus, key=lambda gpu: int(gpu["gpu"]))


def _processes(snapshot: Snapshot) -> dict[str, Json]:
    """By the GPU's UUID, the largest first; nothing of one that tells of none."""
    found: dict[str, Json] = {}
    for reading in snapshot.of("process"):
        told = {key: value for key, value in _with_labels(reading).items() if key not in ("gpu", "uuid")}
        found.setdefault(reading.label("uuid"), {"processes": []})["processes"].append(told)
    return found


_HOST_LISTS = (("core", "cores"), ("filesystem", "filesystems"), ("disk", "disks"), ("network", "networks"))


def host_view(snapshot: Snapshot) -> Json:
    host: Json = {}
    for reading in snapshot.of("host"):
        host |= _values(reading)
    for scope, name in _HOST_LISTS:
        listed = [_with_labels(reading) for reading in snapshot.of(scope)]
        if listed:
            host[name] = listed
    return host


def runs_view(snapshot: Snapshot) -> list[Json]:
    """Those that live first, then those that ended lately and the last ones of before: of each the newest first."""
    runs: dict[str, Json] = {}
    for reading in (*snapshot.readings, *snapshot.past):
        if reading.scope in _RUN_SCOPES:
            name = reading.label("run")
            _fold_run(runs.setdefault(name, {"run": name, "ranks": {}}), reading)
    whole = [{**run, "ranks": [run["ranks"][rank] for rank in sorted(run["ranks"])]} for run in runs.values()]
    whole.sort(key=_age)
    return [{**run, "progress": _progress(run, snapshot.progress.get(run["run"], {}))} for run in whole]


def _age(run: Json) -> tuple[bool, float]:
    """A run that lives is as new as its start, another as its last step."""
    began = run.get("start_timestamp_seconds", 0.0)
    if run.get("status") == "running":
        return False, -began
    return True, -max((rank.get("last_step_timestamp_seconds", 0.0) for rank in run["ranks"]), default=began)


def _progress(run: Json, more: Mapping[str, Any]) -> Json:
    """Of the first rank that tells: all ranks make the same steps."""
    known = {name: next((rank[name] for rank in run["ranks"] if name in rank), None) for name in ("step", "loss")}
    known["planned_steps"] = run.get("planned_steps")
    return {name: value for name, value in known.items() if value is not None} | dict(more)


_RUN_SCOPES = frozenset({"run", "run_info", "rank", "custom", "nonfinite", "rank_gpu"})


def _fold_run(run: Json, reading: Reading) -> None:
    if reading.scope == "run_info":
        run |= {key: value for key, value in reading.labels if key != "run"}
        return
    if reading.scope == "run":
        run |= _values(reading)
        unknown = "unreadable" if run.pop("unreadable", None) else "unknown"
        run["status"] = (run.pop("run_status", None) or [run.get("status", unknown)])[0]
        return
    number = int(reading.label("rank"))
    rank = run["ranks"].setdefault(number, {"rank": number})
    if reading.scope == "rank":
        rank |= _values(reading)
    elif reading.scope == "custom":
        rank.setdefault("custom", {})[reading.label("name")] = _plain(reading.values["metric"])
    elif reading.scope == "nonfinite":
        rank.setdefault("nonfinite", {})[reading.label("field")] = _plain(reading.values["nonfinite_total"])
    else:
        rank.setdefault("gpus", []).append({"gpu": reading.label("gpu"), "uuid": reading.label("uuid")})


def source_view(state: SourceState) -> Json:
    return {"up": state.up, "problem": state.problem, "devices": state.devices,
            "read_seconds": state.read_seconds, "errors": state.errors}  # fmt: skip


def _with_labels(reading: Reading) -> Json:
    return {**dict(reading.labels), **_values(reading)}


def _values(reading: Reading) -> Json:
    return {name: _plain(value) for name, value in reading.values.items()}


def _plain(value: Value) -> Any:
    if isinstance(value, Histogram):
        return {"bounds": value.bounds, "counts": value.counts, "sum": value.total}
    if isinstance(value, tuple):
        return list(value)
    return as_json(value)
