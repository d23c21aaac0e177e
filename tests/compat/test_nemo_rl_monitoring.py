"""Real-time monitoring, and what a configuration makes of it."""

import threading

import pytest

import trainvitals as tv
from tests.collector.support import wait_for
from tests.compat.test_gpu_training import bare
from tests.integrations.journal import told
from trainvitals.compat.nemo_rl import Monitoring, PerformanceAlerting, RealTimeMonitor
from trainvitals.compat.nemo_rl_monitoring import MonitoringSettings, load

YAML = """
grpo: {num_prompts_per_step: 32}
monitoring:
  enabled: true
  interval: 10
  metrics: [training_loss, gpu_memory, training_speed, model_parameters, gradient_norms, learning_rate]
  visualization: {tensorboard: true, dashboard: true, prometheus: true, grafana: true}
  alerting:
    enabled: true
    email_notifications: true
    slack_notifications: true
    thresholds: {loss_increase: 0.05, gpu_memory: 0.85, cpu_usage: 0.9, training_speed: 0.7}
  analysis: {trend_analysis: true, anomaly_detection: true, performance_regression: true}
"""


class Told:
    """An alerting system that keeps what it is given."""

    def __init__(self, fails=False):
        self.asked, self.sent, self.fails = [], [], fails

    def check_alerts(self, now, before):
        self.asked.append((now, dict(before)))
        if self.fails:
            raise RuntimeError("no")
        return PerformanceAlerting({}).check_alerts(now, before)

    def send_alert(self, alert):
        self.sent.append(alert)

    def types(self):
        return [alert["type"] for alert in self.sent]


@pytest.fixture
def monitor(journal):
    monitor = RealTimeMonitor(Told())
    yield monitor
    monitor.stop_monitoring()


@pytest.mark.parametrize(
    ("call", "parameters"),
    [(RealTimeMonitor, "(alerting_system)"), (RealTimeMonitor.start_monitoring, "(self, interval=30)"),
     (RealTimeMonitor.stop_monitoring, "(self)")],
)  # fmt: skip
def test_signatures_are_those_of_the_other_tool(call, parameters):
    assert bare(call) == parameters


def test_a_loss_that_rises_is_told_once_for_a_while(monitor):
    run = tv.start("x")
    run.log(loss=2.0)
    monitor.start_monitoring(interval=0.1)
    assert monitor.is_monitoring and monitor.monitoring_thread.daemon
    wait_for(lambda: any("loss" in now for now, _ in monitor.alerting_system.asked))
    assert "loss_increase" not in monitor.alerting_system.types()
    for _ in range(3):
        run.log(loss=3.0)
    wait_for(lambda: "loss_increase" in monitor.alerting_system.types())
    asked = len(monitor.alerting_system.asked)
    wait_for(lambda: len(monitor.alerting_system.asked) > asked + 3)
    assert monitor.alerting_system.types().count("loss_increase") == 1
    assert monitor.baseline_metrics["loss"] == 2.0
    assert 0 <= monitor.baseline_metrics["cpu_percent"] <= 100
    run.finish()


def test_a_training_that_slows_down_is_seen(monitor):
    run = tv.start("x")
    monitor.baseline_metrics = {"training_speed": 1e6}
    for _ in range(3):
        run.log(loss=1.0)
        threading.Event().wait(0.02)
    monitor.start_monitoring(interval=0.1)
    wait_for(lambda: "training_speed" in monitor.alerting_system.types())
    run.finish()


def test_it_starts_once_and_stops_and_starts_again(monitor):
    before = threading.active_count()
    monitor.start_monitoring(interval=0.1)
    thread = monitor.monitoring_thread
    monitor.start_monitoring(interval=0.1)
    assert monitor.monitoring_thread is thread
    monitor.stop_monitoring()
    monitor.stop_monitoring()
    assert not thread.is_alive() and not monitor.is_monitoring
    wait_for(lambda: threading.active_count() <= before)
    monitor.start_monitoring(interval=0.1)
    assert monitor.is_monitoring


def test_an_alerting_system_that_fails_costs_one_warning(journal, caplog):
    monitor = RealTimeMonitor(Told(fails=True))
    monitor.start_monitoring(interval=0.1)
    wait_for(lambda: len(monitor.alerting_system.asked) > 3)
    monitor.stop_monitoring()
    assert [record.message for record in caplog.records] == [
        "the real-time monitor failed and training goes on: RuntimeError: no"
    ]


def test_an_interval_that_is_none_costs_a_warning(monitor, caplog):
    monitor.start_monitoring(interval="soon")
    assert not monitor.is_monitoring
    assert len(caplog.records) == 1


def test_gpus_are_those_that_the_nodes_agent_reads(agent, monitor):
    monitor.start_monitoring(interval=0.2)
    now = wait_for(lambda: next((now for now, _ in monitor.alerting_system.asked if "gpu_memory" in now), None), 20)
    assert list(now["gpu_memory"]) == ["gpu_0", "gpu_1"]
    assert 0 < now["gpu_memory"]["gpu_0"]["memory_allocated"] <= now["gpu_memory"]["gpu_0"]["memory_total"]


def test_the_yaml_of_the_other_tool_is_read(tmp_path, caplog):
    pytest.importorskip("yaml", reason="yaml is not installed")
    (tmp_path / "grpo.yml").write_text(YAML)
    found = load(tmp_path / "grpo.yml")
    assert found == MonitoringSettings(
        enabled=True, interval=10.0, checks=["loss_increase", "gpu_memory", "training_speed"], tensorboard=True,
        page=True, alerts=True, email=True, slack=True,
        thresholds={"loss_increase": 0.05, "gpu_memory": 0.85, "cpu_usage": 0.9, "training_speed": 0.7})  # fmt: skip
    assert load(str(tmp_path / "grpo.yml")) == found
    assert not caplog.records


def test_the_part_alone_means_the_same_and_nothing_is_the_default():
    assert load({"monitoring": {"interval": 5}}) == load({"interval": 5}) == MonitoringSettings(interval=5.0)
    assert load({}) == MonitoringSettings()
    assert load({"alerting": {"thresholds": {"cpu_usage": 0.5}}}).alerts
    assert not load({"alerting": {"enabled": False, "thresholds": {"cpu_usage": 0.5}}}).alerts


def test_what_cannot_be_used_is_named_in_one_warning_with_what_can(caplog):
    load({"monitoring": {"intervall": 3, "interval": "soon", "enabled": "yes", "metrics": ["training_los"],
                         "alerting": {"thresholds": {"loss_incraese": 1, "cpu_usage": "high"}},
                         "visualization": {"tensorbord": True}, "analysis": []}})  # fmt: skip
    (record,) = caplog.records
    for words in ("'intervall' is no key: the nearest is 'interval'", "interval: 'soon' cannot be used: give seconds",
                  "enabled: 'yes' cannot be used: give true or false", "metrics: 'training_los' is no key",
                  "the nearest is 'loss_increase'", "alerting.thresholds.cpu_usage: 'high' cannot be used",
                  "'visualization.tensorbord' is no key: the nearest is 'visualization.tensorboard'"):  # fmt: skip
        assert words in record.message


@pytest.mark.parametrize("config", [None, "/no/such/file.yml", {"monitoring": []}, {"monitoring": {"alerting": 3}},
                                    {"alerting": {"thresholds": [1]}, "metrics": 3}])  # fmt: skip
def test_no_configuration_is_too_odd_to_survive(config):
    assert load(config).enabled


def test_a_training_is_recorded_and_its_alerts_are_told(journal, monkeypatch):
    monitoring = Monitoring({"monitoring": {"interval": 0.1, "metrics": ["training_loss"],
                                            "alerting": {"thresholds": {"loss_increase": 0.5}}}})  # fmt: skip
    assert monitoring.alerting.alert_thresholds == {"loss_increase": 0.5}
    monitoring.start()
    monitoring.training.record_metrics(1, 2.0, 1e-3, 8)
    wait_for(lambda: "loss" in (monitoring.real_time.baseline_metrics or {}))
    monitoring.training.record_metrics(2, 4.0, 1e-3, 8)
    wait_for(lambda: told(journal).events_of("alert"))
    monitoring.stop()
    assert told(journal).values("loss") == {1: 2.0, 2: 4.0}
    assert told(journal).status == "finished"
    assert [event["name"] for event in told(journal).events_of("alert")] == ["loss_increase"]


def test_a_run_under_way_is_the_one_that_is_watched_and_it_goes_on(journal):
    run = tv.start("mine")
    monitoring = Monitoring({"interval": 1})
    monitoring.start()
    monitoring.training.record_metrics(1, 2.0, 1e-3, 8)
    monitoring.stop()
    assert monitoring.training.run is run and run.status == "running"
    run.finish()


@pytest.mark.parametrize("switch", ["config", "environment"])
def test_switched_off_nothing_is_started(journal, monkeypatch, switch):
    if switch == "environment":
        monkeypatch.setenv("TRAINVITALS", "off")
    monitoring = Monitoring({"enabled": switch != "config", "alerting": {"enabled": True}})
    before = threading.active_count()
    monitoring.start()
    assert threading.active_count() == before and not monitoring.real_time.is_monitoring
    monitoring.stop()
    assert not journal.exists()


def test_where_to_is_taken_from_the_environment_or_asked_for(journal, monkeypatch, caplog):
    config = {"alerting": {"enabled": True, "email_notifications": True, "slack_notifications": True}}
    Monitoring(config)
    assert ["SMTP_HOST" in caplog.text, "SLACK_WEBHOOK_URL" in caplog.text] == [True, True]
    caplog.clear()
    for name, value in {"SMTP_HOST": "mail.example.org", "SMTP_TO": "you@example.org", "SMTP_FROM": "me@example.org",
                        "SLACK_WEBHOOK_URL": "https://hooks.example.org/x"}.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    alerting = Monitoring(config).alerting
    assert alerting.email_config["smtp_server"] == "mail.example.org"
    assert alerting.slack_webhook_url == "https://hooks.example.org/x"
    assert not caplog.records
