"""A signal to a training that sits in C code ends it as it would have ended alone, and its status is told."""

import signal
import subprocess
from pathlib import Path

import pytest

from tests.run.support import python, run_folders, run_json, started

pytest.importorskip("torch", reason="torch is not installed: make trainers")
# A key derivation of hours, in C and without the interpreter's lock.
SITS_IN_C = """
import hashlib, os, signal, sys
import torch
import trainvitals as tv
{before}
run = tv.start("stuck")
run.log(loss=1.0)
{after}
print("in C", flush=True)
hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)
"""


def _started(tmp_path: Path, before: str = "", after: str = "") -> "subprocess.Popen[str]":
    process = started(SITS_IN_C.format(before=before, after=after), journal=tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "in C\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_it_dies_of_the_signal_and_was_preempted(tmp_path: Path, number: signal.Signals) -> None:
    process = _started(tmp_path)
    process.send_signal(number)
    assert process.wait(timeout=20) == -number
    told = run_json(run_folders(tmp_path)[0])
    assert (told["status"], told["error"]) == ("preempted", number.name)


def test_it_does_also_where_another_signal_was_handled_before(tmp_path: Path) -> None:
    before = "signal.signal(signal.SIGUSR1, lambda *_: None)"
    process = _started(tmp_path, before, "os.kill(os.getpid(), signal.SIGUSR1)")
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == -signal.SIGTERM


def test_whoever_started_it_with_nohup_keeps_it_when_the_terminal_is_closed(tmp_path: Path) -> None:
    process = _started(tmp_path, "signal.signal(signal.SIGHUP, signal.SIG_IGN)")
    try:
        process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=2)
    finally:
        process.kill()
        process.communicate(timeout=20)


def test_where_the_run_has_a_handler_of_its_own_nothing_is_done_in_its_place(tmp_path: Path) -> None:
    process = _started(tmp_path, "signal.signal(signal.SIGTERM, lambda *_: None)")
    try:
        process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=2)
    finally:
        process.kill()
        process.communicate(timeout=20)


FORKS = """
import os, signal, sys, time
import torch
import trainvitals as tv
run = tv.start("parent")
child = os.fork()
if not child:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(5))
    time.sleep(30)
time.sleep(0.5)
os.kill(child, signal.SIGTERM)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
time.sleep(1.0)
run.finish()
"""


def test_a_childs_signals_are_not_the_parents(tmp_path: Path) -> None:
    ended = python(FORKS, journal=tmp_path)
    assert (ended.stdout, ended.returncode) == ("5\n", 0)
    assert run_json(run_folders(tmp_path)[0])["status"] == "finished"
