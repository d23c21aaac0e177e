"""Runs of processes that others start, number and end: multiprocessing, ranks by hand, clocks that differ."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import trainvitals as tv
from tests.run.support import environment, events, lines, python, run_folders, run_json
from trainvitals.journal import layout

CHILD = """
import multiprocessing, sys
import trainvitals as tv

def well():
    tv.start("child").log(loss=1.0)

def badly():
    tv.start("child").log(loss=1.0)
    raise ValueError("no data")

def by_exit():
    tv.start("child").log(loss=1.0)
    sys.exit(3)

if __name__ == "__main__":
    process = multiprocessing.get_context(sys.argv[1]).Process(target=globals()[sys.argv[2]])
    process.start()
    process.join()
    print(process.exitcode)
"""
HOW = {"well": ("0", "finished", None), "badly": ("1", "crashed", "ValueError: no data"),
       "by_exit": ("3", "crashed", "SystemExit: 3")}  # fmt: skip


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_a_process_of_multiprocessing_says_how_its_run_ended(tmp_path: Path, method: str, how: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(CHILD)
    done = subprocess.run([sys.executable, script, method, how], capture_output=True, text=True, check=True,
                          timeout=60, env=environment(tmp_path))  # fmt: skip
    code, status, error = HOW[how]
    (run,) = run_folders(tmp_path)
    told = run_json(run)
    assert (done.stdout.strip(), told["status"], told.get("error")) == (code, status, error)
    assert [event["status"] for event in events(run, "end")] == [status]


def test_a_rank_that_was_given_alone_has_a_file_of_its_own(tmp_path: Path) -> None:
    for rank in (0, 1):
        run = tv.start("both", dir=tmp_path, rank=rank, run_id="both")
        run.log(loss=rank)
        run.finish()
    (folder,) = run_folders(tmp_path)
    ranks = [layout.training_rank(path.name) for path in folder.glob("training_metrics_*")]
    assert sorted(ranks, key=str) == [0, 1] and run_json(folder)["world_size"] == 1


def test_a_clock_that_was_set_back_repeats_no_step_of_a_resumed_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seconds in (86_400, 0, 5):
        with monkeypatch.context() as moved:
            real = layout.time.time
            moved.setattr(layout.time, "time", lambda real=real, later=seconds: real() + later)
            run = tv.start("x", dir=tmp_path, run_id="x", resume=True)
            for _ in range(5):
                run.log(loss=1.0)
            run.finish()
    (folder,) = run_folders(tmp_path)
    assert sorted(line["step"] for line in lines(folder) if "loss" in line) == list(range(1, 16))


def test_a_run_that_is_started_while_the_interpreter_ends_is_off_and_holds_nobody(tmp_path: Path) -> None:
    done = python("import trainvitals as tv\nclass Late:\n    def __del__(self): print(bool(tv.start('late')))\n"
                  "late = Late()", journal=tmp_path)  # fmt: skip
    assert done.stdout == "False\n" and not done.stderr
    assert os.listdir(tmp_path) == []
