"""Against the interface as published: NeMo RL itself is not on a package index."""

import inspect
import logging
from abc import ABC, abstractmethod

import pytest

from tests.integrations.journal import told
from trainvitals.integrations.nemo_rl import TrainVitalsLogger, counts

np = pytest.importorskip("numpy", reason="numpy is not installed: make trainers")


class LoggerInterface(ABC):
    """The shape of nemo_rl.utils.logger.LoggerInterface."""

    @abstractmethod
    def log_metrics(self, metrics, step, prefix="", step_metric=None, step_finished=False): ...

    @abstractmethod
    def log_hyperparams(self, params): ...

    @abstractmethod
    def log_histogram(self, histogram, step, name): ...

    @abstractmethod
    def log_plot(self, figure, step, name): ...


@pytest.fixture
def logger(journal):
    logger = TrainVitalsLogger({"name": "grpo"})
    yield logger
    logger.finish()


@pytest.mark.parametrize("name", sorted(LoggerInterface.__abstractmethods__))
def test_it_has_the_methods_and_parameters_of_the_interface(name):
    def shape(kind):
        return [(parameter.name, parameter.default)
                for parameter in inspect.signature(getattr(kind, name)).parameters.values()]  # fmt: skip

    assert shape(TrainVitalsLogger) == shape(LoggerInterface)


def test_a_step_of_grpo_is_told_under_its_names_and_the_journals(logger, journal):
    logger.log_metrics({"loss": 0.5, "reward": np.float32(0.25), "kl_penalty": 0.01, "approx_entropy": 1.5,
                        "grad_norm": 2.0, "lr": 1e-5}, 1, prefix="train")  # fmt: skip
    logger.log_metrics({"generation": 9.0, "policy_training": 4.0, "total_step_time": 15.0}, 1, prefix="timing/train")
    logger.log_metrics({"tokens_per_sec": 800.0, "tokens_per_sec_per_gpu": 100.0}, 1, "performance", None, True)
    logger.finish()

    values = {name: value for line in told(journal).lines for name, value in line.items()}
    assert values["step"] == 1
    assert (values["loss"], values["gradient_norm"], values["learning_rate"]) == (0.5, 2.0, 1e-5)
    assert values["train/reward"] == values["reward_mean"] == 0.25
    assert values["train/kl_penalty"] == values["kl"] == 0.01
    assert values["train/approx_entropy"] == values["entropy"] == 1.5
    assert values["timing/train/generation"] == values["generation_seconds"] == 9.0
    assert values["timing/train/policy_training"] == values["training_seconds"] == 4.0
    assert values["timing/train/total_step_time"] == values["step_duration_seconds"] == 15.0
    assert values["performance/tokens_per_sec"] == values["tokens_per_second"] == 800.0
    assert values["performance/tokens_per_sec_per_gpu"] == 100.0
    assert (told(journal).run["framework"], told(journal).status) == ("nemo_rl", "finished")


def test_the_journals_own_name_wins_over_one_that_means_the_same(logger, journal):
    logger.log_metrics({"train/reward": 0.1, "reward_mean": 0.9}, 3)
    assert told(journal).values("reward_mean") == {3: 0.9}


def test_what_validation_tells_is_not_taken_for_training(logger, journal):
    logger.log_metrics({"loss": 9.0, "accuracy": 0.5}, 10, prefix="validation")
    logger.log_metrics({"total_validation_time": 30.0}, 10, prefix="timing/validation")
    assert told(journal).values("loss") == {}
    assert told(journal).values("validation/accuracy") == {10: 0.5}
    assert told(journal).values("evaluation_seconds") == {10: 30.0}


def test_what_counts_something_else_than_steps_goes_to_the_step_under_way(logger, journal):
    logger.log_metrics({"loss": 1.0}, 7, prefix="train")
    logger.log_metrics({"node.0.gpu.0.util": 97.0, "ray/ray_step": 4000}, 4000, "ray", "ray/ray_step")
    assert max(line["step"] for line in told(journal).lines) == 7
    assert list(told(journal).values("ray/node.0.gpu.0.util").values()) == [97.0]


def test_lists_and_tables_are_left_to_others_without_a_word(logger, journal, caplog):
    with caplog.at_level(logging.WARNING):
        logger.log_metrics({"reward": 1.0, "lengths": [1, 2], "workers": {0: [1]}, "all": np.ones(3)}, 1, "train")
    assert set(told(journal).lines[0]) == {"timestamp", "step", "train/reward", "reward_mean"}
    assert not caplog.records


def test_hyperparameters_are_the_runs_configuration_and_secrets_stay_hidden(logger, journal):
    logger.log_hyperparams({"grpo": {"num_prompts_per_step": 32}, "logger": {"wandb_api_key": "abc"}})
    logger.finish()
    assert told(journal).run["config"] == {
        "grpo": {"num_prompts_per_step": 32},
        "logger": {"wandb_api_key": "(hidden)"},
    }


def test_a_histogram_is_counted_as_watch_counts_its_own(logger, journal):
    logger.log_histogram([1, 2, 2, 3, float("nan")], 5, "train/lengths")
    logger.log_plot(object(), 5, "a figure")
    (event,) = told(journal).events_of("histograms")
    counted = event["histograms"]["train/lengths"]
    assert event["step"] == 5
    assert (counted["min"], counted["max"], counted["sum"], counted["sum_squares"]) == (1, 3, 8, 18)
    assert len(counted["edges"]) == len(counted["counts"]) + 1
    assert (counted["counts"][0], counted["counts"][15], counted["counts"][-1]) == (1, 2, 1)
    assert sum(counts([4.0, 4.0])["counts"]) == 2
    assert counts([float("inf")]) == {}


def test_what_cannot_be_logged_costs_a_warning_and_no_training(logger, journal, caplog):
    logger.log_metrics(None, 1)
    logger.log_metrics({"loss": 1.0}, "first")
    logger.log_histogram(["a"], 1, "x")
    logger.log_metrics({"loss": 2.0}, 2)
    assert told(journal).values("loss") == {2: 2.0}
    assert caplog.records
