import math
import time

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make trainers")
transformers = pytest.importorskip("transformers", reason="transformers is not installed: make trainers")

import trainvitals as tv  # noqa: E402
from tests.integrations.hf_models import TOKENS, Texts, tiny, trainer, weights  # noqa: E402
from tests.integrations.journal import run_names, told  # noqa: E402
from trainvitals.integrations.transformers import TrainVitalsCallback  # noqa: E402


class OwnLoss(transformers.Trainer):
    """As trainers for fine-tuning do: the loss is not the model's."""

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        logits = model(input_ids=inputs["input_ids"])["logits"]
        loss = logits.square().mean()
        if model.training and self.state.global_step == 2:
            loss = loss * float("nan")
        return (loss, {"logits": logits}) if return_outputs else loss


def test_each_step_has_its_loss_times_learning_rate_and_throughput(journal, tmp_path):
    trainer(tmp_path, TrainVitalsCallback("sft")).train()

    run = told(journal, "sft")
    assert run.steps() == [1, 2, 3, 4, 5, 6]
    for name in ("loss", "learning_rate", "epoch", "throughput_samples_per_sec", "tokens_per_second"):
        assert list(run.values(name)) == [1, 2, 3, 4, 5, 6], name
    rates = run.values("learning_rate")
    assert rates[1] == pytest.approx(5e-5) and rates[6] == pytest.approx(5e-5 / 6)
    ratio = run.values("tokens_per_second")[3] / run.values("throughput_samples_per_sec")[3]
    assert ratio == pytest.approx(TOKENS)
    assert list(run.values("gradient_norm")) == [2, 4, 6]
    assert (run.status, run.run["framework"], run.run["planned_steps"]) == ("finished", "transformers", 6)
    assert run.run["config"]["max_steps"] == 6 and run.run["config"]["model"]["width"] == 4


def test_the_losses_are_those_that_the_trainer_logs(journal, tmp_path):
    training = trainer(tmp_path, TrainVitalsCallback("sft"), logging_steps=1)
    training.train()

    logged = {entry["step"]: entry["loss"] for entry in training.state.log_history if "loss" in entry}
    assert told(journal).values("loss") == pytest.approx(logged, rel=1e-5)


def test_a_nan_that_the_trainer_hides_is_on_record_at_its_step(journal, tmp_path):
    training = trainer(tmp_path, TrainVitalsCallback(), model=tiny(poison=3), logging_steps=6, max_grad_norm=0)
    training.train()

    hidden = [entry["loss"] for entry in training.state.log_history if "loss" in entry]
    assert hidden and not any(math.isnan(loss) for loss in hidden)
    losses = told(journal).values("loss")
    assert not math.isnan(losses[2]) and math.isnan(losses[3])


@pytest.mark.parametrize("settings", [{"label_smoothing_factor": 0.1}, {"gradient_accumulation_steps": 2}])
def test_a_nan_is_seen_with_the_trainers_own_loss_and_in_one_of_several_micro_batches(journal, tmp_path, settings):
    poison = 4 if "gradient_accumulation_steps" in settings else 2
    model = tiny(poison=poison)
    training = trainer(tmp_path, TrainVitalsCallback(), model=model, **settings)
    if "label_smoothing_factor" in settings:
        with torch.no_grad():
            model.head.bias[0] = float("nan")
    training.train()

    first = 1 if "label_smoothing_factor" in settings else 2
    losses = told(journal).values("loss")
    assert next(step for step, loss in losses.items() if math.isnan(loss)) == first


def test_a_trainer_with_a_loss_of_its_own_and_a_model_that_gives_tuples(journal, tmp_path):
    trainer(tmp_path, TrainVitalsCallback("own"), kind=OwnLoss).train()
    trainer(tmp_path, TrainVitalsCallback("tuples"), model=tiny(as_tuple=True)).train()

    own = told(journal, "own").values("loss")
    assert next(step for step, loss in own.items() if math.isnan(loss)) == 3
    assert all(loss > 1 for loss in told(journal, "tuples").values("loss").values())


def test_accumulated_micro_batches_are_one_step_with_all_their_samples(journal, tmp_path):
    training = trainer(tmp_path, TrainVitalsCallback(), data=Texts(seconds=0.01), gradient_accumulation_steps=3,
                       max_steps=4, logging_steps=1)  # fmt: skip
    training.train()

    run = told(journal)
    assert run.steps() == [1, 2, 3, 4]
    logged = {entry["step"]: entry["loss"] for entry in training.state.log_history if "loss" in entry}
    assert run.values("loss") == pytest.approx(logged, rel=1e-5)
    seconds = run.values("step_duration_seconds")[2] + run.values("data_wait_seconds")[2]
    assert run.values("throughput_samples_per_sec")[2] * seconds == pytest.approx(6, rel=0.3)


def test_the_weights_and_the_trainer_are_as_without_it(journal, tmp_path):
    plain, watched = trainer(tmp_path), trainer(tmp_path, TrainVitalsCallback())
    plain.train()
    watched.train()

    assert torch.equal(weights(plain.model), weights(watched.model))
    assert "training_step" not in vars(watched) and "get_batch_samples" not in vars(watched)


def test_no_hook_gives_a_value_back(journal, tmp_path):
    callback = TrainVitalsCallback()
    training = trainer(tmp_path, callback, max_steps=2)
    hooks = [name for name in dir(transformers.TrainerCallback) if name.startswith("on_")]
    given = []
    for name in hooks:
        hook = getattr(callback, name)
        setattr(callback, name, lambda *a, hook=hook, **m: given.append(hook(*a, **m)))
    training.train()

    assert len(given) > 8 and set(given) == {None}


def test_time_spent_on_waiting_for_data_is_told_from_the_steps(journal, tmp_path):
    trainer(tmp_path, TrainVitalsCallback("slow"), data=Texts(seconds=0.03), model=tiny(seconds=0.02)).train()
    trainer(tmp_path, TrainVitalsCallback("fast"), data=Texts(), model=tiny(seconds=0.02)).train()

    slow, fast = told(journal, "slow"), told(journal, "fast")
    assert slow.total("data_wait_seconds") > 6 * 0.02
    assert slow.data_share() > 0.5
    assert fast.data_share() < 0.5 * slow.data_share()


def test_neither_logging_nor_evaluation_nor_another_callback_is_taken_for_data(journal, tmp_path):
    class Slow(transformers.TrainerCallback):
        def on_step_end(self, *_, **__):
            time.sleep(0.03)

        on_log = on_evaluate = on_save = on_step_end

    trainer(tmp_path, TrainVitalsCallback(), Slow(), eval_strategy="steps", eval_steps=2, save_strategy="steps",
            save_steps=3).train()  # fmt: skip

    assert told(journal).total("data_wait_seconds") < 0.2  # of more than 0.4 that it slept


def test_evaluation_and_checkpoints_are_phases_with_their_metrics_and_paths(journal, tmp_path):
    trainer(tmp_path, TrainVitalsCallback(), eval_strategy="steps", eval_steps=3, save_strategy="steps",
            save_steps=3).train()  # fmt: skip

    run = told(journal)
    assert list(run.values("eval_loss")) == [3, 6]
    once = [("evaluation", True), ("evaluation", False), ("checkpoint", True), ("checkpoint", False)]
    assert run.phases() == once * 2
    assert 0 < run.total("evaluation_seconds") < 5 and 0 < run.total("checkpoint_seconds") < 5
    saved = run.events_of("checkpoint")
    assert [event["step"] for event in saved] == [3, 6]
    assert all((tmp_path / "out" / f"checkpoint-{event['step']}").is_dir() for event in saved)
    assert saved[0]["path"] == str(tmp_path / "out" / "checkpoint-3")


def test_epochs_are_counted_and_the_means_at_the_end_are_no_step(journal, tmp_path):
    trainer(tmp_path, TrainVitalsCallback(), max_steps=-1, num_train_epochs=2, per_device_train_batch_size=8,
            eval_strategy="epoch").train()  # fmt: skip

    run = told(journal)
    assert run.run["planned_steps"] == 8 and run.steps() == list(range(1, 9))
    assert run.values("epoch")[4] == 1 and run.values("epoch")[8] == 2
    assert list(run.values("eval_loss")) == [4, 8]
    (ended,) = run.events_of("note")
    assert ended["text"] == "training ended" and ended["train_loss"] > 1
    assert "train_runtime" not in run.lines[-1]


def test_with_an_interval_a_line_has_the_mean_and_shows_a_nan_in_between(journal, tmp_path):
    trainer(tmp_path, TrainVitalsCallback("mean", log_interval=3)).train()
    trainer(tmp_path, TrainVitalsCallback("each")).train()
    trainer(tmp_path, TrainVitalsCallback("nan", log_interval=3), model=tiny(poison=2)).train()

    mean, each = told(journal, "mean"), told(journal, "each").values("loss")
    assert mean.steps() == [1, 2, 3, 4, 5, 6]
    assert mean.values("loss") == pytest.approx({3: sum(each[s] for s in (1, 2, 3)) / 3,
                                                 6: sum(each[s] for s in (4, 5, 6)) / 3})  # fmt: skip
    assert math.isnan(told(journal, "nan").values("loss")[3])


def test_counted_tokens_of_the_trainer_are_preferred(journal, tmp_path):
    trainer(tmp_path, TrainVitalsCallback(), include_num_input_tokens_seen="all").train()

    run = told(journal)
    ratio = run.values("tokens_per_second")[4] / run.values("throughput_samples_per_sec")[4]
    assert ratio == pytest.approx(TOKENS)
    assert run.values("num_input_tokens_seen")[6] == 6 * 2 * TOKENS


def test_a_resumed_training_goes_on_under_its_name(journal, tmp_path):
    trainer(tmp_path, TrainVitalsCallback(), save_strategy="steps", save_steps=4).train()
    resumed = trainer(tmp_path, TrainVitalsCallback(), max_steps=8)
    resumed.train(resume_from_checkpoint=str(tmp_path / "out/checkpoint-4"))

    assert run_names(journal) == ["out"]
    run = told(journal)
    assert run.steps() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert (run.status, run.run["planned_steps"], len(run.run["resumed"])) == ("finished", 8, 1)


def test_every_training_is_a_run_of_its_own(journal, tmp_path):
    first = trainer(tmp_path, TrainVitalsCallback(), run_name="a")
    first.train()
    first.train()
    trainer(tmp_path, TrainVitalsCallback(), run_name="b").train()

    assert run_names(journal) == ["a", "a-2", "b"]
    assert {told(journal, name).status for name in ("a", "a-2", "b")} == {"finished"}
    assert told(journal, "a-2").steps() == [1, 2, 3, 4, 5, 6]


def test_a_run_that_is_there_is_used_and_left_open(journal, tmp_path):
    with tv.start("mine", config={"note": "kept"}) as run:
        for _ in range(2):
            trainer(tmp_path, TrainVitalsCallback("other"), max_steps=2).train()
        assert run.status == "running"
        run.log(final=1)

    mine = told(journal, "mine")
    assert run_names(journal) == ["mine"]
    assert mine.steps() == [1, 2, 3, 4] and list(mine.values("loss")) == [1, 2, 3, 4]
    assert mine.run["planned_steps"] == 4
    assert mine.run["config"]["note"] == "kept" and mine.run["config"]["max_steps"] == 2
