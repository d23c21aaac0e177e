"""The table of metrics: frozen names, one meaning a field, and a page that follows it."""

import re
from pathlib import Path

import pytest

from trainvitals import catalog, metrics_page
from trainvitals.catalog import METRICS, SCOPES, SERIES, Metric

REPO = Path(__file__).parents[2]
GIVEN = {
    "gpu_utilization_percent", "gpu_memory_used_mb", "gpu_memory_total_mb", "gpu_temperature_celsius",
    "gpu_power_draw_watts", "gpu_fan_speed_percent", "training_loss", "training_steps_total", "training_epoch",
    "learning_rate", "gradient_norm", "training_step_duration_seconds", "memory_allocation_mb", "cpu_usage_percent",
}  # fmt: skip
RELIED_ON = {
    "training_run_info": ("run", "name", "framework", "world_size"),
    "training_run_status": ("run", "status"),
    "training_start_timestamp_seconds": ("run",),
    "training_last_step_timestamp_seconds": ("run", "rank"),
    "training_last_checkpoint_timestamp_seconds": ("run",),
    "training_planned_steps": ("run",),
    "training_phase_seconds_total": ("run", "rank", "phase"),
    "training_throughput_samples_per_second": ("run", "rank"),
    "training_tokens_per_second": ("run", "rank"),
    "training_nonfinite_total": ("run", "rank", "field"),
    "training_gpu_info": ("run", "rank", "gpu", "uuid"),
    "training_metric": ("run", "rank", "name"),
    "gpu_expected_count": (),
    "node_price_dollars_per_hour": (),
    "trainvitals_source_up": ("source",),
}


def test_the_given_names_are_there_exactly() -> None:
    assert set(catalog.BY_NAME) >= GIVEN


@pytest.mark.parametrize("name", RELIED_ON)
def test_what_rules_and_dashboards_rely_on_has_its_labels(name: str) -> None:
    assert set(catalog.BY_NAME[name].labels) == set(RELIED_ON[name])


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_row_is_well_formed(metric: Metric) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]*", metric.name)
    assert metric.help.endswith((".", "1."))
    assert (metric.kind == "counter") == metric.name.endswith("_total")
    assert metric.scope in SCOPES
    assert len(set(metric.labels)) == len(metric.labels)
    assert "host" not in metric.labels
    assert "instance" not in metric.labels


def test_names_and_fields_are_not_given_twice() -> None:
    assert len(catalog.BY_NAME) == len(METRICS)
    assert sum(len(fields) for fields in SERIES.values()) == sum(len(list(metric.fields())) for metric in METRICS)


def test_units_stand_at_the_end_of_new_names() -> None:
    suffixes = {"seconds": "seconds", "bytes": "bytes", "watts": "watts", "hertz": "hertz", "joules": "joules",
                "celsius": "celsius", "ratio": "ratio"}  # fmt: skip
    for metric in METRICS:
        if metric.unit in suffixes:
            assert re.search(rf"_{suffixes[metric.unit]}(_total)?$", metric.name), metric.name


def test_the_page_is_made_from_the_table() -> None:
    page = (REPO / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert page == metrics_page.markdown(), "docs/metrics.md differs from catalog.py: run `make docs`"


def test_the_page_names_every_metric_with_its_labels() -> None:
    for metric in METRICS:
        assert f"| `{metric.name}` | " in metrics_page.markdown()
