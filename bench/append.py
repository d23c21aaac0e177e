"""One journal record of ten float fields: ours, the least that could be done, and what one would write oneself."""

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from itertools import repeat
from pathlib import Path

import orjson

from bench.rows import Row, Section, quantile
from bench.stage import Stage
from trainvitals.journal.append import Appender

GOAL = 2.2
BLOCK = 1000
RECORD = {f"field_{number}": 1.0 / (3 + number) for number in range(10)}
FLOOR, OWN = "orjson + one write", "json + flush"
Append = Callable[[dict[str, float]], object]
Timings = dict[str, list[int]]
# Sixteen pieces and a sync at the end, as a checkpoint is saved.
WRITER = """
import os, sys
piece = os.urandom(1 << 20) * int(sys.argv[2])
with open(sys.argv[1], "wb") as file:
    for _ in range(16):
        file.write(piece)
    file.flush()
    os.fsync(file.fileno())
"""


def measure(stage: Stage) -> Section:
    folder = stage.folder / "append"
    folder.mkdir()
    with ExitStack() as exits:
        appender = Appender(folder, "ours.jsonl")
        exits.callback(appender.close)
        ways = {"ours": appender.append, FLOOR: _floor(folder, exits), OWN: _own(folder, exits)}
        _blocks(ways, range(5))
        alone = _blocks(ways, range(stage.few_or(10, 150)))
        queued_before = _is_queued(appender)
        beside, size = _beside_checkpoint(stage, folder, ways)
        notes = _notes(appender, size, queued_before)
    return Section("Journal append", _rows(alone, "") + _rows(beside, f", beside a {size} MiB checkpoint"), notes)


def _notes(appender: Appender, size: int, queued_before: bool) -> list[str]:
    when = "before the checkpoint began" if queued_before else "beside the checkpoint"
    return [
        f"Each call is timed by itself, blocks of {BLOCK} take turns. Only ours puts a timestamp in the line, keeps "
        f"NaN, and looks after the file. The checkpoint is {size} MiB, written and synced to the same disk by another "
        "process; the calls are timed until it is done.",
        "Records of ours written and dropped: "
        f"{appender.counts.written:,} and {appender.counts.dropped}."
        + (
            f" A write took over 20 ms {when}: from then on ours went through its queue."
            if _is_queued(appender)
            else ""
        ),
    ]


def _is_queued(appender: Appender) -> bool:
    return getattr(appender, "_queue", None) is not None


def _floor(folder: Path, exits: ExitStack) -> Append:
    fd = os.open(folder / "floor.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    exits.callback(os.close, fd)

    def append(record: dict[str, float]) -> None:
        os.write(fd, orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))

    return append


def _own(folder: Path, exits: ExitStack) -> Append:
    file = exits.enter_context((folder / "own.jsonl").open("a", encoding="utf-8"))

    def append(record: dict[str, float]) -> None:
        file.write(json.dumps(record) + "\n")
        file.flush()

    return append


def _blocks(ways: dict[str, Append], turns: Iterable[object]) -> Timings:
    timings: Timings = {name: [] for name in ways}
    for _ in turns:
        for name, append in ways.items():
            gc.collect()
            timings[name] += _block(append)
    return timings


def _block(append: Append) -> list[int]:
    clock, taken = time.perf_counter_ns, []
    for _ in repeat(None, BLOCK):
        began = clock()
        append(RECORD)
        taken.append(clock() - began)
    return taken


def _beside_checkpoint(stage: Stage, folder: Path, ways: dict[str, Append]) -> tuple[Timings, int]:
    """For as long as the other process writes, and at most a minute."""
    size = stage.few_or(128, 1024)
    path = folder / "checkpoint"
    with stage.scene():
        writer = stage.start("checkpoint", sys.executable, "-c", WRITER, str(path), str(size // 16))
        timings = _blocks(ways, _while_running(writer))
    path.unlink(missing_ok=True)
    return timings, size


def _while_running(writer: "subprocess.Popen[bytes]") -> Iterable[int]:
    deadline = time.monotonic() + 60
    turn = 0
    while turn < 2 or (writer.poll() is None and time.monotonic() < deadline):
        turn += 1
        yield turn


def _rows(timings: Timings, when: str) -> list[Row]:
    samples = f"{len(timings['ours']):,} each"
    rows = []
    for share, label in ((0.5, "p50"), (0.99, "p99")):
        mine, floor, own = (quantile(timings[name], share) * 1e-9 for name in ("ours", FLOOR, OWN))
        what = f"append, {label}{when}"
        rows.append(Row(what, mine, floor, FLOOR, "µs", "≤ 2.2", mine <= GOAL * floor, samples))
        rows.append(Row(what, mine, own, OWN, "µs", samples=samples))
    return rows
