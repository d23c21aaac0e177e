"""`trainvitals once`: one reading, whatever the devices do."""

import json
import re
import time
from pathlib import Path

import pytest

from tests.collector.agent.fakes import FakeGpu, FakeSource
from tests.collector.support import run
from tests.fakenvml import Scenario, environment
from trainvitals import cli, once
from trainvitals.errors import DeviceLost, SourceAbsent
from trainvitals.model import Reading
from trainvitals.sources.host import HostSource


def numbers(readings: tuple[Reading, ...]) -> list[str]:
    return [reading.label("gpu") for reading in readings if reading.scope == "gpu"]


def test_as_json(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["once", "--json", "--simulate", "3", "--per-core"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert [gpu["gpu"] for gpu in told["gpus"]] == [0, 1, 2]
    first = told["gpus"][0]
    assert first["memory_percent"] > 0
    # All three tiers were read: a cheap field, a dear one, and one that never changes.
    assert {"temperature_celsius", "pcie_width", "power_limit_watts", "name"} <= first.keys()
    assert 0 <= told["host"]["cpu_usage_percent"] <= 100
    assert told["host"]["cores"]
    assert told["sources"]["simulated"]["up"] is True


def test_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["once", "--simulate", "2"]) == 0
    first, second, host = capsys.readouterr().out.splitlines()
    gpu = r"  Simulated H100 80GB: \d+% busy, \d+% memory, \d+ °C, \d+ W"
    assert re.fullmatch("GPU0" + gpu, first)
    assert re.fullmatch("GPU1" + gpu, second)
    assert re.fullmatch(r"host  \d+ processors: \d+% busy, \d+% of \d+\.\d GiB memory", host)


def test_without_a_gpu(nvml_folder: Path, tmp_path: Path) -> None:
    scenario = Scenario(tmp_path / "scenario", "gpus 0")
    env = environment(nvml_folder, scenario.path)
    assert "the driver knows of no GPU" in run("once", env=env).stdout
    assert json.loads(run("once", "--json", env=env).stdout)["gpus"] == []


def test_a_driver_that_does_not_answer(nvml_folder: Path, tmp_path: Path) -> None:
    scenario = Scenario(tmp_path / "scenario", "gpus 2\ninit DRIVER_NOT_LOADED")
    env = environment(nvml_folder, scenario.path)
    assert "sudo modprobe nvidia" in run("once", env=env).stdout
    told = json.loads(run("once", "--json", env=env).stdout)["sources"]["nvml"]
    assert told["up"] is False
    assert "sudo modprobe nvidia" in told["problem"]


def test_a_gpu_that_is_lost_while_it_is_read(nvml_folder: Path, tmp_path: Path) -> None:
    scenario = Scenario(tmp_path / "scenario", "gpus 3\ngpu 1 error temperature GPU_IS_LOST")
    env = environment(nvml_folder, scenario.path)
    told = json.loads(run("once", "--json", env=env).stdout)
    assert [gpu["gpu"] for gpu in told["gpus"]] == [0, 2]
    assert told["sources"]["nvml"]["up"] is True
    assert "GPU 1" in told["sources"]["nvml"]["problem"]
    words = run("once", env=env).stdout.splitlines()
    assert [words[0][:6], words[1][:6]] == ["GPU0  ", "GPU2  "]
    assert "GPU 1" in words[2]


def test_a_gpu_that_hangs_is_left_out_after_five_seconds(nvml_folder: Path, tmp_path: Path) -> None:
    scenario = Scenario(tmp_path / "scenario", "gpus 3\ngpu 1 delay temperature 60000")
    began = time.monotonic()
    words = run("once", env=environment(nvml_folder, scenario.path)).stdout.splitlines()
    assert 5 <= time.monotonic() - began < 10
    assert [words[0][:6], words[1][:6]] == ["GPU0  ", "GPU2  "]
    assert words[2] == "nvml: GPU 1: no answer within 5 s"


def test_sources_and_devices_that_fail_take_nothing_from_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(once, "TIMEOUT_SECONDS", 0.3)
    mixed = FakeSource([FakeGpu(0), FakeGpu(1, error=DeviceLost("nvml", "GPU 1 is lost")),
                        FakeGpu(2, error=RuntimeError("odd")), FakeGpu(3, delay=5)])  # fmt: skip
    absent = FakeSource([], name="other", error=SourceAbsent("other", "nothing here"))
    broken = FakeSource([], name="broken", error=OSError("no"))
    snapshot, states = once.read_once([mixed, absent, broken, HostSource()])
    assert numbers(snapshot.readings) == ["0"]
    assert list(snapshot.of("host"))
    assert states["nvml"].up is True
    assert states["nvml"].problem.split("; ") == [
        "nvml: GPU 1 is lost", "nvml: GPU 2: RuntimeError('odd')", "nvml: GPU 3: no answer within 0 s"]  # fmt: skip
    assert (states["nvml"].devices, states["nvml"].errors) == (4, 3)
    assert (states["other"].up, states["other"].problem) == (None, "other: nothing here")
    assert (states["broken"].up, states["broken"].problem) == (False, "broken: OSError('no')")
    assert (states["host"].up, states["host"].problem) == (True, "")


def test_no_device_that_answers_is_a_source_that_does_not() -> None:
    lost = FakeSource([FakeGpu(0, error=DeviceLost("nvml", "GPU 0 is lost"))])
    assert once.read_once([lost])[1]["nvml"].up is False
