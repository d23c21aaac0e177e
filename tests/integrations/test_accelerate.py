import logging
import math
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make trainers")
accelerate = pytest.importorskip("accelerate", reason="accelerate is not installed: make trainers")

import trainvitals as tv  # noqa: E402
from tests.integrations.accelerated import train  # noqa: E402
from tests.integrations.journal import on_two_ranks, run_names, told  # noqa: E402
from trainvitals.integrations.accelerate import TrainVitalsTracker  # noqa: E402

SCRIPT = Path(__file__).parent / "accelerated.py"


@pytest.fixture(autouse=True)
def fresh_state():
    """Accelerate keeps one state a process."""
    yield
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)


def watched(name, **more):
    tracker = TrainVitalsTracker(name)
    return train([tracker], lambda: tracker.run, **more)


def launched(folder, *flags):
    done = on_two_ranks(SCRIPT, *flags, journal=folder)
    assert done.returncode == 0, done.stderr[-2000:]


def test_what_is_logged_is_in_the_journal_with_the_configuration(journal):
    train([TrainVitalsTracker("gemma", tags=["lora"])])

    run = told(journal, "gemma")
    assert list(run.values("loss")) == [1, 2, 3, 4]
    assert run.values("learning_rate")[1] == 0.1
    assert run.values("losses/head") == pytest.approx(run.values("loss"))
    assert (run.status, run.run["framework"], run.run["config"]) == ("finished", "accelerate", {"rate": 0.1})
    assert run.run["tags"] == ["lora"]


def test_steps_and_the_wait_for_a_prepared_loader_are_timed(journal):
    watched("slow", seconds=0.03)
    watched("fast")

    slow, fast = told(journal, "slow"), told(journal, "fast")
    assert slow.steps() == fast.steps() == [1, 2, 3, 4]
    assert slow.total("data_wait_seconds") > 8 * 0.02
    assert slow.data_share() > 2 * fast.data_share()


def test_a_nan_is_on_record_at_its_step(journal):
    watched("nan", poison=4)

    losses = told(journal).values("loss")
    assert not math.isnan(losses[1]) and math.isnan(losses[2])


def test_the_step_that_is_given_counts(journal):
    accelerator = accelerate.Accelerator(log_with=[TrainVitalsTracker("given")], cpu=True)
    accelerator.init_trackers("project")
    for step in (10, 20):
        accelerator.log({"loss": step / 10}, step=step)
    accelerator.end_training()

    assert told(journal).values("loss") == {10: 1.0, 20: 2.0}


@pytest.mark.parametrize("log_with", ["trainvitals", ["trainvitals"]])
def test_its_name_is_enough(journal, log_with):
    train(log_with, init_kwargs={"trainvitals": {"tags": ["a"]}})

    run = told(journal, "project")
    assert run.run["tags"] == ["a"] and len(run.values("loss")) == 4


def test_it_stands_beside_all_others(journal):
    accelerator = accelerate.Accelerator(log_with=["all", TrainVitalsTracker("beside")], cpu=True, project_dir=".")
    assert [type(tracker) for tracker in accelerator.log_with].count(TrainVitalsTracker) == 1


def test_accelerate_hands_out_the_run(journal):
    accelerator = accelerate.Accelerator(log_with=[TrainVitalsTracker("handed")], cpu=True)
    accelerator.init_trackers("project")
    run = accelerator.get_tracker("trainvitals", unwrap=True)
    assert run is tv.current() and run.name == "handed"
    accelerator.end_training()


def test_a_run_that_is_there_is_used_and_left_open(journal):
    with tv.start("mine") as run:
        train([TrainVitalsTracker("other")])
        assert run.status == "running"

    assert run_names(journal) == ["mine"] and len(told(journal).values("loss")) == 4
    assert told(journal).run["config"] == {"rate": 0.1}


@pytest.mark.parametrize("how", ["by object", "started"])
def test_each_process_writes_its_own_file_of_one_run(tmp_path, how):
    launched(tmp_path, how)

    (name,) = run_names(tmp_path)
    ranks = [told(tmp_path, name, rank) for rank in (0, 1)]
    assert [rank.steps() for rank in ranks] == [[1, 2]] * 2
    assert [list(rank.values("own_loss")) for rank in ranks] == [[1, 2]] * 2
    assert [list(rank.values("loss")) for rank in ranks] == [[1, 2], []]
    assert (ranks[0].status, ranks[0].run["world_size"]) == ("finished", 2)
    assert ranks[0].run["config"] == {"rate": 0.1}


@pytest.mark.parametrize("how", ["main", "named"])
def test_the_main_process_alone_where_that_is_wanted_or_accelerate_makes_the_tracker(tmp_path, how):
    launched(tmp_path, how)

    (name,) = run_names(tmp_path)
    assert told(tmp_path, name, 0).steps() == [1, 2]
    assert list(told(tmp_path, name, 0).values("loss")) == [1, 2]
    assert not (tmp_path / "runs" / name / "process.rank1.json").exists()


def test_a_journal_that_cannot_be_written_is_one_warning_and_the_same_weights(no_journal, caplog):
    plain = train(None)
    with caplog.at_level(logging.WARNING, "trainvitals"):
        assert torch.equal(watched("none"), plain)

    assert len([record for record in caplog.records if record.name.startswith("trainvitals")]) == 1


def test_without_the_package_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "accelerate", None)
    monkeypatch.delitem(sys.modules, "trainvitals.integrations.accelerate")
    with pytest.raises(ImportError, match="pip install accelerate"):
        import trainvitals.integrations.accelerate  # noqa: F401
