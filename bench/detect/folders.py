"""Traces of others as journal folders, in a temporary place.

write_run(folder, {6: [{"timestamp": …, "step": 1, "step_duration_seconds": 4.3}]})
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.detect.scenarios.lines import LineFile, write_json
from trainvitals.journal.layout import stamped, training_suffix
from trainvitals.journal.record import timestamp_at

START = 1772438400.0
Line = dict[str, Any]


def stamp(since: float) -> str:
    return timestamp_at(START + since)


def write_run(root: Path, name: str, ranks: Mapping[int, Iterable[Line]], ended: float) -> Path:
    """A run that finished so many seconds after its start."""
    folder = root / "runs" / name
    for rank, lines in ranks.items():
        file = LineFile(folder / stamped("training_metrics", training_suffix(rank, max(ranks) + 1), START))
        for line in lines:
            file.add(line)
        file.close()
        write_json(folder / f"process.rank{rank}.json", {
            "host": "node-a", "boot_id": "a", "pid": 4000 + rank, "launcher": "a:3999:77", "rank": rank,
            "world_size": max(ranks) + 1, "started": stamp(0)})  # fmt: skip
        events = LineFile(folder / f"events.rank{rank}.jsonl")
        events.add({"timestamp": stamp(ended), "event": "end", "status": "finished"})
        events.close()
    write_json(folder / "run.json", {
        "run": name, "name": name, "framework": "", "world_size": max(ranks) + 1, "planned_steps": None, "tags": [],
        "config": {}, "start": stamp(0), "end": stamp(ended), "status": "finished"})  # fmt: skip
    return folder
