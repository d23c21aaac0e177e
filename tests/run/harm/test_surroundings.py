"""A training in surroundings that fail: the agent, the clock, the home, other runs, Python's own flags."""

import json
import shutil
import signal
import struct
import subprocess
from pathlib import Path

import pytest

from tests.collector.journal.helpers import small_disk
from tests.collector.support import serving
from tests.run.harm.conftest import Folders
from tests.run.support import (
    Outcome,
    Training,
    assert_harmless,
    environment,
    lines,
    losses,
    python,
    run_folders,
    run_json,
    started,
    stop,
)
from trainvitals.journal.layout import SHARED_ROOT
from trainvitals.journal.record import seconds

ALL = set(range(1, 151))
CLOCK = Path(__file__).with_name("clock.c")
HOLD = """
import fcntl, os, sys, time
os.makedirs(f"{sys.argv[1]}/runs", exist_ok=True)
file = open(f"{sys.argv[1]}/runs/.claim", "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(60)
"""
RUN = """
import sys, time
import trainvitals as tv
run = tv.start("harm", run_id=sys.argv[1])
run.log(other=1)
print(run.id, flush=True)
time.sleep(60)
"""


def test_an_agent_that_is_killed_midway(folders: Folders, alone: Outcome) -> None:
    def attempt(number: int) -> Outcome:
        with serving(folders[number] / "journal", "--simulate", "1") as agent:
            training = Training(folders[number], "--gate", "60")
            training.pass_gate(agent.process.kill)
            return training.outcome()

    outcome = assert_harmless(attempt, alone, warnings=0)
    assert set(losses(run_folders(outcome.journal)[0])) == ALL


def test_an_agent_of_its_own(folders: Folders, alone: Outcome) -> None:
    start = json.dumps({"agent": True})
    outcome = assert_harmless(lambda number: Training(folders[number], "--start", start).outcome(), alone)
    assert set(losses(run_folders(outcome.journal)[0])) == ALL


def test_no_agent_at_all(folders: Folders, alone: Outcome) -> None:
    outcome = assert_harmless(lambda number: Training(folders[number]).outcome(), alone, warnings=0)
    (run,) = run_folders(outcome.journal)
    assert set(losses(run)) == ALL and run_json(run)["config"] == {"lr": 0.1, "layers": 2}


def test_a_clock_that_is_set_back(folders: Folders, alone: Outcome) -> None:
    if not shutil.which("gcc"):
        pytest.skip("no C compiler")
    library = folders[0] / "clock.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-o", library, CLOCK], check=True)

    def attempt(number: int) -> Outcome:
        offset = folders[number] / "offset"
        offset.write_bytes(struct.pack("q", 0))
        env = environment(folders[number] / "journal", LD_PRELOAD=str(library), CLOCK_OFFSET_FILE=str(offset))
        training = Training(folders[number], "--gate", "60", env=env)
        training.pass_gate(lambda: offset.write_bytes(struct.pack("q", -26 * 3600)))
        return training.outcome()

    outcome = assert_harmless(attempt, alone, warnings=0)
    (run,) = run_folders(outcome.journal)
    assert set(losses(run)) == ALL and run_json(run)["status"] == "finished"
    stamps = [seconds(line["timestamp"]) or 0.0 for line in lines(run)]
    assert max(stamps) - min(stamps) > 25 * 3600


# Where the stack runs there is a journal for all, which would do in place of the home.
HIDE = f'[ ! -d {SHARED_ROOT} ] || mount -t tmpfs -o ro none {SHARED_ROOT}; exec "$@"'
WITHOUT_SHARED_ROOT = ("unshare", "--mount", "sh", "-c", HIDE, "sh")


@pytest.mark.parametrize("home", ["read-only", "none", "nowhere"])
def test_a_home_that_holds_nothing(folders: Folders, alone: Outcome, home: str) -> None:
    def attempt(number: int) -> Outcome:
        with small_disk(folders[number] / "home") as disk:
            env = environment(HOME=str(disk), XDG_STATE_HOME="")
            if home == "none":
                env = {key: value for key, value in env.items() if key != "HOME"} | {
                    "TRAINVITALS_DIR": "~nobody-here/x"
                }
            if home == "nowhere":
                env |= {"HOME": "/dev/null", "TRAINVITALS_DIR": "relative/\udc80 folder"}
            subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
            return Training(folders[number], env=env, command=WITHOUT_SHARED_ROOT).outcome()

    assert_harmless(attempt, alone, warnings=1)


def test_another_run_of_that_id_that_lives(folders: Folders, alone: Outcome) -> None:
    def attempt(number: int) -> Outcome:
        other = started(RUN, "taken", journal=folders[number] / "journal")
        try:
            assert other.stdout is not None and other.stdout.readline() == "taken\n"
            return Training(folders[number], "--start", json.dumps({"run_id": "taken"})).outcome()
        finally:
            stop(other)

    outcome = assert_harmless(attempt, alone, warnings=1)
    assert "run 'taken' is running already" in outcome.said[0]
    (run,) = run_folders(outcome.journal)
    assert not losses(run) and [line["other"] for line in lines(run)] == [1]


def test_somebody_who_hangs_while_claiming_a_run(folders: Folders, alone: Outcome) -> None:
    def attempt(number: int) -> Outcome:
        journal = folders[number] / "journal"
        holder = started(HOLD, journal, journal=journal)
        try:
            assert holder.stdout is not None and holder.stdout.readline() == "held\n"
            holder.send_signal(signal.SIGSTOP)
            training = Training(folders[number], "--gate", "140")
            training.pass_gate(lambda: stop(holder))
            return training.outcome()
        finally:
            stop(holder)

    outcome = assert_harmless(attempt, alone, warnings=0)
    (run,) = run_folders(outcome.journal)
    assert set(losses(run)) == ALL and run_json(run)["status"] == "finished"


@pytest.mark.parametrize("flags", [("-O",), ("-W", "error"), ("-X", "dev"), ("-OO", "-B", "-s")])
def test_flags_of_pythons(folders: Folders, alone: Outcome, flags: tuple[str, ...]) -> None:
    outcome = assert_harmless(lambda number: Training(folders[number], python=flags).outcome(), alone, warnings=0)
    assert set(losses(run_folders(outcome.journal)[0])) == ALL


@pytest.mark.parametrize("value", ["off", "0", "OFF"])
def test_switched_off_it_leaves_nothing(tmp_path: Path, value: str) -> None:
    script = "import trainvitals as tv; run = tv.start('x'); run.log(a=1); run.finish(); print(bool(run), run.status)"
    done = python(script, journal=tmp_path / "journal", TRAINVITALS=value)
    assert (done.stdout, done.stderr, done.returncode) == ("False off\n", "", 0)
    assert not (tmp_path / "journal").exists()
