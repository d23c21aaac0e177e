"""`trainvitals replay FOLDER --json` in this process, and its lines as findings.

replayed(folder)  ->  [Found("TrainingNonFinite", "page", run="gemma", rank=0, gpu=None, first=1772438700.0, …)]
"""

import contextlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainvitals.journal.record import seconds


@dataclass(frozen=True)
class Found:
    """`cause`: the kind under which it is told, where it is no message of its own; `escalated`: when it became as
    severe as it is, where it was less before."""

    kind: str
    severity: str
    run: str
    rank: int | None
    gpu: int | None
    step: int | None
    first: float
    last: float
    what: str = ""
    cause: str = ""
    escalated: float | None = None

    @property
    def when(self) -> float:
        return self.first if self.escalated is None else self.escalated


class ReplayFailed(Exception):
    """With what the command said."""


def replayed(folder: Path, *arguments: str) -> list[Found]:
    from trainvitals.cli import main

    out, complaints = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(complaints):
        status = main(["replay", str(folder), "--json", *arguments])
    if status:
        raise ReplayFailed(f"replay ended with {status}: {complaints.getvalue().strip()[-300:]}")
    return [found for line in out.getvalue().splitlines() if line.strip() for found in read(json.loads(line))]


def read(line: dict[str, Any]) -> Iterator[Found]:
    """The finding of a line, then what was told along with it: that has the severity and the times of its cause."""
    yield _found(line, line, str(line.get("cause") or ""))
    for one in line.get("evidence") or ():
        if isinstance(one, dict) and one.get("kind"):
            yield _found(one, line, str(line["kind"]))


def _found(one: dict[str, Any], message: dict[str, Any], cause: str) -> Found:
    first = _time(message.get("first_timestamp"))
    last = _time(message.get("last_timestamp"))
    escalated = None if message.get("escalated_timestamp") is None else _time(message["escalated_timestamp"])
    return Found(str(one["kind"]), str(message["severity"]), str(one.get("run") or ""), _number(one.get("rank")),
                 _number(one.get("gpu")), _number(one.get("step")), first, last, str(one.get("what", "")),
                 cause, escalated)  # fmt: skip


def _time(stamp: object) -> float:
    when = stamp if isinstance(stamp, float | int) else seconds(stamp)
    if when is None:
        raise ReplayFailed(f"a timestamp of a finding is {stamp!r}: it is to say when it was told")
    return float(when)


def _number(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) or (isinstance(value, str) and value.isdigit()) else None
