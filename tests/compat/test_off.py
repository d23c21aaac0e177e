"""TRAINVITALS=off: every module does nothing, and what is asked for a value still answers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tensorboard", reason="tensorboard is not installed: make trainers")
pytest.importorskip("torch", reason="torch is not installed: make trainers")

SCRIPT = """
import os, threading
import torch
from trainvitals.compat import gpu_training, nemo_rl, performance, verl

def sockets():
    return [fd for fd in range(3, 256) if "/socket:" in os.path.realpath(f"/proc/self/fd/{fd}")]

threads, before = threading.active_count(), sockets()
model = torch.nn.Linear(2, 1)

board = nemo_rl.TensorBoardMonitor("board")
board.log_training_metrics(1, {"loss": 1.0}); board.log_resource_metrics(1, {"cpu_percent": 1.0})
board.log_model_parameters(1, model)
served = nemo_rl.PrometheusMonitor(0)
served.update_metrics(loss=1.0, cpu_percent=1.0, step_duration=0.1)
losses = nemo_rl.TrainingMonitor()
losses.record_metrics(1, 2.5, 0.1, 8)
assert losses.get_training_stats()["current_loss"] == 2.5
assert nemo_rl.monitor_resources()["cpu_count"] >= 1

alerting = nemo_rl.PerformanceAlerting({"smtp_server": "127.0.0.1", "smtp_port": 9, "to": "you@example.org"})
assert [alert["type"] for alert in alerting.check_alerts({"loss": 2.0}, {"loss": 1.0})] == ["loss_increase"]
assert alerting.send_alert({"type": "x"}) is False
watching = nemo_rl.RealTimeMonitor(alerting)
watching.start_monitoring(interval=0.1)
monitoring = nemo_rl.Monitoring({"alerting": {"enabled": True}, "visualization": {"dashboard": True}})
monitoring.start()

gpus = verl.GPUResourceMonitor(0.1, log_to_wandb=True, log_to_console=True)
gpus.start_monitoring()
tracking = verl.Tracking("project", "name", ["console", "tensorboard", "mlflow"], enable_gpu_monitoring=True)
tracking.log({"actor/loss": 0.5}, step=1)

callback = gpu_training.TrainingMonitorCallback(gpu_training.GPUMonitor())
callback.on_train_begin(); callback.on_step_begin(); callback.on_step_end(step=1, loss=1.0)

monitor = performance.TrainingMonitor({"save_dir": "saved", "tensorboard_dir": "board", "enable_dashboard": True})
monitor.start_monitoring()
monitor.log_training_step(model=model, loss=1.0)
system = performance.SystemMonitor(0.1)
system.start_monitoring()
assert system.cpu_usage_percent is not None and system.memory_usage_percent > 0
measured = monitor.log_model_inference_benchmark(model, "cpu", torch.ones(3, 2))
assert measured["avg_latency_ms"] > 0 and measured["model_size_mb"] > 0
assert monitor.log_model_inference_benchmark(None, "cpu", None)["avg_latency_ms"] is None

assert threading.active_count() == threads, threading.enumerate()
assert sockets() == before
for each in (board, served):
    each.close()
watching.stop_monitoring(); monitoring.stop()
tracking.finish(); gpus.stop_monitoring(); callback.on_train_end(); monitor.stop_monitoring(); system.stop_monitoring()
assert not os.listdir("."), os.listdir(".")
"""


def test_nothing_is_written_served_started_or_said(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    environ = {
        **os.environ,
        "TRAINVITALS": "off",
        "TRAINVITALS_DIR": str(tmp_path / "journal"),
        "WANDB_MODE": "offline",
    }
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=here, env=environ, capture_output=True, text=True,
                          timeout=100, check=False)  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [path.name for path in tmp_path.iterdir()] == ["here"]
