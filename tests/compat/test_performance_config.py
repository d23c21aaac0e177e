import logging
from dataclasses import asdict

import pytest

from trainvitals.compat.performance_config import KEYS, Settings, load

YAML = """
save_dir: /data/run
tensorboard_dir: /data/tb
dashboard:
  enabled: true
  host: 127.0.0.1
  port: 9001
  refresh_interval: 2
alert_system:
  enabled: true
  thresholds:
    gpu_temperature: 85
metrics_collection:
  buffer_size: 1000
  flush_interval: 10
performance_tuning:
  high_frequency_mode: false
  worker_threads: 4
"""


def test_a_yaml_file_in_sections_is_read(tmp_path, caplog):
    pytest.importorskip("yaml", reason="yaml is not installed")
    (tmp_path / "config.yml").write_text(YAML)
    found = load(tmp_path / "config.yml")
    assert (found.save_dir, found.tensorboard_dir) == ("/data/run", "/data/tb")
    assert (found.dashboard, found.host, found.port, found.interval) == (True, "127.0.0.1", 9001, 2.0)
    assert (found.alerts, found.thresholds) == (True, {"gpu_temperature": 85})
    assert load(str(tmp_path / "config.yml")) == found
    assert not caplog.records


def test_a_flat_dictionary_means_the_same(caplog):
    found = load({"save_dir": "/data/run", "enable_dashboard": True, "dashboard_port": 9001, "enable_alerts": False,
                  "tensorboard_dir": "/tb", "enable_performance_monitor": False, "track_gradients": True,
                  "gradient_monitoring.track_layers": ["a", "b"], "distributed_monitoring": True,
                  "track_rank_0_only": True})  # fmt: skip
    assert found == Settings(save_dir="/data/run", tensorboard_dir="/tb", dashboard=True, port=9001, alerts=False,
                             performance_monitor=False, gradients=True, layers=["a", "b"],
                             rank_0_only=True)  # fmt: skip
    assert not caplog.records


def test_nothing_given_is_the_default():
    assert load(None) == load({}) == Settings()


def test_high_frequency_reads_more_often():
    assert load({"performance_tuning": {"high_frequency_mode": True}}).interval < Settings().interval


def test_unknown_keys_are_named_in_one_warning_with_the_nearest(caplog):
    with caplog.at_level(logging.WARNING):
        found = load({"save_dri": "/x", "dashboard": {"prot": 9001, "enabled": True}, "alert_sytem": {"enabled": True}})
    (record,) = caplog.records
    assert record.message == (
        "config: 'save_dri' is no key: the nearest is 'save_dir'; 'dashboard.prot' is no key: the nearest is "
        "'dashboard.port'; 'alert_sytem' is no key: the nearest is 'alert_system'"
    )
    assert found.dashboard


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [("dashboard_port", "web", "a port's number"), ("enable_alerts", "maybe", "true or false"),
     ("save_dir", 3, "a folder"), ("gradient_monitoring.track_layers", 3, "a list of layers' names")],
)  # fmt: skip
def test_a_value_that_cannot_be_used_is_named_with_what_can(caplog, key, value, wanted):
    assert load({key: value}) == Settings()
    assert caplog.records[0].message == f"config: {key}: {value!r} cannot be used: give {wanted}"


@pytest.mark.parametrize("text", [None, "a: [", "- a\n- b\n"])
def test_a_file_that_cannot_be_read_costs_a_warning(tmp_path, caplog, text):
    if text is not None:
        (tmp_path / "config.yml").write_text(text)
    assert load(tmp_path / "config.yml") == Settings()
    assert len(caplog.records) == 1


def test_each_key_has_its_setting():
    assert {target for target in KEYS.values() if target} - {"high_frequency"} == asdict(Settings()).keys()
