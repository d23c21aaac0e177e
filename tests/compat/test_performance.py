"""As a script uses it that came from another tool: only its import is changed."""

import inspect
import logging
import time
import urllib.request

import pytest

from tests.collector.support import wait_for
from tests.compat.support import scalars
from tests.compat.test_gpu_training import bare
from tests.integrations.journal import told
from trainvitals.compat.performance import AlertSystem, SystemMonitor, TrainingMetrics, TrainingMonitor

BENCHMARK = ["avg_latency_ms", "samples_per_second", "model_size_mb", "quantization_ratio"]


@pytest.fixture
def monitor(journal):
    monitor = TrainingMonitor({"enable_performance_monitor": False})
    monitor.start_monitoring()
    yield monitor
    monitor.stop_monitoring()


@pytest.mark.parametrize(
    ("call", "parameters"),
    [
        (TrainingMonitor, "(config=None)"),
        (TrainingMonitor.start_monitoring, "(self)"),
        (TrainingMonitor.stop_monitoring, "(self)"),
        (TrainingMonitor.log_training_step, "(self, model=None, optimizer=None, loss=None, accuracy=None, "
         "learning_rate=None, custom_metrics=None)"),
        (TrainingMonitor.log_model_inference_benchmark, "(self, model, device, dummy_input)"),
        (AlertSystem.add_alert_rule,
         "(self, name, condition, severity='warning', message='', cooldown_seconds=300.0)"),
        (SystemMonitor, "(update_interval=1.0)"),
    ],
)  # fmt: skip
def test_signatures_are_those_of_the_other_tool(call, parameters):
    assert bare(call) == parameters


def test_metrics_have_the_fields_that_a_condition_may_ask_for():
    names = list(inspect.signature(TrainingMetrics).parameters)
    assert names[:7] == [
        "loss",
        "accuracy",
        "learning_rate",
        "grad_norm",
        "batch_time",
        "cpu_memory_mb",
        "gpu_memory_mb",
    ]


def test_steps_are_in_the_journal_with_their_times_and_memory(monitor, journal):
    for step in (1, 2, 3):
        time.sleep(0.02)
        monitor.log_training_step(loss=1.0 / step, accuracy=0.9, learning_rate=1e-3, custom_metrics={"reward": step})
    monitor.stop_monitoring()
    run = told(journal)
    assert run.values("loss") == {1: 1.0, 2: 0.5, 3: 1 / 3}
    assert run.values("reward") == {1: 1, 2: 2, 3: 3}
    assert set(run.values("accuracy").values()) == {0.9}
    assert set(run.values("learning_rate").values()) == {1e-3}
    assert all(0.02 <= seconds < 2 for seconds in run.values("step_duration_seconds").values())
    assert run.values("cpu_memory_mb")[3] > 10
    assert run.values("memory_allocated_mb") == {}
    assert run.status == "finished"


def test_before_it_starts_and_after_it_stops_nothing_is_logged_and_nothing_fails(journal):
    monitor = TrainingMonitor({"enable_performance_monitor": False})
    monitor.log_training_step(loss=1.0)
    monitor.stop_monitoring()
    monitor.start_monitoring()
    monitor.stop_monitoring()
    monitor.log_training_step(loss=2.0)
    assert told(journal).values("loss") == {}


@pytest.mark.parametrize(
    ("severity", "told_as"), [("warning", "ticket"), ("critical", "page"), ("error", "page"), ("info", "info")]
)
def test_an_alert_is_told_with_its_severity_and_message(monitor, journal, severity, told_as):
    monitor.alert_system.add_alert_rule(
        name="hot", condition=lambda metrics: metrics.loss > 5 and metrics.reward < 1, severity=severity,
        message="loss {loss:.2f}, reward {reward}, norm {grad_norm:.1f} and {nobody:.3f} knows",
        cooldown_seconds=60)  # fmt: skip
    for loss in (1.0, 9.876, 9.9):
        monitor.log_training_step(loss=loss, custom_metrics={"reward": 0.5, "grad_norm": 3.0})
    (event,) = told(journal).events_of("alert")
    assert (event["name"], event["severity"], event["step"]) == ("hot", told_as, 2)
    assert event["message"] == "loss 9.88, reward 0.5, norm 3.0 and {nobody:.3f} knows"


def test_a_field_that_a_step_did_not_tell_stays_as_it_was_written(monitor, journal):
    monitor.alert_system.add_alert_rule(name="any", condition=lambda metrics: True, message="{grad_norm:.1f} {epoch}")
    monitor.log_training_step(loss=1.0)
    assert told(journal).events_of("alert")[0]["message"] == "{grad_norm:.1f} {epoch}"


def test_an_alert_is_told_again_after_its_cooldown(monitor, journal):
    monitor.alert_system.add_alert_rule(name="hot", condition=lambda metrics: True, cooldown_seconds=0)
    for _ in range(3):
        monitor.log_training_step(loss=1.0)
    assert len(told(journal).events_of("alert")) == 3


def test_a_condition_on_what_a_step_did_not_tell_is_not_met_and_asked_again(monitor, journal, caplog):
    monitor.alert_system.add_alert_rule(name="slow", condition=lambda metrics: metrics.accuracy < 0.5)
    monitor.alert_system.add_alert_rule(name="reward", condition=lambda metrics: metrics.reward < 0)
    monitor.log_training_step(loss=1.0)
    monitor.log_training_step(accuracy=0.1, custom_metrics={"reward": -1.0})
    assert [event["name"] for event in told(journal).events_of("alert")] == ["slow", "reward"]
    assert not caplog.records


def test_a_condition_that_fails_is_switched_off_with_one_warning(monitor, journal, caplog):
    monitor.alert_system.add_alert_rule(name="broken", condition=lambda metrics: 1 / 0)
    for _ in range(3):
        monitor.log_training_step(loss=1.0)
    (record,) = caplog.records
    assert "'broken' is switched off" in record.message
    assert set(told(journal).values("loss")) == {1, 2, 3}


def test_rules_added_before_the_start_hold_and_none_where_alerts_are_off(journal):
    for enabled in (True, False):
        monitor = TrainingMonitor({"enable_alerts": enabled, "enable_performance_monitor": False})
        monitor.alert_system.add_alert_rule(name="early", condition=lambda metrics: True)
        monitor.start_monitoring()
        monitor.log_training_step(loss=1.0)
        monitor.stop_monitoring()
    assert len(told(journal, "training").events_of("alert")) == 1
    assert told(journal, "training-2").events_of("alert") == []


def test_thresholds_that_no_detector_has_are_rules_on_metrics_and_on_the_machine(journal):
    monitor = TrainingMonitor({"alert_system": {"thresholds": {"loss": {"warning": 1, "critical": 5},
                                                               "disk_read_mb_s": -1}}})  # fmt: skip
    monitor.start_monitoring()
    wait_for(lambda: monitor.system_monitor.disk_read_mb_s is not None)
    monitor.log_training_step(loss=2.0)
    monitor.stop_monitoring()
    assert [(event["name"], event["severity"]) for event in told(journal).events_of("alert")] == [
        ("loss over 1", "ticket"), ("disk_read_mb_s over -1", "ticket")]  # fmt: skip
    assert told(journal).run["config"] == {}


def test_thresholds_of_detectors_go_with_the_run_for_the_agent_to_judge_by(journal):
    thresholds = {"cpu_usage_percent": 85.0, "learning_rate_too_low": 1e-9,
                  "gpu_temperature": {"critical": 90, "warning": 75},
                  "memory_usage_percent": {"critical": 0.001, "warning": 80}}  # fmt: skip
    monitor = TrainingMonitor({"alert_system": {"thresholds": thresholds}, "enable_performance_monitor": False})
    monitor.start_monitoring()
    wait_for(lambda: monitor.system_monitor.memory_usage_percent)
    monitor.log_training_step(loss=2.0, learning_rate=1e-12)
    monitor.stop_monitoring()
    assert told(journal).run["config"] == {"alert_thresholds": {
        "host_cpu": 0.85, "gpu_temperature": 75.0, "learning_rate_low": 1e-9, "host_memory": 0.8}}  # fmt: skip
    assert [(event["name"], event["severity"]) for event in told(journal).events_of("alert")] == [
        ("memory_usage_percent over 0.001", "page")]  # fmt: skip


def test_thresholds_go_nowhere_where_alerts_are_off(journal):
    monitor = TrainingMonitor({"alert_system": {"enabled": False, "thresholds": {"cpu_usage_percent": 85.0}},
                               "enable_performance_monitor": False})  # fmt: skip
    monitor.start_monitoring()
    monitor.stop_monitoring()
    assert told(journal).run["config"] == {}


def test_gradients_are_watched_where_asked_for(journal):
    torch = pytest.importorskip("torch", reason="torch is not installed: make trainers")
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    monitor = TrainingMonitor({"track_gradients": True, "gradient_monitoring": {"track_layers": ["1"]},
                               "enable_performance_monitor": False})  # fmt: skip
    monitor.start_monitoring()
    for _ in range(25):
        loss = model(torch.randn(8, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        monitor.log_training_step(model=model, optimizer=optimizer, loss=loss)
    monitor.stop_monitoring()
    assert all(norm > 0 for norm in told(journal).values("gradient_norm").values())
    assert told(journal).values("gradient_norm")
    assert any(name.endswith("/1") for line in told(journal).lines for name in line)


def test_the_benchmark_tells_what_the_other_tool_told(monitor, journal):
    torch = pytest.importorskip("torch", reason="torch is not installed: make trainers")
    model = torch.nn.Linear(256, 256)
    told_of = monitor.log_model_inference_benchmark(model, torch.device("cpu"), torch.randn(8, 256))
    assert list(told_of) == BENCHMARK
    assert told_of["avg_latency_ms"] * told_of["samples_per_second"] == pytest.approx(8000)
    assert told_of["model_size_mb"] == pytest.approx(256 * 257 * 4 / 2**20, rel=0.05)
    assert 0.2 < told_of["quantization_ratio"] < 0.4
    assert told(journal).events_of("inference")


def test_the_benchmark_measures_without_a_run_too_and_writes_nothing(journal):
    torch = pytest.importorskip("torch", reason="torch is not installed: make trainers")
    told_of = TrainingMonitor().log_model_inference_benchmark(torch.nn.Linear(8, 8), "cpu", torch.randn(2, 8))
    assert list(told_of) == BENCHMARK and all(value > 0 for value in told_of.values()), told_of
    assert not journal.exists()


@pytest.mark.parametrize("is_started", [True, False])
def test_a_benchmark_that_fails_costs_a_warning_and_knows_nothing(journal, caplog, is_started):
    monitor = TrainingMonitor({"enable_performance_monitor": False})
    if is_started:
        monitor.start_monitoring()
    told_of = monitor.log_model_inference_benchmark(object(), "cpu", None)
    monitor.stop_monitoring()
    assert told_of == dict.fromkeys(BENCHMARK)
    assert len(caplog.records) == 1


@pytest.mark.parametrize("is_started", [True, False])
def test_the_machine_answers_from_the_first_question_on(journal, is_started):
    monitor = SystemMonitor(update_interval=0.1)
    if is_started:
        monitor.start_monitoring()
    assert 0 <= monitor.cpu_usage_percent <= 100
    assert 0 < monitor.memory_usage_percent < 100
    assert monitor.gpu_utilization is None
    assert list(monitor.get_metrics()) == ["cpu_usage_percent", "memory_usage_percent", "gpu_utilization",
                                           "gpu_temperature", "gpu_power_watts", "disk_read_mb_s"]  # fmt: skip
    wait_for(lambda: monitor.disk_read_mb_s is not None)
    monitor.stop_monitoring()
    with pytest.raises(AttributeError, match="it has cpu_usage_percent"):
        monitor.gpu_utilisation  # noqa: B018


def test_two_monitors_asked_at_once_agree(journal):
    """A share of no time at all would be 0 or 100."""
    one, other = SystemMonitor(), SystemMonitor()
    assert one.cpu_usage_percent == other.cpu_usage_percent
    one.stop_monitoring()
    other.stop_monitoring()


def test_an_agent_is_started_by_the_first_question_alone(journal):
    config = {"enable_performance_monitor": False}
    assert TrainingMonitor(config).system_monitor.memory_usage_percent > 0
    assert not journal.exists()
    monitor = SystemMonitor()
    assert not journal.exists()
    monitor.get_metrics()
    wait_for(journal.exists, 20)
    monitor.stop_monitoring()


def test_the_first_gpus_readings_are_the_machines(agent, journal):
    monitor = SystemMonitor(update_interval=0.2)
    assert wait_for(lambda: monitor.gpu_utilization, 20) > 0
    assert monitor.gpu_temperature > 20
    assert monitor.gpu_power_watts > 50
    monitor.stop_monitoring()


def test_the_dashboard_is_the_agents_page_on_the_port_asked_for(journal, tmp_path):
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monitor = TrainingMonitor({"save_dir": str(tmp_path / "here"), "enable_dashboard": True, "dashboard_port": port})
    monitor.start_monitoring()
    monitor.log_training_step(loss=0.125)

    def page(path="/metrics"):
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5).read().decode()
        except OSError:
            return ""

    wait_for(lambda: "training_loss{" in page() and "0.125" in page(), 30)
    assert "<title>TrainVitals</title>" in page("/")
    monitor.stop_monitoring()
    wait_for(lambda: not page(), 20)
    assert told(tmp_path / "here").status == "finished"
    assert not journal.exists()


def test_tensorboard_gets_the_run_to_its_end(journal, tmp_path):
    monitor = TrainingMonitor({"tensorboard_dir": str(tmp_path / "tb"), "enable_performance_monitor": False})
    monitor.start_monitoring()
    for loss in (3.0, 2.0, 1.0):
        monitor.log_training_step(loss=loss)
    monitor.stop_monitoring()

    folder = tmp_path / "tb" / "training"
    wait_for(lambda: len(scalars(folder, "training/loss")) >= 3, 90, 0.5)
    assert scalars(folder, "training/loss") == [(1, 3.0), (2, 2.0), (3, 1.0)]


def test_only_rank_0_records_where_that_is_wanted(journal, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monitor = TrainingMonitor({"distributed_monitoring": True, "track_rank_0_only": True,
                               "enable_performance_monitor": False})  # fmt: skip
    monitor.start_monitoring()
    monitor.log_training_step(loss=1.0)
    monitor.stop_monitoring()
    assert not journal.exists()


def test_a_journal_that_cannot_be_written_costs_a_warning_and_no_training(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.WARNING):
        monitor = TrainingMonitor({"save_dir": str(tmp_path / "file" / "run"), "enable_performance_monitor": False})
        monitor.start_monitoring()
        monitor.log_training_step(loss=1.0)
        monitor.stop_monitoring()
    assert len(caplog.records) == 1
