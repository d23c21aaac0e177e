"""Training in a thread: what ends the thread ends the run that it started, while the program goes on."""

from pathlib import Path

import pytest

from tests.run.support import events, python, run_folders, run_json

PROGRAM = """
import sys, threading
import trainvitals as tv
from trainvitals.run.off import OffRun
start = tv.start if {monitored} else lambda *_, **__: OffRun()
{before}
def train():
    run = start("end")
    with run.step():
        pass
    run.log(loss=1.0)
    {rest}
thread = threading.Thread(target=train, name="trainer")
thread.start()
thread.join()
print(tv.current().name if {monitored} else {left!r})
"""
# What the thread does at last -> the run's status and its error, and what runs when the thread is over.
ENDS = {
    "1 / 0": ("crashed", "ZeroDivisionError: division by zero", ""),
    "sys.exit('no data')": ("crashed", "SystemExit: no data", ""),
    "run.finish(); 1 / 0": ("finished", None, ""),
    "pass": ("finished", None, "end"),
}
BEFORE = {
    "nobody": "",
    "a hook": "threading.excepthook = lambda told: print('mine', told.exc_type.__name__, told.thread.name)",
}


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("rest", ENDS)
def test_a_thread_that_fails_ends_its_run_and_is_told_of_as_before(tmp_path: Path, rest: str, before: str) -> None:
    status, error, left = ENDS[rest]
    words = {"rest": rest, "before": BEFORE[before], "left": left}
    alone = python(PROGRAM.format(monitored=False, **words), journal=tmp_path / "none")
    done = python(PROGRAM.format(monitored=True, **words), journal=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (alone.returncode, alone.stdout, alone.stderr)
    told = run_json(run_folders(tmp_path)[0])
    assert (told["status"], told.get("error")) == (status, error)
    assert [end["status"] for end in events(run_folders(tmp_path)[0], "end")] == [status]


def test_a_thread_that_fails_ends_no_run_that_was_started_elsewhere(tmp_path: Path) -> None:
    script = """
import threading
import trainvitals as tv
run = tv.start("end")
threading.excepthook = lambda _: None
thread = threading.Thread(target=lambda: run.log(loss=1 / 0))
thread.start()
thread.join()
print(run.status)
"""
    assert python(script, journal=tmp_path).stdout == "running\n"
    assert run_json(run_folders(tmp_path)[0])["status"] == "finished"
