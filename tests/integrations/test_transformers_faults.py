"""The Trainer with several ranks, and beside what goes wrong, in it and in monitoring."""

import logging
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make trainers")
transformers = pytest.importorskip("transformers", reason="transformers is not installed: make trainers")

import trainvitals as tv  # noqa: E402
from tests.integrations.hf_models import Texts, tiny, trainer, weights  # noqa: E402
from tests.integrations.journal import on_two_ranks, python, run_names, told  # noqa: E402
from trainvitals.integrations.transformers import TrainVitalsCallback  # noqa: E402

FAILS = """
from pathlib import Path
import sys
from tests.integrations.hf_models import Texts, tiny, trainer
from trainvitals.integrations.transformers import TrainVitalsCallback

class Broken(Texts):
    def __getitem__(self, index):
        self.asked = getattr(self, "asked", 0) + 1
        if self.asked > 6:
            raise OSError("the disk is gone")
        return super().__getitem__(index)

trainer(Path(sys.argv[1]), TrainVitalsCallback(), data=Broken()).train()
"""


def test_two_ranks_write_a_file_each_of_one_run(journal, tmp_path):
    done = on_two_ranks(Path(__file__).parent / "hf_ranks.py", str(tmp_path), journal=journal)

    assert done.returncode == 0, done.stderr[-2000:]
    (name,) = run_names(journal)
    ranks = [told(journal, name, rank) for rank in (0, 1)]
    assert [list(rank.values("loss")) for rank in ranks] == [[1, 2, 3, 4, 5, 6]] * 2
    assert ranks[0].values("loss") != ranks[1].values("loss")
    assert (ranks[0].status, ranks[0].run["world_size"]) == ("finished", 2)
    assert all(rank.phases() == [("evaluation", True), ("evaluation", False)] * 2 for rank in ranks)


def test_an_exception_in_the_data_makes_the_run_crashed_and_goes_on(journal, tmp_path):
    script = tmp_path / "fails.py"
    script.write_text(FAILS)
    done = python(script, str(tmp_path), journal=journal)

    assert done.returncode == 1 and "the disk is gone" in done.stderr
    run = told(journal)
    assert (run.status, run.run["error"]) == ("crashed", "OSError: the disk is gone")
    assert run.steps() == [1, 2]  # the batch that failed is fetched ahead of the third step


def test_an_exception_in_a_step_that_somebody_catches_leaves_the_next_training_its_own_run(journal, tmp_path):
    broken = trainer(tmp_path, TrainVitalsCallback("broken"), data=Texts(), model=tiny())
    broken.model.head = torch.nn.Linear(3, 10)
    with pytest.raises(RuntimeError, match="shapes"):
        broken.train()
    trainer(tmp_path, TrainVitalsCallback("whole")).train()

    assert run_names(journal) == ["broken", "whole"]
    assert told(journal, "whole").steps() == [1, 2, 3, 4, 5, 6]
    left = tv.current()
    assert left.name == "broken"
    left.end_at_exit()
    assert told(journal, "broken").status == "crashed"


def test_a_smaller_batch_after_too_large_a_one_is_the_same_run(journal, tmp_path):
    class Small(transformers.Trainer):
        def training_step(self, model, inputs, *more):
            if len(inputs["input_ids"]) > 2:
                raise RuntimeError("CUDA out of memory.")
            return super().training_step(model, inputs, *more)

    trainer(tmp_path, TrainVitalsCallback(), kind=Small, per_device_train_batch_size=3,
            auto_find_batch_size=True, max_steps=3).train()  # fmt: skip

    run = told(journal)
    assert run.status == "finished" and list(run.values("loss")) == [1, 2, 3]


def test_a_journal_that_cannot_be_written_is_one_warning_and_the_same_weights(no_journal, tmp_path, caplog):
    plain, watched = trainer(tmp_path), trainer(tmp_path, TrainVitalsCallback())
    plain.train()
    with caplog.at_level(logging.WARNING, "trainvitals"):
        watched.train()

    assert torch.equal(weights(plain.model), weights(watched.model))
    assert len([record for record in caplog.records if record.name.startswith("trainvitals")]) == 1


def test_a_fault_in_monitoring_stays_in_monitoring(journal, tmp_path, monkeypatch, caplog):
    callback = TrainVitalsCallback()
    training = trainer(tmp_path, callback)
    monkeypatch.setattr("trainvitals.integrations.transformers.clock", lambda: 1 / 0)
    training.train()

    assert training.state.global_step == 6
    assert len([record for record in caplog.records if record.name.startswith("trainvitals")]) == 1


def test_switched_off_it_looks_into_nothing(journal, tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINVITALS", "off")
    seen = []

    class Looking(transformers.TrainerCallback):
        def on_step_end(self, *_, **__):
            seen.append("training_step" in vars(training))

    training = trainer(tmp_path, TrainVitalsCallback(), Looking())
    training.train()

    assert seen == [False] * 6 and not journal.exists()


def test_without_the_package_it_says_how_to_install_it(journal, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.delitem(sys.modules, "trainvitals.integrations.transformers")
    with pytest.raises(ImportError, match=r"pip install 'transformers\[torch\]'"):
        import trainvitals.integrations.transformers  # noqa: F401
