"""As a script uses it that came from another tool: only its import is changed."""

import inspect

import pytest

from tests.collector.support import wait_for
from tests.integrations.journal import read_lines, told
from trainvitals.compat import gpu_training
from trainvitals.compat.gpu_training import GPUMonitor, TrainingMonitorCallback


@pytest.mark.parametrize(
    ("call", "parameters"),
    [
        (GPUMonitor, "(gpu_index=0, sample_interval=1.0)"),
        (TrainingMonitorCallback, "(gpu_monitor)"),
        (TrainingMonitorCallback.on_train_begin, "(self)"),
        (TrainingMonitorCallback.on_step_begin, "(self)"),
        (TrainingMonitorCallback.on_step_end,
         "(self, step=None, epoch=None, loss=None, lr=None, grad_norm=None, throughput=None)"),
        (TrainingMonitorCallback.on_train_end, "(self)"),
    ],
)  # fmt: skip
def test_signatures_are_those_of_the_other_tool(call, parameters):
    assert bare(call) == parameters


def bare(call):
    signature = inspect.signature(call)
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))


def train(monitor, steps=3):
    callback = TrainingMonitorCallback(monitor)
    callback.on_train_begin()
    for step in range(1, steps + 1):
        callback.on_step_begin()
        callback.on_step_end(step=step, epoch=0, loss=1.0 / step, lr=1e-3, grad_norm=0.5, throughput=64.0)
    seen = monitor.get_metrics()
    callback.on_train_end()
    return seen


def test_a_training_is_in_the_journal_under_its_names(journal):
    train(GPUMonitor())
    run = told(journal)
    assert run.values("loss") == {1: 1.0, 2: 0.5, 3: 1 / 3}
    assert set(run.values("learning_rate").values()) == {1e-3}
    assert set(run.values("gradient_norm").values()) == {0.5}
    assert set(run.values("throughput_samples_per_sec").values()) == {64.0}
    assert run.steps() == [1, 2, 3]
    assert run.status == "finished"


def test_the_gpu_asked_for_is_read_as_the_agent_does(agent, journal):
    with GPUMonitor(gpu_index=1, sample_interval=0.2) as monitor:
        metrics = wait_for(lambda: (found := monitor.get_metrics())["utilization_percent"] and found, 20)
    lines = [line for path in journal.glob("gpu/*/gpu_metrics_*.jsonl") for line in read_lines(path)]
    line = next(line for line in reversed(lines) if line["gpu_index"] == 1)
    assert metrics["memory_total_mb"] == line["memory_total_mb"]
    assert metrics["temperature_celsius"] > 20


def test_without_a_gpu_values_are_none_and_training_is_as_it_was(journal):
    assert set(train(GPUMonitor(gpu_index=7)).values()) == {None}
    assert told(journal).status == "finished"


def test_what_was_not_given_is_not_logged(journal):
    callback = TrainingMonitorCallback(GPUMonitor())
    callback.on_step_end(step=1, loss=1.0)
    callback.on_train_begin()
    callback.on_step_begin()
    callback.on_step_end(step=1, loss=1.0)
    callback.on_train_end()
    assert set(told(journal).lines[0]) == {"timestamp", "step", "loss", "step_duration_seconds"}


def test_the_trainers_callback_watches_a_training(journal, tmp_path):
    pytest.importorskip("transformers", reason="transformers is not installed: make trainers")
    from tests.integrations.hf_models import trainer

    assert bare(gpu_training.GPUMonitoringCallback) == "(gpu_monitor, log_interval=10)"
    callback = gpu_training.GPUMonitoringCallback(gpu_training.GPUMonitor(sample_interval=0.5), log_interval=2)
    trainer(tmp_path, callback).train()
    run = told(journal)
    assert run.status == "finished"
    losses = run.values("loss")
    assert losses and all(step % 2 == 0 for step in losses)


def test_a_name_that_is_not_there_is_told_as_such():
    with pytest.raises(AttributeError, match="has no attribute 'GPUMonitr'"):
        gpu_training.GPUMonitr  # noqa: B018
