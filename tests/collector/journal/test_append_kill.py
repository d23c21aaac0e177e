"""SIGKILL of a writer at random times: every record whose append returned is there, and at most one line is broken."""

import json
from pathlib import Path

import pytest

from tests.collector.journal.helpers import end, line_of, python
from trainvitals.journal.record import decode

# Forks one writer after the other, for a start of Python each would take most of the time. Each tells the
# number of its last append that returned through memory that outlives it.
WRITERS = """
import mmap, os, random, signal, sys, time
from pathlib import Path
from trainvitals.journal import append
from trainvitals.journal.append import Appender

append.SLOW_WRITE_SECONDS = 60  # a busy machine makes any write slow, and the queue loses what it holds
folder, max_bytes, rounds, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
name, suffix = ("training_metrics", ".jsonl") if max_bytes else ("events.jsonl", "")
# One store of eight bytes, which a kill cannot come in the middle of: struct clears them first.
returned = memoryview(mmap.mmap(-1, 8)).cast("q")
chance = random.Random(seed)

def write(round):
    appender, number = Appender(folder, name, suffix=suffix, max_bytes=max_bytes), 0
    while True:
        long = number % 97 == 0
        if appender.append({"round": round, "n": number, "text": "x" * (150_000 if long else number % 50)}):
            returned[0] = number
        number += 1

deadline = time.monotonic() + 120
for round in range(rounds):
    returned[0] = -1
    writer = os.fork()
    if not writer:
        write(round)
    # Every other one is left alone until it has written, however busy the machine is; the rest may be killed before.
    while round % 2 and returned[0] < 0 and time.monotonic() < deadline:
        time.sleep(0.0005)
    time.sleep(chance.random() * 0.012)
    os.kill(writer, signal.SIGKILL)
    os.waitpid(writer, 0)
    print(returned[0], flush=True)
"""
ROUNDS = 100


def records(path: Path) -> list[tuple[int, int]]:
    """Round and number of every line; only what follows the last line end may be broken."""
    *lines, _broken = path.read_bytes().split(b"\n")
    return [(record["round"], record["n"]) for record in map(decode, lines)]


@pytest.mark.parametrize("max_bytes", [0, 400_000], ids=["a file of a fixed name", "files that rotate"])
def test_a_killed_writer_loses_nothing_that_it_was_told_is_written(tmp_path: Path, max_bytes: int) -> None:
    process = python(WRITERS, tmp_path, max_bytes, ROUNDS, max_bytes + 1)
    try:
        returned = [json.loads(line_of(process)) for _ in range(ROUNDS)]
    finally:
        end(process)
    found = [record for path in sorted(tmp_path.iterdir()) for record in records(path)]
    for number, last in enumerate(returned):
        written = [n for at, n in found if at == number]
        assert written in (list(range(last + 1)), list(range(last + 2))), f"round {number}"
    assert sum(last >= 0 for last in returned) >= ROUNDS // 2
