"""As a script uses it that came from another tool: only its import is changed."""

import json
import math
import os
import socket
import subprocess
import sys
import urllib.request

import pytest

from tests.compat.test_gpu_training import bare
from tests.integrations.journal import told
from tests.integrations.test_ray import ray_environment
from trainvitals.compat import nemo_rl
from trainvitals.compat.nemo_rl import PrometheusMonitor, TrainingMonitor, monitor_ray_cluster, monitor_resources

RAY = """
import json, ray
from trainvitals.compat.nemo_rl import monitor_ray_cluster
alone = monitor_ray_cluster()
ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)

@ray.remote(num_cpus=1)
class Busy:
    def ready(self):
        return True

busy = Busy.remote()
ray.get(busy.ready.remote())
while not (seen := monitor_ray_cluster())["cpu_utilization"]:
    pass
ray.shutdown()
print(json.dumps([alone, seen]))
"""


@pytest.fixture
def served():
    monitor = PrometheusMonitor(port=0)
    yield monitor
    monitor.close()


def scrape(monitor):
    with urllib.request.urlopen(f"http://127.0.0.1:{monitor.port}/metrics", timeout=10) as answer:
        return answer.read().decode().splitlines()


@pytest.mark.parametrize(
    ("call", "parameters"),
    [
        (TrainingMonitor, "()"),
        (TrainingMonitor.record_metrics, "(self, step, loss, learning_rate, batch_size)"),
        (TrainingMonitor.get_training_stats, "(self)"),
        (monitor_resources, "()"),
        (monitor_ray_cluster, "()"),
        (PrometheusMonitor, "(port=8000)"),
        (PrometheusMonitor.update_metrics,
         "(self, loss=None, gpu_metrics=None, cpu_percent=None, step_duration=None)"),
    ],
)  # fmt: skip
def test_signatures_are_those_of_the_other_tool(call, parameters):
    assert bare(call) == parameters


def test_statistics_are_empty_at_first_and_then_those_of_the_losses(journal):
    monitor = TrainingMonitor()
    assert monitor.get_training_stats() == {}
    assert not journal.exists()
    for step, loss in enumerate((3.0, 1.0, 2.0), 1):
        monitor.record_metrics(step, loss, 1e-3, 32)
    stats = monitor.get_training_stats()
    assert list(stats) == ["current_loss", "avg_loss", "min_loss", "max_loss", "total_steps", "training_time"]
    assert [stats[name] for name in list(stats)[:5]] == [2.0, 2.0, 1.0, 3.0, 3]
    assert 0 <= stats["training_time"] < 60
    monitor.run.finish()
    assert told(journal).values("loss") == {1: 3.0, 2: 1.0, 3: 2.0}
    assert told(journal).values("batch_size") == {1: 32, 2: 32, 3: 32}


def test_a_loss_that_is_nan_shows_and_hides_no_other(journal):
    monitor = TrainingMonitor()
    for step, loss in enumerate((math.nan, 1.0, math.nan, 4.0), 1):
        monitor.record_metrics(step=step, loss=loss, learning_rate=1e-3, batch_size=1)
    stats = monitor.get_training_stats()
    assert math.isnan(stats["avg_loss"])
    assert (stats["min_loss"], stats["max_loss"], stats["current_loss"]) == (1.0, 4.0, 4.0)
    other = TrainingMonitor()
    other.record_metrics(step=1, loss=math.nan, learning_rate=1e-3, batch_size=1)
    assert math.isnan(other.get_training_stats()["max_loss"])
    other.run.finish()
    monitor.run.finish()


def test_resources_are_those_of_this_machine_and_a_gpus_only_where_torch_uses_one():
    seen = monitor_resources()
    assert list(seen) == ["cpu_percent", "cpu_count", "memory_percent", "memory_available_gb", "gpu_metrics"]
    assert 0 <= seen["cpu_percent"] <= 100
    assert seen["cpu_count"] == os.cpu_count()
    assert 0 < seen["memory_percent"] < 100
    assert seen["memory_available_gb"] > 0
    assert seen["gpu_metrics"] == {}


def test_a_ray_cluster_is_told_with_what_is_in_use(tmp_path):
    pytest.importorskip("ray", reason="ray is not installed: make trainers")
    done = subprocess.run([sys.executable, "-c", RAY], env=ray_environment(tmp_path), capture_output=True, text=True,
                          timeout=120, check=True)  # fmt: skip
    alone, seen = json.loads(done.stdout.splitlines()[-1])
    assert alone == {}
    assert list(seen) == ["cluster_resources", "available_resources", "cpu_utilization", "gpu_utilization",
                          "total_nodes"]  # fmt: skip
    assert seen["cluster_resources"]["CPU"] == 2
    assert (seen["cpu_utilization"], seen["gpu_utilization"], seen["total_nodes"]) == (0.5, 0.0, 1)


def test_prometheus_scrapes_what_was_told_last(served):
    served.update_metrics(loss=2.5, gpu_metrics={"gpu_0": {"memory_allocated": 1024.0}, "gpu_1": 512}, cpu_percent=40.0,
                          step_duration=0.2)  # fmt: skip
    served.update_metrics(loss=1.5)
    lines = scrape(served)
    for line in ("training_loss 1.5", 'gpu_memory_mb{gpu_id="gpu_0"} 1024.0', 'gpu_memory_mb{gpu_id="gpu_1"} 512.0',
                 "cpu_usage_percent 40.0", "training_step_duration_seconds_count 1.0"):  # fmt: skip
        assert line in lines


def test_two_monitors_share_no_metrics_and_what_cannot_be_told_costs_a_warning(served, caplog):
    other = PrometheusMonitor(port=0)
    other.update_metrics(loss=9.0)
    served.update_metrics(loss="high")
    assert "training_loss 9.0" not in scrape(served)
    assert "training_loss 9.0" in scrape(other)
    other.close()
    assert len(caplog.records) == 1


def test_it_listens_on_the_loopback_address_alone_and_a_taken_port_costs_a_warning(caplog):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monitor = PrometheusMonitor(port=taken.getsockname()[1])
        monitor.update_metrics(loss=1.0)
    assert "choose another one" in caplog.records[0].message
    monitor = PrometheusMonitor(port=0)
    assert monitor._server.server_address[0] == "127.0.0.1"
    monitor.close()


@pytest.fixture
def events():
    pytest.importorskip("tensorboard", reason="tensorboard is not installed: make trainers")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    def read(folder):
        found = EventAccumulator(str(folder))
        found.Reload()
        return found

    return read


def test_tensorboard_reads_what_was_written(events, tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed: make trainers")
    assert bare(nemo_rl.TensorBoardMonitor) == "(log_dir)"
    model = torch.nn.Linear(4, 2)
    model(torch.ones(1, 4)).sum().backward()
    monitor = nemo_rl.TensorBoardMonitor(tmp_path / "tb")
    monitor.log_training_metrics(1, {"loss": 2.0, "reward": torch.tensor(0.5), "nothing": None})
    monitor.log_resource_metrics(1, {"cpu_percent": 12.5, "gpu_metrics": {"gpu_0": {"memory_allocated": 3.0}}})
    monitor.log_model_parameters(step=1, model=model)
    read = events(tmp_path / "tb")
    assert [(each.step, each.value) for each in read.Scalars("training/loss")] == [(1, 2.0)]
    assert sorted(read.Tags()["scalars"]) == ["resources/cpu_percent", "resources/gpu_metrics/gpu_0/memory_allocated",
                                              "training/loss", "training/reward"]  # fmt: skip
    assert sorted(read.Tags()["histograms"]) == ["gradients/bias", "gradients/weight", "parameters/bias",
                                                 "parameters/weight"]  # fmt: skip
    counted = read.Histograms("parameters/weight")[0].histogram_value
    assert (counted.num, counted.sum) == (8, pytest.approx(model.weight.sum().item(), abs=1e-5))
    assert sum(counted.bucket) == 8
    assert read.Histograms("gradients/weight")[0].histogram_value.min == 1.0
    monitor.close()
    monitor.log_training_metrics(2, {"loss": 1.0})


def test_a_folder_that_cannot_be_written_costs_one_warning(events, tmp_path, caplog):
    (tmp_path / "file").write_text("")
    monitor = nemo_rl.TensorBoardMonitor(tmp_path / "file" / "tb")
    monitor.log_training_metrics(1, {"loss": 2.0})
    monitor.close()
    assert len(caplog.records) == 1


def test_a_full_disk_costs_one_warning(events, tmp_path, caplog):
    monitor = nemo_rl.TensorBoardMonitor(tmp_path)
    full = open("/dev/full", "wb")  # noqa: SIM115 - closed by the monitor
    monitor._writer._writer = full
    monitor.log_training_metrics(1, {"loss": 2.0})
    monitor.log_training_metrics(2, {"loss": 2.0})
    assert len(caplog.records) == 1
