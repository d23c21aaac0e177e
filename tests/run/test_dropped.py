"""What never got into a journal is counted."""

import fcntl
import os
from pathlib import Path

import trainvitals as tv
from tests.collector.support import wait_for
from tests.run.support import lines, python, run_folders
from trainvitals.journal import claiming

# Registered first, it is called last.
SHORT = """
import atexit
atexit.register(lambda: print(run.dropped))
import trainvitals as tv
run = tv.start("short")
for _ in range(30):
    run.log(loss=1.0)
"""


def test_what_waited_for_a_journal_that_never_came_is_counted(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    run = tv.start("nowhere", dir=tmp_path / "file" / "journal")
    for _ in range(30):
        run.log(loss=1.0)
    assert run.dropped == 0
    run.finish()
    wait_for(lambda: run.dropped == 30)


def test_what_waited_for_a_lock_until_the_process_ended_is_counted_and_told(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    lock = claiming.own_lock(tmp_path)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = python(SHORT, journal=tmp_path)
    (said,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout, run_folders(tmp_path)) == (0, "30\n", [])
    assert f"30 records are lost: {tmp_path} did not answer until the process ended" in said and str(lock) in said


def test_another_who_holds_everybodys_lock_costs_no_record(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    with open(tmp_path / "runs" / ".claim", "w") as file:
        os.fchmod(file.fileno(), 0o666)
        fcntl.flock(file, fcntl.LOCK_EX)
        done = python(SHORT, journal=tmp_path)
    (run,) = run_folders(tmp_path)
    assert (done.stdout, done.stderr, len(lines(run))) == ("0\n", "", 30)
