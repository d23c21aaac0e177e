"""SIGKILL of a training at random moments: every value whose call returned is in the journal."""

import random
import signal
import time
from pathlib import Path

from tests.run.support import lines, run_folders, run_json, started
from trainvitals.journal import runs

KILLS = 20
# Forks one training after the other, for Python's start would take most of the time. What is returned goes through
# memory that outlives the killed, in one store of eight bytes.
TRAININGS = """
import mmap, os, random, signal, sys, time
import trainvitals as tv
from trainvitals.journal import append

append.SLOW_WRITE_SECONDS = 60  # a busy machine makes any write slow, and what is queued may be lost
returned = memoryview(mmap.mmap(-1, 8)).cast("q")
chance = random.Random(int(sys.argv[2]))

def train():
    run = tv.start("kill")
    for number in range(1, 10**9):
        with run.step():
            pass
        run.log(loss=number / 7, text="x" * (number % 300))
        returned[0] = number

for _ in range(int(sys.argv[1])):
    returned[0] = 0
    training = os.fork()
    if not training:
        train()
    while not returned[0]:
        time.sleep(0.0001)
    time.sleep(chance.random() * 0.02)
    os.kill(training, signal.SIGKILL)
    os.waitpid(training, 0)
    print(returned[0], flush=True)
"""


def test_a_killed_training_loses_nothing_that_it_logged(tmp_path: Path) -> None:
    said, errors = started(TRAININGS, KILLS, 7, journal=tmp_path).communicate(timeout=60)
    returned = [int(number) for number in said.split()]
    assert len(returned) == KILLS and errors == ""
    for run, last in zip(sorted(run_folders(tmp_path), key=number_of), returned, strict=True):
        written = lines(run, torn=True)
        steps = [line["step"] for line in written]
        assert steps in (list(range(1, last + 1)), list(range(1, last + 2)))
        assert all(line["loss"] == line["step"] / 7 and "step_duration_seconds" in line for line in written)
        assert run_json(run)["status"] == "running" and not runs.is_alive(run / "process.rank0.json")


def number_of(run: Path) -> int:
    return int(run.name.removeprefix("kill").removeprefix("-") or 1)


def test_a_training_that_is_killed_while_it_starts_keeps_nobody_out(tmp_path: Path) -> None:
    """The next one begins, under a name of its own or the one that was left."""
    script = (
        "import trainvitals as tv\nprint('ready', flush=True)\nwhile True: tv.start('early', run_id='early').finish()"
    )
    chance = random.Random(1)
    for _ in range(5):
        process = started(script, journal=tmp_path)
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(chance.random() * 0.02)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=10)
    done = started("import trainvitals as tv; run = tv.start('early', run_id='early'); run.log(a=1); print(run.id)",
                   journal=tmp_path).communicate(timeout=20)  # fmt: skip
    assert done == ("early\n", "")
