import pytest

from trainvitals.compat.performance_thresholds import BUILT_IN, split


def test_what_a_detector_judges_by_is_handed_on_in_its_terms_and_the_rest_is_kept():
    handed, kept = split({"gradient_norm_exploded": 12, "disk_usage_percent": 90.0, "gpu_memory_usage_percent": "95",
                          "training_loss_spike": 8, "loss": 9.0, "reward": {"warning": 1, "critical": 2}})  # fmt: skip
    assert handed == {"gradient_norm": 12.0, "host_disk_full": 0.1, "gpu_memory": 0.95, "loss_spike_sigma": 8.0}
    assert kept == {"loss": {"warning": 9.0}, "reward": {"warning": 1, "critical": 2}}


@pytest.mark.parametrize("given", ["high", None, float("nan"), -1, [3]])
def test_what_is_no_threshold_is_named(caplog, given):
    assert split({"cpu_usage_percent": given}) == ({}, {})
    assert "alert_system.thresholds.cpu_usage_percent" in caplog.records[0].message


def test_their_names_are_those_of_the_detectors():
    limits = pytest.importorskip("trainvitals.detect.limits", reason="there are no detectors yet")
    assert {name for name, _ in BUILT_IN.values()} <= set(limits.NAMES)
