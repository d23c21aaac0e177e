"""As a script uses it that came from another tool: only its import is changed."""

import os
import subprocess
import sys

import pytest

from tests.collector.support import wait_for
from tests.compat.support import scalars
from tests.compat.test_gpu_training import bare
from tests.integrations.journal import run_names, told
from trainvitals.compat.verl import GPUResourceMonitor, Tracking

GPU_KEYS = {"gpu_utilization_pct", "memory_utilization_pct", "memory_total_gb", "temperature_c", "power_usage_w",
            "graphics_clock_mhz", "memory_clock_mhz"}  # fmt: skip
HOST_KEYS = {"cpu_utilization_pct", "system_memory_used_gb", "system_memory_utilization_pct"}
SCRIPT = """
import sys
from trainvitals.compat.verl import Tracking

tracking = Tracking(project_name="math", experiment_name="grpo", default_backend={backends!r})
for step in (1, 2, 3):
    tracking.log({{"actor/loss": 1.0 / step, "perf/mfu/actor": 0.4}}, step=step)
tracking.finish()
assert not {{"wandb", "mlflow", "tensorboard", "torch", "pynvml"}} & set(sys.modules)
"""


@pytest.mark.parametrize(
    ("call", "parameters"),
    [
        (GPUResourceMonitor,
         "(monitor_interval=10.0, log_to_wandb=False, log_to_console=False, device_ids=None)"),
        (GPUResourceMonitor.start_monitoring, "(self)"),
        (GPUResourceMonitor.get_latest_metrics, "(self)"),
        (GPUResourceMonitor.stop_monitoring, "(self)"),
        (Tracking, "(project_name, experiment_name, default_backend='console', config=None, "
         "enable_gpu_monitoring=False, gpu_monitor_interval=10.0)"),
        (Tracking.log, "(self, data, step)"),
    ],
)  # fmt: skip
def test_signatures_are_those_of_the_other_tool(call, parameters):
    assert bare(call) == parameters


@pytest.fixture
def monitor(journal):
    made = []

    def make(**options):
        made.append(GPUResourceMonitor(monitor_interval=0.2, **options))
        made[0].start_monitoring()
        return made[0]

    yield make
    for each in made:
        each.stop_monitoring()


def names_of(metrics, gpu):
    return {name.removeprefix(f"gpu_{gpu}_") for name in metrics if name.startswith(f"gpu_{gpu}_")}


def test_metrics_of_all_gpus_have_their_keys(agent, monitor):
    watching = monitor()
    metrics = wait_for(lambda: (found := watching.get_latest_metrics()) and names_of(found, 1) and found, 20)
    assert names_of(metrics, 0) == names_of(metrics, 1) == GPU_KEYS
    assert {name for name in metrics if not name.startswith("gpu_")} == HOST_KEYS
    assert 0 < metrics["gpu_0_gpu_utilization_pct"] <= 100
    assert metrics["gpu_0_memory_total_gb"] == pytest.approx(81559 / 1024)


def test_only_the_devices_that_were_asked_for_are_told(agent, monitor):
    watching = monitor(device_ids=[1])
    metrics = wait_for(lambda: (found := watching.get_latest_metrics()) and names_of(found, 1) and found, 20)
    assert names_of(metrics, 0) == set()


def test_without_a_gpu_only_the_host_is_told(monitor):
    assert set(monitor().get_latest_metrics()) == HOST_KEYS


def test_the_console_gets_a_line_an_interval(agent, monitor, capsys):
    monitor(log_to_console=True)
    printed = []
    wait_for(lambda: printed.append(capsys.readouterr().out) or "gpu_1_temperature_c:" in "".join(printed), 20)


def test_w_and_b_gets_the_gpus_from_a_process_beside(journal, monkeypatch, tmp_path):
    pytest.importorskip("wandb", reason="wandb is not installed: make trainers")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_PROJECT", "gpus")
    monitor = GPUResourceMonitor(monitor_interval=0.5, log_to_wandb=True)
    monitor.start_monitoring()
    child = monitor._monitor
    wait_for(lambda: list(tmp_path.glob("wandb/offline-run-*")), 60, 0.2)
    monitor.stop_monitoring()
    child.wait(30)


def test_the_console_backend_prints_a_line_a_step_and_the_journal_has_it(journal, capsys):
    tracking = Tracking(project_name="math", experiment_name="grpo", default_backend=["console"])
    tracking.log({"actor/loss": 0.5, "actor/grad_norm": 2.0, "note": "warm"}, step=1)
    tracking.finish()
    assert capsys.readouterr().out == "step:1 - actor/loss:0.5 - actor/grad_norm:2 - note:warm\n"
    run = told(journal, "math-grpo")
    assert run.values("actor/loss") == run.values("loss") == {1: 0.5}
    assert run.values("gradient_norm") == {1: 2.0}
    assert run.status == "finished"


def test_a_backend_that_is_not_known_is_named_and_left_out(journal, caplog):
    tracking = Tracking("math", "grpo", default_backend=["trainvitals", "clearml"])
    tracking.log({"actor/loss": 0.5}, 1)
    tracking.finish()
    assert "'clearml' is none of trainvitals, console, wandb, tensorboard, mlflow" in caplog.records[0].message
    assert told(journal).values("loss") == {1: 0.5}


def test_gpu_monitoring_reads_what_the_agent_reads(agent, journal):
    tracking = Tracking("math", "grpo", default_backend="trainvitals", enable_gpu_monitoring=True,
                        gpu_monitor_interval=0.2)  # fmt: skip
    metrics = wait_for(
        lambda: (found := tracking.gpu_monitor.get_latest_metrics()) and names_of(found, 1) and found, 20
    )
    assert names_of(metrics, 0) == GPU_KEYS
    tracking.finish()


def track(journal, tmp_path, *backends, **environment):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TRAINVITALS_DIR": str(journal), **environment}
    return subprocess.run([sys.executable, "-c", SCRIPT.format(backends=list(backends))], cwd=tmp_path, env=env,
                          capture_output=True, text=True, timeout=200, check=True)  # fmt: skip


def losses(tmp_path, run):
    return scalars(tmp_path / "tensorboard_log" / run, "training/loss")


WANTED = [(1, 1.0), (2, 0.5), (3, pytest.approx(1 / 3))]


def test_tensorboard_has_each_step_once_when_the_script_has_ended(journal, tmp_path):
    track(journal, tmp_path, "tensorboard", "console")
    wait_for(lambda: len(losses(tmp_path, "math-grpo")) >= 3, 90, 0.5)
    assert losses(tmp_path, "math-grpo") == WANTED


def test_beside_an_agent_that_hands_nothing_on_the_run_is_handed_over_at_its_end(agent, journal, tmp_path):
    track(journal, tmp_path, "tensorboard")
    (run,) = run_names(journal)
    wait_for(lambda: len(losses(tmp_path, run)) >= 3, 90, 0.5)
    assert losses(tmp_path, run) == WANTED


def test_w_and_b_and_mlflow_get_it_too(journal, tmp_path):
    pytest.importorskip("wandb", reason="wandb is not installed: make trainers")
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed: make trainers")
    place = f"sqlite:///{tmp_path}/ml.db"
    track(journal, tmp_path, "wandb", "mlflow", WANDB_MODE="offline", WANDB_DIR=str(tmp_path),
          MLFLOW_TRACKING_URI=place)  # fmt: skip
    wait_for(lambda: list(tmp_path.glob("wandb/offline-run-*/*.wandb")), 90, 0.5)
    client = mlflow.MlflowClient(place)

    def values():
        runs = [run for experiment in client.search_experiments()
                for run in client.search_runs([experiment.experiment_id])]  # fmt: skip
        return runs and [each.value for each in client.get_metric_history(runs[0].info.run_id, "loss")]

    assert sorted(wait_for(lambda: (found := values()) and len(found) == 3 and found, 90, 0.5)) == [
        pytest.approx(1 / 3), 0.5, 1.0]  # fmt: skip
