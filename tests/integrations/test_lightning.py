import math
import time

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make trainers")
lightning = pytest.importorskip("lightning", reason="lightning is not installed: make trainers")

from lightning.pytorch.callbacks import Callback, ModelCheckpoint  # noqa: E402

import trainvitals as tv  # noqa: E402
from tests.integrations.journal import run_names, told  # noqa: E402
from tests.integrations.lit_models import Automatic, EachBatch, Manual, loader, trainer, weights  # noqa: E402
from trainvitals.integrations.lightning import TrainVitalsCallback  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def test_each_step_has_its_loss_times_learning_rate_and_the_modules_own_values(journal, tmp_path):
    module = Automatic()
    trainer(tmp_path, TrainVitalsCallback()).fit(module, loader(8))

    run = told(journal, "Automatic")
    assert run.steps() == [1, 2, 3, 4]
    assert list(run.values("loss").values()) == pytest.approx(module.losses)
    assert run.values("learning_rate") == pytest.approx({1: 0.1, 2: 0.05, 3: 0.025, 4: 0.0125})
    assert run.values("accuracy") == {1: 0.5, 2: 1.5, 3: 2.5, 4: 3.5}
    assert run.values("epoch_accuracy") == pytest.approx({4: sum(module.losses) / 4})
    assert list(run.values("throughput_samples_per_sec")) == [1, 2, 3, 4]
    assert (run.status, run.run["framework"], run.run["planned_steps"]) == ("finished", "lightning", 4)
    assert run.run["config"]["rate"] == 0.1 and run.run["config"]["trainer"]["max_epochs"] == 1


def test_the_weights_and_the_trainer_are_as_without_it(journal, tmp_path):
    plain, watched = Automatic(), Automatic()
    trainer(tmp_path).fit(plain, loader(), loader(4))
    training = trainer(tmp_path, TrainVitalsCallback())
    training.fit(watched, loader(), loader(4))

    assert torch.equal(weights(plain), weights(watched))
    assert "save_checkpoint" not in vars(training) and "start" not in vars(training.profiler)


def test_a_nan_is_on_record_at_its_step(journal, tmp_path):
    trainer(tmp_path, TrainVitalsCallback()).fit(Automatic(poison=2), loader(8))

    losses = told(journal).values("loss")
    assert not math.isnan(losses[2]) and math.isnan(losses[3])


def test_accumulated_batches_are_one_step_with_the_mean_of_their_losses(journal, tmp_path):
    module = Automatic()
    trainer(tmp_path, TrainVitalsCallback(), accumulate_grad_batches=4).fit(module, loader())

    run = told(journal)
    assert run.steps() == [1, 2] and run.run["planned_steps"] == 2
    assert run.values("loss") == pytest.approx({1: sum(module.losses[:4]) / 4, 2: sum(module.losses[4:]) / 4})


def test_optimized_by_hand_steps_are_numbered_as_lightning_counts_them(journal, tmp_path):
    training = trainer(tmp_path, TrainVitalsCallback())
    training.fit(Manual(), loader(8))

    run = told(journal)
    assert training.global_step == 4 and run.run["planned_steps"] == 8
    assert run.steps() == [2, 4] and list(run.values("loss")) == [2, 4]
    assert run.values("learning_rate")[4] == 0.1 and run.values("learning_rate_1")[4] == 0.2


def test_optimized_by_hand_the_steps_of_every_optimizer_are_planned(journal, tmp_path):
    training = trainer(tmp_path, TrainVitalsCallback(), max_epochs=2)
    training.fit(EachBatch(), loader(8))

    assert told(journal).run["planned_steps"] == training.global_step == 16


def test_optimized_by_hand_no_more_steps_are_planned_than_lightning_will_do(journal, tmp_path):
    training = trainer(tmp_path, TrainVitalsCallback(), max_epochs=2, max_steps=6)
    training.fit(EachBatch(), loader(8))

    assert told(journal).run["planned_steps"] == training.global_step == 6


def test_optimized_by_hand_the_plan_is_mended_by_what_an_epoch_took(journal, tmp_path):
    training = trainer(tmp_path, TrainVitalsCallback(), max_epochs=3)
    training.fit(Manual(), loader(8))

    assert told(journal).run["planned_steps"] == training.global_step == 12


def test_time_spent_on_waiting_for_data_is_told_from_the_steps(journal, tmp_path):
    trainer(tmp_path, TrainVitalsCallback("slow")).fit(Automatic(seconds=0.02), loader(seconds=0.03))
    trainer(tmp_path, TrainVitalsCallback("fast")).fit(Automatic(seconds=0.02), loader())

    slow, fast = told(journal, "slow"), told(journal, "fast")
    assert slow.total("data_wait_seconds") > 8 * 0.02
    assert slow.data_share() > 0.5
    assert fast.data_share() < 0.5 * slow.data_share()


def test_nothing_else_between_the_steps_is_taken_for_data(journal, tmp_path):
    class Slow(Callback):
        def on_train_batch_end(self, *_):
            time.sleep(0.05)

    checkpoints = ModelCheckpoint(tmp_path / "saved", every_n_train_steps=1)
    training = trainer(tmp_path, TrainVitalsCallback(), Slow(), checkpoints, enable_checkpointing=True)
    training.fit(Automatic(), loader(8), loader(4, seconds=0.01))

    assert told(journal).total("data_wait_seconds") < 0.1  # of 0.2 that it slept


def test_evaluation_is_a_phase_with_its_metrics_and_the_sanity_check_is_none(journal, tmp_path):
    training = trainer(tmp_path, TrainVitalsCallback(), val_check_interval=0.5, num_sanity_val_steps=1)
    training.fit(Automatic(), loader(8), loader(4, seconds=0.01))

    run = told(journal)
    assert run.phases() == [("evaluation", True), ("evaluation", False)] * 2
    assert list(run.values("val_loss")) == [2, 4]
    assert 0.08 < run.total("evaluation_seconds") < 5


def test_checkpoints_are_told_with_their_paths(journal, tmp_path):
    saving = ModelCheckpoint(tmp_path / "saved", every_n_train_steps=2, save_top_k=-1)
    trainer(tmp_path, TrainVitalsCallback(), saving, enable_checkpointing=True).fit(Automatic(), loader(8))

    run = told(journal)
    saved = run.events_of("checkpoint")
    assert [event["step"] for event in saved] == [2, 4]
    assert {event["path"] for event in saved} == {str(path) for path in (tmp_path / "saved").iterdir()}
    assert run.phases()[:2] == [("checkpoint", True), ("checkpoint", False)]
    assert run.total("checkpoint_seconds") > 0


def test_a_fit_from_a_checkpoint_goes_on_under_its_name(journal, tmp_path):
    first = trainer(tmp_path, TrainVitalsCallback())
    first.fit(Automatic(), loader(8))
    first.save_checkpoint(tmp_path / "saved.ckpt")
    resumed = trainer(tmp_path, TrainVitalsCallback(), max_epochs=2)
    resumed.fit(Automatic(), loader(8), ckpt_path=tmp_path / "saved.ckpt")

    assert run_names(journal) == ["Automatic"]
    run = told(journal)
    assert run.steps() == [1, 2, 3, 4, 5, 6, 7, 8] and run.status == "finished"
    assert run.values("epoch") == {1: 0, 2: 0, 3: 0, 4: 0, 5: 1, 6: 1, 7: 1, 8: 1}


def test_a_run_that_is_there_is_used_and_left_open(journal, tmp_path):
    with tv.start("mine") as run:
        for _ in range(2):
            trainer(tmp_path, TrainVitalsCallback()).fit(Automatic(), loader(4))
        assert run.status == "running"

    assert run_names(journal) == ["mine"] and told(journal).steps() == [1, 2, 3, 4]
    assert told(journal).run["planned_steps"] == 4


def test_what_the_user_planned_holds(journal, tmp_path):
    for _ in range(2):
        trainer(tmp_path, TrainVitalsCallback("long", resume=True, planned_steps=100)).fit(Automatic(), loader(4))
        assert told(journal).run["planned_steps"] == 100

    assert told(journal).steps() == [1, 2, 3, 4]


def test_with_an_interval_a_line_has_the_mean(journal, tmp_path):
    module = Automatic()
    trainer(tmp_path, TrainVitalsCallback(log_interval=2)).fit(module, loader(8))

    losses = module.losses
    assert told(journal).values("loss") == pytest.approx({2: sum(losses[:2]) / 2, 4: sum(losses[2:]) / 2})
    assert told(journal).steps() == [1, 2, 3, 4]


def test_validating_alone_is_no_run(journal, tmp_path):
    trainer(tmp_path, TrainVitalsCallback()).validate(Automatic(), loader(4), verbose=False)

    assert not journal.exists()


def test_under_its_older_name_it_works_too(journal, tmp_path):
    pytorch_lightning = pytest.importorskip(
        "pytorch_lightning", reason="pytorch_lightning is not installed: make trainers"
    )

    class Older(pytorch_lightning.LightningModule):
        layer = torch.nn.Linear(4, 1)

        def training_step(self, batch, _):
            return self.layer(batch).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.layer.parameters(), lr=0.1)

    trainer(tmp_path, TrainVitalsCallback(), kind=pytorch_lightning.Trainer).fit(Older(), loader(8))

    run = told(journal, "Older")
    assert run.steps() == [1, 2, 3, 4] and len(run.values("loss")) == 4 and run.total("data_wait_seconds") > 0
