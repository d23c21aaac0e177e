"""The same machine as each exporter tells it, two at a time too: one vocabulary comes out, and each GPU once.

The expositions in fixtures are written after the exporters' documented names, units and shapes.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.prometheus.support import FIXTURES, PROMETHEUS, promtool

A = 'gpu="0",instance="gpu-1",uuid="GPU-aaaaaaaa-0000"'
B = 'gpu="1",instance="gpu-1",uuid="GPU-bbbbbbbb-0000"'
GIB, MIB = 2**30, 2**20


def per_gpu(counter: str) -> str:
    """Each exporter counts for itself."""
    return f"max by (instance, gpu, uuid) ({counter})"


# What all of them tell. GPU 1's memory has no sensor, its count of clocks is less: what is unknown is absent.
TOLD: dict[str, dict[str, float]] = {
    "gpu:utilization:ratio": {A: 0.97, B: 1.0},
    "gpu:memory_used:bytes": {A: 60000 * MIB},
    "gpu:memory_total:bytes": {A: 80000 * MIB},
    "gpu:memory_used:ratio": {A: 0.75},
    "gpu:temperature:celsius": {A: 62, B: 86},
    "gpu:temperature_slowdown:celsius": {A: 87},
    "gpu:memory_temperature:celsius": {A: 71},
    "gpu:power:watts": {A: 612.5, B: 401.2},
    "gpu:power_limit:watts": {A: 700},
    per_gpu("gpu:energy:joules_total"): {A: 5001408.026},
    "gpu:fan_speed:ratio": {A: 0.4},
    "gpu:memory_controller_utilization:ratio": {A: 0.58},
    'gpu:clock:hertz{clock="sm"}': {f'clock="sm",{A}': 1.98e9, f'clock="sm",{B}': 1.155e9},
    'gpu:clock:hertz{clock="memory"}': {f'clock="memory",{A}': 2.619e9},
    "gpu:clock_max:hertz": {f'clock="sm",{A}': 1.98e9},
    "gpu:throttle:active == 1": {
        f'reason="sw_power_cap",{A}': 1,
        f'reason="hw_slowdown",{B}': 1,
        f'reason="hw_thermal_slowdown",{B}': 1,
    },
    "count(gpu:throttle:active)": {"": 12},
    "gpu:pcie_generation": {A: 5},
    "gpu:pcie_width": {A: 8},
    "gpu:pcie_degraded": {A: 1},
    "gpu:pcie_receive:bytes_per_second": {A: 2.1e9},
    "gpu:ecc_uncorrected:total": {A: 1},
    per_gpu("gpu:ecc_corrected:total"): {A: 12},
    "gpu:remapped_rows_pending": {A: 1},
    "gpu:remapped_rows_failed": {A: 0},
    "gpu:xid_last:timestamp_seconds": {f'{B},xid="79"': 60},
    "node:gpus:count": {'instance="gpu-1"': 2},
    "node:gpus_expected:count": {'instance="gpu-1"': 2},
}
DCGM_ALONE: dict[str, dict[str, float]] = {
    per_gpu("gpu:pcie_replays:total"): {A: 3},
    per_gpu("gpu:nvlink_errors:total"): {A: 7},
    "gpu:nvlink_bytes:rate": {A: 1_024_000_000},
    "gpu:sm_active:ratio": {A: 0.81},
    "gpu:tensor_active:ratio": {A: 0.44},
    "gpu:dram_active:ratio": {A: 0.52},
}
SMI_ALONE: dict[str, dict[str, float]] = {"gpu:recovery_action": {A: 1}}
OURS = {
    f"gpu_temperature_celsius{{{A}}}": 61,
    f"gpu_utilization_percent{{{A}}}": 96,
    f"gpu_power_draw_watts{{{A}}}": 610,
    'gpu_count{instance="gpu-1"}': 2,
    'gpu_expected_count{instance="gpu-1"}': 2,
}


def exposed(name: str, job: str) -> Iterator[tuple[str, float]]:
    for family in text_string_to_metric_families((FIXTURES / f"{name}.prom").read_text()):
        for sample in family.samples:
            labels = {**sample.labels, "instance": "gpu-1", "job": job}
            written = ",".join(f'{key}="{value}"' for key, value in labels.items())
            yield f"{sample.name}{{{written}}}", sample.value


def history(series: str, value: float) -> str:
    """An Xid of DCGM's comes in the fifth sample, a minute after the start: its gauge had shown nothing before."""
    return f"0x3 {value:g}x80" if "XID_ERROR" in series and value else f"{value!r}x80"


def expectation(expr: str, wanted: dict[str, float]) -> dict[str, Any]:
    found = re.match(r"(gpu|node):[\w:]+", expr)
    name = found[0] if found else ""
    samples = [{"labels": f"{name}{{{labels}}}", "value": value} for labels, value in wanted.items()]
    return {"expr": expr, "eval_time": "5m", "exp_samples": samples}


def judge(folder: Path, series: dict[str, float], told: dict[str, dict[str, float]]) -> None:
    case = {
        "interval": "15s",
        "input_series": [{"series": name, "values": history(name, value)} for name, value in series.items()],
        "promql_expr_test": [expectation(expr, wanted) for expr, wanted in told.items()],
    }
    rule_files = [str(PROMETHEUS / "rules" / f"{name}.yml") for name in ("thresholds", "normalize", "record")]
    path = folder / "case.yml"
    path.write_text(yaml.safe_dump({"rule_files": rule_files, "evaluation_interval": "15s", "tests": [case]}))
    promtool("test", "rules", path)


@pytest.mark.parametrize("version", ["4.8", "4.9"])
def test_both_vocabularies_of_dcgm_become_one(tmp_path: Path, version: str) -> None:
    judge(tmp_path, dict(exposed(f"dcgm-{version}", "dcgm")), TOLD | DCGM_ALONE)


def test_nvidia_gpu_exporter_becomes_the_same(tmp_path: Path) -> None:
    judge(tmp_path, dict(exposed("nvidia-smi-1.15", "nvidia-smi")), TOLD | SMI_ALONE)


def test_two_exporters_on_a_node_count_each_gpu_once(tmp_path: Path) -> None:
    both = dict(exposed("dcgm-4.8", "dcgm")) | dict(exposed("nvidia-smi-1.15", "nvidia-smi"))

    judge(tmp_path, both, TOLD | DCGM_ALONE | SMI_ALONE)


def test_a_fleet_in_the_middle_of_an_upgrade_counts_each_gpu_once(tmp_path: Path) -> None:
    judge(tmp_path, dict(exposed("dcgm-4.8", "dcgm")) | dict(exposed("dcgm-4.9", "dcgm")), TOLD | DCGM_ALONE)


def test_each_exporters_counters_stand_by_themselves(tmp_path: Path) -> None:
    told = {
        "count by (exporter) (gpu:ecc_corrected:total)": {
            'exporter="dcgm"': 1, 'exporter="nvidia-smi"': 1, 'exporter="trainvitals"': 1,
        },
    }  # fmt: skip
    both = dict(exposed("dcgm-4.8", "dcgm")) | dict(exposed("nvidia-smi-1.15", "nvidia-smi"))

    judge(tmp_path, both | {f'gpu_ecc_volatile_errors_total{{{A},kind="corrected"}}': 12}, told)


def test_our_collector_wins_where_it_knows_and_dcgm_fills_what_it_does_not(tmp_path: Path) -> None:
    ours = {
        "gpu:temperature:celsius": {A: 61, B: 86},
        "gpu:utilization:ratio": {A: 0.96, B: 1.0},
        "gpu:power:watts": {A: 610, B: 401.2},
        "node:gpu_power:watts": {'instance="gpu-1"': 1011.2},
    }

    judge(tmp_path, OURS | dict(exposed("dcgm-4.8", "dcgm")), TOLD | DCGM_ALONE | ours)
