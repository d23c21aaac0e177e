from pathlib import Path

import pytest

from tests.integrations.journal import python, read_lines, run_names, told
from trainvitals.integrations.verl import TrainVitalsLogger, plain
from trainvitals.journal.record import seconds

TRAINING = Path(__file__).parent / "verl_training.py"


@pytest.fixture
def verl():
    """Without what verl wants beside it: looked up here, for a process of its own imports it."""
    return pytest.importorskip("verl.utils.tracking", reason="verl is not installed: make trainers")


def train(journal, *words):
    done = python(TRAINING, *map(str, words or (0,)), journal=journal,
                  VERL_USE_EXTERNAL_MODULES="trainvitals.integrations.verl")  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done


def test_verls_own_tracking_hands_its_values_on(verl, journal):
    done = train(journal)
    run = told(journal)
    assert "step:2" in done.stdout
    assert run.values("actor/grad_norm") == run.values("gradient_norm") == {1: 0.5, 2: 1.0}
    assert run.values("val-core/acc") == {0: 0.25}
    names = {"learning_rate": 1e-6, "entropy": 0.3, "kl": 0.01, "reward_mean": 0.6, "step_duration_seconds": 10.0,
             "generation_seconds": 6.0, "training_seconds": 2.0, "perf/throughput": 800.0, "perf/mfu/actor": 0.4,
             "timing_s/gen": 6.0}  # fmt: skip
    assert {name: run.values(name)[2] for name in names} == names


def test_throughput_is_a_gpus_share_and_tokens_per_second_is_the_jobs(verl, journal):
    train(journal)
    assert told(journal).values("tokens_per_second") == {1: 6400.0, 2: 6400.0}


def test_the_run_says_what_it_is_and_how_it_ended(verl, journal):
    train(journal)
    run = told(journal).run
    assert (run["name"], run["framework"], run["planned_steps"], run["status"]) == ("math-grpo", "verl", 2, "finished")
    assert run["config"]["actor"]["name"] == "grpo"


def test_an_exit_code_that_is_not_zero_is_a_crash(verl, journal):
    train(journal, 3)
    run = told(journal).run
    assert (run["status"], run["error"]) == ("crashed", "exit code 3")


def test_the_trainers_settings_start_an_agent_at_their_pace(verl, journal):
    done = train(journal, 0, 10)
    assert "trainvitals: " in done.stderr
    (file,) = journal.glob("gpu/*/host_metrics_*.jsonl")
    times = [seconds(line["timestamp"]) for line in read_lines(file)]
    assert times[9] - times[4] < 2.5


def test_a_config_may_be_a_dictionary_or_absent(journal):
    for config in (None, {}, {"trainer": None}, {"trainer": {"total_training_steps": 5}}):
        logger = TrainVitalsLogger("p", "e", config)
        logger.log({"loss": 1.0}, 1)
        logger.finish()
    assert plain(None) == {}
    assert run_names(journal) == ["p-e", "p-e-2", "p-e-3", "p-e-4"]


def test_a_config_that_cannot_be_read_costs_no_training(journal, caplog):
    logger = TrainVitalsLogger("p", "e", object())
    logger.log({"actor/lr": 1.0}, 1)
    logger.finish()
    assert told(journal).values("learning_rate") == {1: 1.0}
    assert caplog.records


def test_a_broken_value_costs_itself(journal):
    logger = TrainVitalsLogger("p", "e")
    logger.log({"perf/total_num_tokens": 1.0, "perf/time_per_step": 0.0}, 1)
    logger.log({"actor/lr": 1.0}, 2)
    logger.finish()
    assert told(journal).values("learning_rate") == {2: 1.0}
