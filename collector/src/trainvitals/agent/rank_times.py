"""Where each rank of a run spends its steps, and which one keeps the others waiting.

rank_times(folder, 100, {})
->  {"ranks": [{"rank": 0, "host": "gpu1", "step": 812, "step_seconds": 0.51, …}], "slowest": {"rank": 6, …}}

Ranks of a run whose collectives keep them together have equally long steps: what tells them apart is what each does
before it waits for the others, data wait and forward pass, as the detector of stragglers has it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainvitals.agent import run_folder
from trainvitals.agent.run_state import as_duration, as_label
from trainvitals.detect.limits import Limits
from trainvitals.detect.stats import median
from trainvitals.journal import layout, runs
from trainvitals.journal.index import step_of
from trainvitals.journal.lines import part
from trainvitals.journal.record import Record

WAIT, FORWARD = "data_wait_seconds", "forward_seconds"
TIMES = (WAIT, FORWARD, "backward_seconds", "optimizer_seconds")
STEP = "step_duration_seconds"
END_BYTES = (1 << 16, 1 << 19, 1 << 22)
Row = dict[str, Any]


def rank_times(folder: Path, last: int, gpu_by_uuid: Mapping[str, str]) -> dict[str, Any]:
    files = layout.training_files(folder)
    processes = {rank: told for path in runs.process_files(folder)
                 if (rank := layout.rank_of(path.name)) is not None and (told := runs.read_process(path))}  # fmt: skip
    ranks = [{"rank": rank, **_process(processes.get(rank), gpu_by_uuid), **_medians(files.get(rank, []), last)}
             for rank in sorted(files.keys() | processes.keys())]  # fmt: skip
    _note_waits(ranks)
    return {"ranks": ranks, "slowest": _slowest(ranks)}


def _process(told: Record | None, gpu_by_uuid: Mapping[str, str]) -> Row:
    gpus = [gpu or uuid for gpu, uuid in run_folder.gpus_of(told, gpu_by_uuid)]
    return {"host": as_label((told or {}).get("host")) or None, "gpus": gpus}


def _medians(files: Sequence[Path], last: int) -> Row:
    steps = _last_steps(files, last)
    row: Row = {"step": max(steps, default=None), "step_seconds": _median(steps, STEP)}
    row |= {name: _median(steps, name) for name in TIMES}
    return row | {"before_collective_seconds": _before_collective(steps)}


def _last_steps(files: Sequence[Path], last: int) -> dict[float, Record]:
    """Lines of one step are one. Of the steps that were written last, which after a resume need not be the highest."""
    steps: dict[float, Record] = {}
    for size in END_BYTES:
        steps = {}
        for line in (line for path in files[-2:] for line in part(path, -size, size)):
            if (step := step_of(line)) is not None:
                steps[step] = {**steps.pop(step, {}), **line}
        if len(steps) >= last:
            break
    return dict(list(steps.items())[-last:])


def _median(steps: Mapping[float, Record], *names: str) -> float | None:
    """Of what the fields come to together in each step that has them all."""
    told = [[as_duration(line.get(name)) for name in names] for line in steps.values()]
    known = [sum(times) for times in told if None not in times]  # type: ignore[arg-type]
    return median(known) if known else None


def _before_collective(steps: Mapping[float, Record]) -> float | None:
    """Ranks that tell no forward pass run freely, as far as is known: whole steps tell."""
    return _median(steps, *TIMES[:2]) or _median(steps, TIMES[1]) or _median(steps, STEP)


def _note_waits(ranks: Sequence[Row]) -> None:
    """Where the wait is told and no forward pass, and wait and step come to the same on all ranks, those wait for each
    other within the step: the shortest of all is the work that each does beside its wait."""
    rows = [row for row in ranks
            if row[FORWARD] is None and row[WAIT] is not None and row["step_seconds"] is not None]  # fmt: skip
    wholes = [row[WAIT] + row["step_seconds"] for row in rows]
    if not rows or max(wholes) >= Limits().straggler * min(wholes):
        return
    work = min(row["step_seconds"] for row in rows)
    for row in rows:
        row["before_collective_seconds"] = row[WAIT] + work


def _slowest(ranks: Sequence[Row]) -> Row | None:
    known = [row for row in ranks if row["before_collective_seconds"]]
    if len(known) < 2:
        return None
    slow = max(known, key=lambda row: row["before_collective_seconds"])
    usual = median(row["before_collective_seconds"] for row in known if row is not slow)
    ratio = slow["before_collective_seconds"] / usual
    return {"rank": slow["rank"], "host": slow["host"], "ratio": ratio, "words": _words(slow, ratio)}


def _words(slow: Row, ratio: float) -> str:
    who = f"rank {slow['rank']}" + (f" on {slow['host']}" if slow["host"] else "")
    if ratio < Limits().straggler:
        return f"no rank is slow: {who} takes {ratio:.2f} times as long as the others"
    what = "for a step" if slow["before_collective_seconds"] == slow["step_seconds"] else "before it waits for them"
    return f"{who} takes {ratio:.2f} times as long as the others {what}"
