"""The runs of a journal, the newest first, as far back as it goes.

listing(root, host, live, 100)  ->  {"runs": [{"run": "gemma", "status": "finished", "steps": 20000, …}], "more": 0}
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from trainvitals.agent import run_folder
from trainvitals.agent.rank_index import told_names
from trainvitals.agent.run_state import RunState, as_label
from trainvitals.journal import layout, runs
from trainvitals.journal.lines import part
from trainvitals.journal.record import Record, as_json, as_number, seconds, timestamp_at
from trainvitals.sinks import run_info

END_BYTES, BEGINNING_BYTES = 1 << 16, 1 << 14
MAX_FIELDS = 1000


def find(root: Path, run: str) -> Path:
    """The folder of a run; LookupError where the journal has none of that name."""
    folder = layout.run_folder(root, run)
    with suppress(OSError, ValueError):
        if folder.name == run and run_folder.is_run(folder):
            return folder
    raise LookupError(f"run: {run!r} is not in this journal: /api/v1/runs lists those that are")


def listing(root: Path, host: str, live: Mapping[str, RunState], limit: int) -> dict[str, Any]:
    begun = sorted(((began(folder) or _touched(folder), folder) for folder in _folders(root)), reverse=True)
    shown = [_row(folder, host, live.get(folder.name)) for _, folder in begun[:limit]]
    return {"runs": shown, "more": max(0, len(begun) - limit)}


def _folders(root: Path) -> list[Path]:
    return [folder for folder in layout.children(root / "runs") if run_folder.is_run(folder)]


def began(folder: Path) -> float | None:
    told = runs.read_json(folder / layout.RUN_FILE) or {}
    processes = [] if told.get("start") else runs.process_files(folder)
    stamps = [told.get("start"), *((runs.read_process(path) or {}).get("started") for path in processes)]
    return min((when for stamp in stamps if (when := seconds(stamp)) is not None), default=None)


def _touched(folder: Path) -> float:
    with suppress(OSError):
        return folder.stat().st_mtime
    return 0.0


def _row(folder: Path, host: str, state: RunState | None) -> dict[str, Any]:
    told, files = runs.read_json(folder / layout.RUN_FILE) or {}, layout.training_files(folder)
    first = min(files, default=0)
    lines = _lines_at(files.get(first, []))
    return {"run": folder.name, "name": as_label(told.get("name") or folder.name), **_standing(folder, told, state),
            "framework": as_label(told.get("framework")), "world_size": _whole(told.get("world_size")),
            "planned_steps": _whole(told.get("planned_steps")), "steps": _whole(_last(lines, "step")),
            "loss": _last(lines, "loss"), "ranks": sorted(files),
            "fields": sorted(_fields(lines) | told_names(folder, host, first))[:MAX_FIELDS]}  # fmt: skip


def _standing(folder: Path, told: Record, state: RunState | None) -> dict[str, Any]:
    """Of a run that was copied here without its processes' files nothing is known but what it says."""
    info, start = run_info.read(folder), began(folder)
    is_known = told.get("status") in layout.ENDINGS or bool(runs.process_files(folder))
    status = (state.status if state else "") or (info.status if is_known else "unknown")
    ended = (state.ended if state else None) or info.ended
    return {"status": status, "live": status == "running", "start": None if start is None else timestamp_at(start),
            "end": None if ended is None or status == "running" else timestamp_at(ended)}  # fmt: skip


def _lines_at(files: Sequence[Path]) -> list[Record]:
    """The first lines and the last."""
    return [] if not files else part(files[0], 0, BEGINNING_BYTES) + part(files[-1], -END_BYTES, END_BYTES)


def _last(lines: Sequence[Record], field: str) -> float | str | None:
    numbers = (as_number(line.get(field)) for line in reversed(lines))
    found = next((number for number in numbers if number is not None), None)
    return None if found is None else as_json(found)


def _whole(value: object) -> int | None:
    number = as_number(value)
    return int(number) if number is not None and abs(number) < 2**53 else None


def _fields(lines: Sequence[Record]) -> set[str]:
    """Most lines tell the same: a name that is known is not looked at again."""
    found = set[str]()
    for line in lines:
        found.update(name for name in line.keys() - found if as_number(line[name]) is not None)
    return {as_label(name) for name in found} - {"step"}
