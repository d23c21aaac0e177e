"""Keras on each backend, in a process of its own: it knows one backend a process."""

import json
import math
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

keras = pytest.importorskip("keras", reason="keras is not installed: make trainers")

from tests.integrations.journal import python, run_names, told  # noqa: E402

JOB = Path(__file__).parent / "keras_job.py"


@pytest.fixture(scope="module", params=["tensorflow", "torch"])
def job(request, tmp_path_factory):
    pytest.importorskip(request.param, reason=f"{request.param} is not installed: make trainers")
    folder = tmp_path_factory.mktemp(request.param)
    done = python(JOB, str(folder), journal=folder, KERAS_BACKEND=request.param)
    line = next((line for line in done.stdout.splitlines() if line.startswith("{")), None)
    assert line, done.stderr[-3000:]
    return SimpleNamespace(
        is_tensorflow=request.param == "tensorflow",
        folder=folder,
        seen=json.loads(line),
        errors=done.stderr,
        status=done.returncode,
        told=lambda name: told(folder, name),
    )


def test_the_weights_and_the_model_are_as_without_it(job):
    same = job.seen["same"]
    assert same["plain"] == same["watched"]
    assert same["left"] == [] and not same["wrapped"]


def test_each_step_has_its_values_times_and_learning_rate(job):
    run = job.told("tiny")
    assert run.steps() == list(range(1, 9))
    for name in ("loss", "mae", "epoch", "learning_rate", "throughput_samples_per_sec", "data_wait_seconds"):
        assert list(run.values(name)) == list(range(1, 9)), name
    assert run.values("epoch") == {step: (step - 1) // 4 for step in range(1, 9)}
    assert run.values("learning_rate")[5] == pytest.approx(0.05)
    assert (run.status, run.run["framework"], run.run["planned_steps"]) == ("finished", "keras", 8)
    config = run.run["config"]
    assert config["backend"] == ("tensorflow" if job.is_tensorflow else "torch") and config["epochs"] == 2
    assert config["optimizer"]["name"].lower().startswith("sgd") and config["parameters"] == 5


def test_the_losses_are_those_of_keras(job):
    losses, history = job.told("tiny").values("loss"), job.seen["same"]["history"]
    assert [losses[4], losses[8]] == pytest.approx(history["loss"], rel=1e-5)
    assert job.told("tiny").values("val_loss") == pytest.approx(dict(zip((4, 8), history["val_loss"], strict=True)))


def test_evaluation_is_a_phase(job):
    run = job.told("tiny")
    assert run.phases() == [("evaluation", True), ("evaluation", False)] * 2
    assert run.total("evaluation_seconds") > 0


@pytest.mark.parametrize("kind", ["PyDataset", "native"])
def test_the_wait_for_data_is_told_from_the_step(job, kind):
    slow, fast = job.told(f"slow-{kind}"), job.told(f"fast-{kind}")
    assert slow.steps() == fast.steps() == [1, 2, 3, 4, 5, 6]
    assert all(seconds > 0.008 for seconds in slow.values("step_duration_seconds").values())
    # While the first step is compiled and each is done, TensorFlow fetches ahead.
    assert slow.total("data_wait_seconds") > 0.1
    assert slow.data_share() > 0.5
    assert fast.data_share() < 0.5 * slow.data_share()


def test_a_nan_is_on_record_at_its_step(job):
    losses = job.told("nan").values("loss")
    assert not math.isnan(losses[1]) and math.isnan(losses[2])


def test_checkpoints_are_told_with_their_paths(job):
    run = job.told("saved")
    assert [(event["step"], Path(event["path"]).name) for event in run.events_of("checkpoint")] == [
        (4, "saved-1.keras"), (8, "saved-2.keras")]  # fmt: skip
    assert run.total("checkpoint_seconds") > 0
    assert all(Path(event["path"]).exists() for event in run.events_of("checkpoint"))


def test_a_schedule_s_learning_rate_is_followed(job):
    rates = list(job.told("schedule").values("learning_rate").values())
    assert len(rates) == 4 and rates[0] > rates[1] > rates[2] > rates[3]


def test_a_run_that_is_there_is_used_and_left_open(job):
    assert job.seen["mine"] == "running"
    assert job.told("mine").steps() == list(range(1, 9)) and "other" not in run_names(job.folder)


def test_every_fit_is_a_run_of_its_own_and_an_interval_saves_lines(job):
    assert len(job.told("several").values("mae")) == 4
    assert list(job.told("several-2").values("mae")) == [2, 4] and job.told("several-2").steps() == [1, 2, 3, 4]


def test_several_steps_in_one_call_are_left_alone_and_no_wait_is_claimed(job):
    if not job.is_tensorflow:
        assert not (job.folder / "runs" / "together").exists()
        return
    run = job.told("together")
    assert job.seen["together"]
    assert run.steps() == [2, 4, 6, 8, 10, 12] and not run.values("data_wait_seconds")


def test_a_step_of_ones_own_is_given_what_keras_gives(job):
    assert job.seen["own"] == ("OwnedIterator" if job.is_tensorflow else "list")
    assert job.told("own").values("loss") == {1: 0.5}


def test_a_journal_that_cannot_be_written_is_one_warning_and_the_same_weights(job):
    plain = job.seen["same"]["plain"]
    assert job.seen["unwritable"] == plain
    assert job.errors.count("nothing is recorded") == 1


def test_a_training_that_fails_is_crashed(job):
    crashed = job.told("crashed")
    assert (job.status, crashed.status, crashed.run["error"]) == (1, "crashed", "OSError: the disk is gone")
    assert crashed.steps() == [1, 2]


def test_without_the_package_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "keras", None)
    monkeypatch.delitem(sys.modules, "trainvitals.integrations.keras", raising=False)
    with pytest.raises(ImportError, match="pip install keras"):
        import trainvitals.integrations.keras  # noqa: F401
