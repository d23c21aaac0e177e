"""A run that is off, and what a run is in another process, do nothing and raise nothing."""

import copy
import multiprocessing
import pickle
from pathlib import Path

import trainvitals as tv
from tests.run.support import lines
from trainvitals.run.off import OffRun


def test_a_run_that_is_off_has_all_names_of_a_run(tmp_path: Path) -> None:
    with tv.start("names", dir=tmp_path) as run:
        public = {name for name in dir(run) if not name.startswith("_")}
    assert public <= set(dir(OffRun()))


def test_a_step_and_a_phase_may_be_entered_again(tmp_path: Path) -> None:
    with tv.start("again", dir=tmp_path) as run:
        for each in (run, OffRun()):
            step, phase = each.step(), each.phase("forward")
            for _ in range(2):
                with step, phase:
                    pass
    assert run.number == 2 and run.folder is not None
    assert [line["step"] for line in lines(run.folder)] == [1, 2]


def work(run: tv.Run) -> str:
    run.log(loss=9.0)
    with run.step(), run.phase("forward"):
        run.event("from a worker")
    return run.status


def test_a_run_goes_to_a_worker_as_one_that_is_off_and_is_copied_as_itself(tmp_path: Path) -> None:
    with tv.start("sent", dir=tmp_path) as run:
        held = {"run": run, "step": run.step(), "phase": run.phase("forward")}
        assert copy.deepcopy(held) == held and copy.copy(run) is run
        there = pickle.loads(pickle.dumps(held))
        with there["step"], there["phase"]:
            assert work(there["run"]) == "off"
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert pool.apply(work, (run,)) == "off"
        run.log(loss=1.0)
    assert run.folder is not None
    assert [line["loss"] for line in lines(run.folder) if "loss" in line] == [1.0]
