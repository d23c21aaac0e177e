"""What people read in the terminal."""

import json
import logging
import sys
from pathlib import Path

import pytest

from trainvitals import console
from trainvitals.agent.sampler import SourceState
from trainvitals.model import EMPTY, Reading, Snapshot, Value


def gpu(index: int, **values: Value) -> Reading:
    return Reading("gpu", (("gpu", str(index)), ("uuid", f"GPU-{index}")), values, 1.0)


def snapshot(*readings: Reading) -> Snapshot:
    return Snapshot(1.0, readings)


def test_a_line_a_tick() -> None:
    seen = snapshot(
        gpu(10, utilization_percent=100.0, memory_used_mb=1.0, memory_total_mb=3.0),
        gpu(0, utilization_percent=85.2, memory_used_mb=763.0, memory_total_mb=1000.0),
        gpu(2, memory_used_mb=0.0, memory_total_mb=0.0),
    )
    assert console.tick_line(seen) == "GPU0: 85.2%/76.3% | GPU2: -/- | GPU10: 100.0%/33.3%"
    assert console.tick_line(EMPTY) == "no GPU answers"


def test_a_summary_is_of_what_came_since_the_last() -> None:
    summary = console.Summary()
    for percent, watts in ((10.0, 100.0), (30.0, 500.0)):
        summary.add(snapshot(gpu(1, utilization_percent=percent, power_draw_watts=watts), gpu(0)))
    assert summary.lines() == ["GPU1 utilisation 20.0% (peak 30.0), power 300.0 W (peak 500.0)"]
    assert summary.lines() == []


def test_words_for_gpus_of_two_kinds_and_one_that_is_gone() -> None:
    info = [Reading("gpu_info", (("uuid", f"GPU-{n}"), ("name", name), ("driver_version", "580")), {"info": 1.0}, 1.0)
            for n, name in ((0, "H100"), (1, "H100"), (2, "T4"))]  # fmt: skip
    states = {"nvml": SourceState(up=True, problem="nvml: GPU 3 fell off"), "host": SourceState(up=True)}
    assert console.gpu_words(snapshot(gpu(0), gpu(1), gpu(2), *info), states) == [
        "2 x H100, driver 580",
        "1 x T4, driver 580",
        "nvml: GPU 3 fell off",
    ]
    absent = {"nvml": SourceState(up=None, problem="nvml: this machine has no NVIDIA GPU")}
    assert "trainvitals demo" in console.gpu_words(EMPTY, absent)[0]
    assert console.gpu_words(EMPTY, {}) == ["none answered yet"]


def test_one_reading_in_words_has_a_dash_for_what_is_unknown() -> None:
    info = Reading("gpu_info", (("uuid", "GPU-0"), ("name", "NVIDIA H100")), {"info": 1.0}, 1.0)
    full = gpu(0, utilization_percent=96.4, memory_used_mb=78.0, memory_total_mb=100.0, temperature_celsius=61.0,
               power_draw_watts=612.0)  # fmt: skip
    assert console.gpu_lines(snapshot(gpu(1), full, info)) == [
        "GPU0  NVIDIA H100: 96% busy, 78% memory, 61 °C, 612 W",
        "GPU1  -: - busy, - memory, -, -",
    ]
    host = Reading("host", (), {"cpu_count": 4.0, "cpu_usage_percent": 3.0, "memory_used_bytes": 2.0**30,
                                "memory_total_bytes": 2.0**32}, 1.0)  # fmt: skip
    assert console.host_line(snapshot(host)) == "host  4 processors: 3% busy, 25% of 4.0 GiB memory"
    assert console.host_line(EMPTY).endswith(" processors: - busy, - of - GiB memory")


def test_commands_are_named_as_they_can_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / ".venv" / "bin" / "trainvitals"
    script.parent.mkdir(parents=True)
    script.write_text("")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "argv", [str(script)])
    for folder, told in ((tmp_path, ".venv/bin/trainvitals"), (script.parent, "./trainvitals")):
        monkeypatch.chdir(folder)
        assert console.typed() == told
    monkeypatch.setenv("PATH", str(script.parent))
    assert console.typed() == "trainvitals"


def test_logs_as_json_bear_the_run_where_there_is_one() -> None:
    form = console.JsonLines("process-1")
    record = logging.LogRecord("trainvitals.runs", logging.WARNING, "", 1, "run %s \udcff", ("a",), None)
    told = json.loads(form.format(record))
    assert told["correlation_id"] == "process-1"
    assert (told["level"], told["logger"], told["message"]) == ("warning", "trainvitals.runs", "run a ?")
    assert told["timestamp"].endswith("Z")
    record.run = "gemma"
    assert json.loads(form.format(record))["correlation_id"] == "gemma"
    try:
        raise ValueError("torn")
    except ValueError:
        record.exc_info = sys.exc_info()
    assert "ValueError: torn" in json.loads(form.format(record))["exception"]


@pytest.mark.parametrize(("is_open", "told"), [(True, True), (False, False)])
def test_an_open_address_is_pointed_out(is_open: bool, told: bool) -> None:
    words = console.welcome(node="n", address="http://0.0.0.0:1", journal="/j", snapshot=EMPTY, sources={},
                            is_open=is_open)  # fmt: skip
    assert ("everyone who reaches this address" in words and "--token" in words) is told
    assert "http://0.0.0.0:1/metrics" in words


def test_the_words_at_the_start_hold_in_the_stack_too() -> None:
    """Nobody told the agent whether a Prometheus scrapes it."""
    words = console.welcome(node="n", address="http://0.0.0.0:1", journal="/j", snapshot=EMPTY, sources={})
    assert "alerts come from a Prometheus that scrapes the address above" in words
    assert "alone" not in words and "nobody" not in words
