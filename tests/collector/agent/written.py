"""Runs as their trainers leave them, written without a trainer."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from trainvitals.journal.record import encode, timestamp_at

NOON = 1_753_876_800.0
FIRST = "training_metrics_20250730_120000.jsonl"
SECOND = "training_metrics_20250730_130000.jsonl"


def line(step: object, when: float, **values: Any) -> bytes:
    return encode({"timestamp": timestamp_at(when), "step": step, **values})


def losses(values: Iterable[tuple[int, float]], began: float = NOON, **more: Any) -> bytes:
    """A line a second."""
    return b"".join(line(step, began + at, loss=loss, **more) for at, (step, loss) in enumerate(values))


def steps(first: int, last: int, loss: float = 1.0, began: float = NOON, **more: Any) -> bytes:
    return losses(((step, loss) for step in range(first, last + 1)), began, **more)


def run_folder(root: Path, name: str = "gemma", told: Mapping[str, Any] | None = None) -> Path:
    folder = root / "runs" / name
    (folder / "agent").mkdir(parents=True)
    if told is not None:
        (folder / "run.json").write_bytes(encode({"run": name, **told}))
    return folder
