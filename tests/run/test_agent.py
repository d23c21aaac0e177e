"""`tv.start(..., agent=True)`: an agent for as long as the run lasts, where none listens."""

import os
import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collector.support import serving, wait_for
from tests.run.support import environment, events, python, run_folders, run_json, started

RUN = """
import json, os, sys, time
import trainvitals as tv
began = time.perf_counter()
run = tv.start("x", agent=True)
print(json.dumps(time.perf_counter() - began), flush=True)
run.log(loss=1.0)
exec(sys.argv[1])
"""
WAIT = "sys.stdin.readline(); run.finish(); print('finished', flush=True); sys.stdin.readline()"


@pytest.fixture(autouse=True)
def _none_left(tmp_path: Path) -> Iterator[None]:
    yield
    wait_for(lambda: not agents(tmp_path))


def agents(journal: Path) -> list[int]:
    """Processes that serve this journal."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            is_over = (folder / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            continue
        if b"serve" in words and os.fsencode(journal) in words and not is_over:
            found.append(int(folder.name))
    return found


def address(process: "subprocess.Popen[str]") -> str:
    """As it was printed."""
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.fullmatch(r"trainvitals: page +(http://127\.0\.0\.1:\d+)/\n", line):
            return found[1]
    raise AssertionError("no address")


def tell(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_it_shows_the_run_and_ends_with_it(tmp_path: Path) -> None:
    process = started(RUN, WAIT, journal=tmp_path)
    assert process.stdout is not None
    assert float(process.stdout.readline()) < 1
    page = address(process)
    with urllib.request.urlopen(f"{page}/metrics", timeout=10) as answer:
        assert answer.status == 200
    assert len(agents(tmp_path)) == 1
    tell(process)
    assert process.stdout.readline() == "finished\n"
    wait_for(lambda: not agents(tmp_path))  # while the trainer goes on
    assert process.communicate("\n", timeout=20)[1] == ""
    assert process.returncode == 0 and run_json(run_folders(tmp_path)[0])["status"] == "finished"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_its_trainer_however_that_ends(tmp_path: Path, number: int) -> None:
    process = started(RUN, WAIT, journal=tmp_path)
    assert process.stdout is not None and process.stdout.readline()
    address(process)
    process.send_signal(number)
    process.communicate(timeout=20)
    wait_for(lambda: not agents(tmp_path))
    told = run_json(run_folders(tmp_path)[0])["status"]
    assert told == {signal.SIGKILL: "running"}.get(signal.Signals(number), "preempted")


def test_one_that_listens_already_is_enough(tmp_path: Path) -> None:
    with serving(tmp_path):
        done = python(RUN, "time.sleep(1.5); print(run.id)", journal=tmp_path)
        assert done.stderr == "" and done.stdout.splitlines()[1] == "x" and len(agents(tmp_path)) == 1


def test_runs_of_one_process_share_it_and_other_local_ranks_start_none(tmp_path: Path) -> None:
    rest = "other = tv.start('y', agent=True); other.finish(); " + WAIT
    process = started(RUN, rest, journal=tmp_path, RANK="0", LOCAL_RANK="0", WORLD_SIZE="2")
    second = started(RUN, WAIT, journal=tmp_path, RANK="1", LOCAL_RANK="1", WORLD_SIZE="2")
    address(process)
    assert len(agents(tmp_path)) == 1
    for one in (second, process):
        _, errors = one.communicate("\n\n", timeout=20)
        assert errors == ""
    assert {path.name for path in run_folders(tmp_path)[0].glob("process.*")} == {
        "process.rank0.json", "process.rank1.json"
    }  # fmt: skip


def test_a_short_run_does_not_wait_for_it(tmp_path: Path) -> None:
    done = python(RUN, "run.finish()", journal=tmp_path, flags=("-W", "error", "-X", "dev"))
    assert done.returncode == 0 and "Error" not in done.stderr and "Warning" not in done.stderr, done.stderr
    assert [end["status"] for end in events(run_folders(tmp_path)[0], "end")] == ["finished"]


def test_without_the_web_server_one_line_names_what_to_install(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(
        "import sys\n"
        "class Hide:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name in ('starlette', 'uvicorn'): raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Hide())\n"
    )
    path = f"{hidden}:{environment()['PYTHONPATH']}"
    done = python(RUN, "time.sleep(2); run.finish(); print('over')", journal=tmp_path / "journal", PYTHONPATH=path)
    assert done.stdout.endswith("over\n") and done.returncode == 0
    assert len(done.stderr.splitlines()) == 1 and "collector[web]" in done.stderr


def test_it_is_not_started_where_nobody_asks_for_it(tmp_path: Path) -> None:
    python("import time, trainvitals as tv; tv.start('x'); time.sleep(0.3)", journal=tmp_path)
    assert not (tmp_path / "gpu").exists()
