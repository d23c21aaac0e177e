"""A run is alive as long as its process, whatever that does with the run's files."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.collector.journal.helpers import end, line_of, python
from tests.collector.support import wait_for
from trainvitals.errors import RunInUse
from trainvitals.journal import runs

COPIES = """
import os, shutil, sys, time
from pathlib import Path
from trainvitals.journal import runs
rank = runs.claim(Path(sys.argv[1]), "train", environ={})
shutil.copytree(rank.folder, Path(sys.argv[1]) / "copy")
"""
WAITS = "print('copied', flush=True)\ntime.sleep(600)"
FORKS_AND_WAITS = """
if not os.fork():
    print(os.getpid(), flush=True)
time.sleep(600)
"""
# As a library that forks in C: nothing of Python's hears of it.
LETS_GO_BESIDE_A_CHILD = """
import ctypes
if not ctypes.PyDLL(None).fork():
    time.sleep(600)
rank.release()
print("free", flush=True)
time.sleep(600)
"""


@contextmanager
def training(rest: str, root: Path) -> Iterator[str]:
    """What it says once it is there; it is ended with all that it started."""
    process = python(COPIES + "os.setpgid(0, 0)\n" + rest, root)
    try:
        yield line_of(process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        end(process)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "train" / "process.rank0.json"


def test_who_copies_his_runs_folder_is_alive_and_keeps_it(tmp_path: Path, path: Path) -> None:
    with training(WAITS, tmp_path) as said:
        assert said == "copied"
        assert runs.is_alive(path)
        with pytest.raises(RunInUse, match="'train' is running already"):
            runs.claim(tmp_path, "train", run_id="train", environ={})
    wait_for(lambda: not runs.is_alive(path))
    runs.claim(tmp_path, "train", run_id="train", environ={}).release()


def test_after_that_a_worker_that_outlives_it_is_no_run_either(tmp_path: Path, path: Path) -> None:
    with training(FORKS_AND_WAITS, tmp_path) as worker:
        process = (runs.read_process(path) or {})["pid"]
        assert runs.is_alive(path)
        os.kill(process, signal.SIGKILL)
        wait_for(lambda: not runs.is_alive(path))
        os.kill(int(worker), 0)


def test_a_run_that_let_go_is_over_though_a_child_of_c_code_has_its_files(tmp_path: Path, path: Path) -> None:
    with training(LETS_GO_BESIDE_A_CHILD, tmp_path) as said:
        assert said == "free"
        assert not runs.is_alive(path)
