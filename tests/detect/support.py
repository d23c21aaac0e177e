"""Lines as a run writes them, and what an engine says of them."""

import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson

from trainvitals.detect.engine import Engine
from trainvitals.detect.finding import Change
from trainvitals.journal.record import encode, seconds, timestamp_at

BEGAN = 1_753_876_800.0
Values = dict[str, Any]


def line(step: int, step_seconds: float = 1.0, **values: Any) -> Values:
    return {"timestamp": timestamp_at(BEGAN + step * step_seconds), "step": step, **values}


def lines(count: int, step_seconds: float = 1.0, **values: Callable[[int], Any]) -> list[Values]:
    """`loss=lambda step: …` for each step from 1 on; what is None is left out."""
    return [
        line(step, step_seconds, **{name: found for name, of in values.items() if (found := of(step)) is not None})
        for step in range(1, count + 1)
    ]


def noisy(level: Callable[[int], float], sigma: float = 0.05, seed: int = 1) -> Callable[[int], float]:
    noise = random.Random(seed)
    return lambda step: level(step) + noise.gauss(0, sigma)


def judged(records: Iterable[Values], engine: Engine | None = None, run: str = "gemma", rank: int = 0) -> list[Change]:
    engine = engine or Engine()
    found: list[Change] = []
    for record in records:
        engine.training(run, rank, [record])
        found += engine.news()
    return found


def with_ticks(records: Iterable[Values]) -> list[Change]:
    """As they come: time passes with each."""
    engine, found = Engine(), list[Change]()
    for record in records:
        found += judged([record], engine) + engine.tick(seconds(record["timestamp"]) or 0.0)
    return found


def opened(changes: Iterable[Change]) -> list[tuple[str, str, int | None]]:
    """Kind, severity and step of each that was opened or became worse."""
    return [(one.finding.kind, one.finding.severity, one.finding.step) for one in changes if one.state != "close"]


def kinds(changes: Iterable[Change]) -> set[str]:
    return {one.finding.kind for one in changes}


def write(folder: Path, records: Sequence[Values], name: str = "training_metrics_20250730_120000.jsonl") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"".join(encode(record) for record in records))
    return folder


def parsed(text: str) -> list[Values]:
    return [orjson.loads(each) for each in text.splitlines()]
