"""Alive is who holds the lock: however a process ends, and whatever it forked, the kernel tells."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collector.journal.helpers import end, line_of, open_descriptors, python
from tests.collector.support import wait_for
from trainvitals.journal import runs

RANK = """
import os, signal, sys, time
from pathlib import Path
from trainvitals.journal import runs
rank = runs.claim(Path(sys.argv[1]), "train", environ={})
path = rank.folder / "process.rank0.json"
"""
HOLD = RANK + "print('held', flush=True); time.sleep(600)"
UNTIL_TOLD = RANK + "print('held', flush=True); sys.stdin.readline()"
RELEASE = (
    RANK + "print('held', flush=True); sys.stdin.readline(); rank.release(); print('free', flush=True); time.sleep(600)"
)
READS_ITSELF = (
    RANK
    + """
for _ in range(3):
    assert runs.is_alive(path) and runs.holder(path) == os.getpid() and runs.read_process(path)["pid"] == os.getpid()
print('held', flush=True)
time.sleep(600)
"""
)
FORKS = (
    RANK
    + """
worker = os.fork()
if not worker:
    time.sleep(600)
print(worker, flush=True)
time.sleep(600)
"""
)
FORKED_RELEASES = (
    RANK
    + """
worker = os.fork()
if not worker:
    rank.release()
    runs.read_process(path)
    os._exit(0)
os.waitpid(worker, 0)
print('held', flush=True)
time.sleep(600)
"""
)


@pytest.fixture
def processes() -> Iterator[list["subprocess.Popen[str]"]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        end(process)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "train" / "process.rank0.json"


def start(processes: list["subprocess.Popen[str]"], script: str, root: Path) -> tuple["subprocess.Popen[str]", str]:
    process = python(script, root)
    processes.append(process)
    said = line_of(process)
    assert said
    return process, said


Processes = list["subprocess.Popen[str]"]


def test_who_runs_is_alive_and_known_by_number(tmp_path: Path, path: Path, processes: Processes) -> None:
    process, _ = start(processes, HOLD, tmp_path)
    assert runs.is_alive(path)
    assert runs.holder(path) == process.pid


def test_who_exits_is_not(tmp_path: Path, path: Path, processes: Processes) -> None:
    process, _ = start(processes, UNTIL_TOLD, tmp_path)
    assert runs.is_alive(path)
    process.communicate("end\n", timeout=10)
    assert not runs.is_alive(path)
    assert runs.holder(path) is None


def test_who_lets_go_is_not(tmp_path: Path, path: Path, processes: Processes) -> None:
    process, _ = start(processes, RELEASE, tmp_path)
    assert process.stdin is not None
    process.stdin.write("release\n")
    process.stdin.flush()
    assert line_of(process) == "free"
    assert process.poll() is None
    assert not runs.is_alive(path)


def test_who_is_killed_is_not(tmp_path: Path, path: Path, processes: Processes) -> None:
    process, _ = start(processes, HOLD, tmp_path)
    process.kill()
    wait_for(lambda: not runs.is_alive(path))
    said = runs.read_process(path)
    assert said is not None
    assert said["pid"] == process.pid


def test_who_hangs_is_alive(tmp_path: Path, path: Path, processes: Processes) -> None:
    process, _ = start(processes, HOLD, tmp_path)
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    assert runs.holder(path) == process.pid


def test_a_forked_worker_that_outlives_its_parent_is_no_run(tmp_path: Path, path: Path, processes: Processes) -> None:
    process, said = start(processes, FORKS, tmp_path)
    worker = int(said)
    try:
        assert runs.holder(path) == process.pid
        process.kill()
        wait_for(lambda: not runs.is_alive(path))
        os.kill(worker, 0)
    finally:
        os.kill(worker, signal.SIGKILL)


def test_a_worker_cannot_end_what_its_parent_holds(tmp_path: Path, path: Path, processes: Processes) -> None:
    process, _ = start(processes, FORKED_RELEASES, tmp_path)
    assert runs.holder(path) == process.pid


def test_reading_ones_own_file_does_not_drop_the_lock(tmp_path: Path, path: Path, processes: Processes) -> None:
    process, _ = start(processes, READS_ITSELF, tmp_path)
    assert runs.holder(path) == process.pid


def test_a_worker_knows_that_its_parent_holds_the_run_and_not_itself(tmp_path: Path, path: Path) -> None:
    rank = runs.claim(tmp_path, "train", environ={})
    worker = os.fork()
    if worker == 0:
        os._exit(0 if runs.holder(path) == os.getppid() and not rank.is_mine else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]) == 0
    assert rank.is_mine


def test_asking_takes_no_lock(tmp_path: Path, path: Path) -> None:
    rank = runs.claim(tmp_path, "train", environ={})
    rank.release()
    before = open_descriptors()
    for _ in range(10):
        assert not runs.is_alive(path)
    assert open_descriptors() == before
    assert runs.claim(tmp_path, "train", resume=True, environ={}).run == "train"


def test_letting_go_twice_closes_nobody_elses_file(tmp_path: Path) -> None:
    rank = runs.claim(tmp_path, "train", environ={})
    rank.release()
    other = os.open(tmp_path / "other", os.O_WRONLY | os.O_CREAT)
    rank.release()
    os.write(other, b"still open")
    os.close(other)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
def test_a_broken_process_file_says_nothing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "process.rank0.json"
    path.write_bytes(content)
    assert runs.read_process(path) is None
    assert runs.read_json(path) is None
    assert not runs.is_alive(path)


def test_what_is_not_there_or_no_file_is_not_alive(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "process.rank1.json")
    (tmp_path / "process.rank2.json").mkdir()
    for path in [tmp_path / "process.rank0.json", *runs.process_files(tmp_path)]:
        assert not runs.is_alive(path)
        assert runs.read_process(path) is None
    assert runs.process_files(tmp_path / "none") == []


def test_a_small_file_is_read_only_where_it_is_one(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "small").write_bytes(b'{"n":1}')
    assert [runs.read_json(tmp_path / name) for name in ("pipe", "folder", "device", "none")] == [None] * 4
    assert runs.read_json(tmp_path / "small") == {"n": 1}


def test_of_a_file_that_is_too_large_no_more_is_read(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b'{"n":"' + b"x" * (1 << 20) + b'"}')
    assert runs.read_json(tmp_path / "large") is None
