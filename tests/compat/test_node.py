"""GPUs are read off the journal, whoever writes it."""

import logging
import os
import re
import subprocess
import sys
import time

import pytest

from tests.collector.support import serving, wait_for
from trainvitals.compat import node as nodes
from trainvitals.compat.node import Node, carried, start_monitor
from trainvitals.journal.gpu_keys import GIB_IN_MIB, gpu_values
from trainvitals.journal.record import timestamp
from trainvitals.sinks import resources


@pytest.fixture
def node(journal):
    node = Node(0.2)
    yield node
    node.stop()


def test_what_an_agent_reads_is_told_whole(agent, node):
    node.start()
    gpus = wait_for(node.gpus, 20)
    assert sorted(gpus) == [0, 1]
    assert {"utilization_percent", "temperature_celsius", "power_draw_watts", "clock_hertz_memory", "uuid"} <= set(
        gpus[0]
    )
    assert node._child is None
    first = gpus[0]["timestamp"]
    wait_for(lambda: node.gpus()[0]["timestamp"] > first)


def test_readings_of_an_agent_that_ended_are_not_shown_as_now(journal, node, monkeypatch):
    monkeypatch.setattr(nodes, "STALE_SECONDS", 1.0)
    with serving(journal, "--simulate", "1", "--interval", "0.2"):
        node.follow()
        wait_for(node.gpus, 20)
    wait_for(lambda: not node.gpus(), 10)


def test_without_an_agent_one_is_started_and_ends_with_who_asked(journal, node):
    node.start()
    child = node._child
    assert child.is_running
    wait_for(lambda: list(journal.glob("gpu/*/host_metrics_*.jsonl")), 20)
    other = Node(0.2)
    other.start()
    assert other._child is child
    other.stop()
    assert child.is_running
    node.stop()
    wait_for(lambda: not child.is_running)


def test_where_there_is_no_gpu_that_is_said_once_and_nothing_is_made_up(journal, node, monkeypatch, caplog):
    monkeypatch.setattr(nodes, "SILENT_SECONDS", 0.5)
    with caplog.at_level(logging.WARNING):
        node.start()
        wait_for(lambda: caplog.records, 10)
        time.sleep(1)
    assert [record.message for record in caplog.records] == [
        "no GPU readings here, so their values are absent: `trainvitals doctor` says why"
    ]
    assert node.gpus() == {}


def test_what_a_line_does_not_say_is_as_it_was_until_it_is_unknown_or_another_gpus():
    known = carried({}, [{"gpu_index": 0, "uuid": "a", "fan_speed_percent": 30, "clock_hertz_sm": 1.0},
                         {"gpu_index": 0, "clock_hertz_sm": None}])  # fmt: skip
    assert known == {0: {"gpu_index": 0, "uuid": "a", "fan_speed_percent": 30}}
    assert carried(known, [{"gpu_index": 0, "uuid": "b"}, {"gpu_index": None}]) == {0: {"gpu_index": 0, "uuid": "b"}}


def test_values_have_the_names_and_units_that_w_and_b_gets():
    line = {"gpu_index": 3, "timestamp": timestamp(), "utilization_percent": 97, "memory_percent": 50.0,
            "memory_total_mb": 80 * GIB_IN_MIB, "temperature_celsius": 61, "power_draw_watts": 400.0,
            "clock_hertz_graphics": 1.98e9, "clock_hertz_memory": 2.619e9}  # fmt: skip
    assert gpu_values(line) == resources.gpu_values(line)
    assert len(gpu_values(line)) == 7
    assert gpu_values(line) == pytest.approx({
        "gpu_3_gpu_utilization_pct": 97, "gpu_3_memory_utilization_pct": 50, "gpu_3_memory_total_gb": 80,
        "gpu_3_temperature_c": 61, "gpu_3_power_usage_w": 400, "gpu_3_graphics_clock_mhz": 1980,
        "gpu_3_memory_clock_mhz": 2619})  # fmt: skip


@pytest.mark.parametrize("variables", [{"TRAINVITALS": "off"}, {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}])
def test_switched_off_and_beside_another_rank_no_process_is_started(journal, node, monkeypatch, variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    node.start()
    assert node._child is None
    assert start_monitor() is None
    assert not journal.exists()


@pytest.mark.parametrize("name", ["gpu_training", "performance", "nemo_rl", "verl"])
def test_a_facade_brings_nothing_heavy_into_the_trainer(name):
    heavy = "torch numpy psutil pynvml prometheus_client starlette yaml wandb mlflow tensorboard transformers ray verl"
    script = f"import sys, trainvitals.compat.{name}; sys.exit(', '.join(set({heavy.split()}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False)  # fmt: skip
    assert done.stderr.strip() == ""


@pytest.mark.parametrize(("name", "needs", "left_out", "kept"), [
    ("nemo_rl", "tensorboard", "TensorBoardMonitor", "TrainingMonitor"),
    ("gpu_training", "transformers", "GPUMonitoringCallback", "GPUMonitor"),
])  # fmt: skip
def test_a_star_leaves_out_what_needs_a_package_that_is_not_there(name, needs, left_out, kept):
    module = f"trainvitals.compat.{name}"
    script = f"""
import sys
sys.modules[{needs!r}] = None
from {module} import *
{kept}
assert {left_out!r} not in dir()
from {module} import {left_out}
"""
    told = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True).stderr
    assert re.match(f"(ModuleNotFound|Import)Error: .*{needs}", told.splitlines()[-1])
