"""`trainvitals doctor`: what was found, what not, what mends it, and an exit status that says whether all is well."""

import os
import platform
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.collector.support import run
from tests.fakenvml import Scenario, environment
from trainvitals import cli, config, doctor, once
from trainvitals.doctor import Check
from trainvitals.errors import SourceAbsent, SourceError
from trainvitals.sources import nvml


def settings(folder: Path, **given: str) -> dict[str, Any]:
    return config.load({"dir": str(folder), "port": "0", **given}, {})


def fake(monkeypatch: pytest.MonkeyPatch, discover: Any) -> None:
    monkeypatch.setattr(doctor.NvmlSource, "discover", discover)


def failing(error: Exception) -> Any:
    def discover(_: object) -> None:
        raise error

    return discover


def found(name: str, checks: list[Check]) -> Check:
    return next(check for check in checks if check.name == name)


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, failing(SourceAbsent("nvml", "this machine has no NVIDIA GPU")))


def test_all_well_without_a_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--dir", str(tmp_path), "--port", "0"]) == 0
    out = capsys.readouterr().out
    assert "note     GPUs         this machine has no NVIDIA GPU; `trainvitals demo` shows simulated ones" in out
    assert f"ok       journal      {tmp_path}, " in out
    assert "ok       page         127.0.0.1:0 is free" in out
    assert list(tmp_path.iterdir()) == []


def test_each_gpu_is_read(nvml_folder: Path, tmp_path: Path) -> None:
    scenario = Scenario(tmp_path / "scenario", "gpus 2")
    env = environment(nvml_folder, scenario.path)
    well = run("doctor", "--dir", str(tmp_path), env=env)
    assert well.returncode == 0, well.stdout
    assert "ok       GPUs         2 answer" in well.stdout
    assert "ok       GPU 0        GPU-" in well.stdout
    scenario.set(1, "error temperature", "GPU_IS_LOST")
    ill = run("doctor", "--dir", str(tmp_path), env=env)
    assert ill.returncode == 1
    assert "problem  GPU 1        nvml: GPU 1 " in ill.stdout
    assert "dmesg" in ill.stdout
    scenario.write("gpus 0")
    none = run("doctor", "--dir", str(tmp_path), env=env)
    assert (none.returncode, "problem  GPUs         the driver knows of none" in none.stdout) == (1, True)


class Slow:
    key, index, errors = "GPU-slow", 4, 0

    def read(self, _: str) -> None:
        raise AssertionError("not read in this test")


def test_what_hangs_is_named_and_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "TIMEOUT_SECONDS", 0.1)
    monkeypatch.setattr(once, "TIMEOUT_SECONDS", 0.1)
    forever = threading.Event()
    try:
        fake(monkeypatch, lambda _: forever.wait(30))
        assert "no answer within" in found("GPUs", doctor.checks(settings(tmp_path))).text
        monkeypatch.setattr(Slow, "read", lambda *_: forever.wait(30))
        fake(monkeypatch, lambda _: [Slow()])
        check = found("GPU 4", doctor.checks(settings(tmp_path)))
        assert (check.mark, check.text) == ("problem", "GPU-slow: no answer within 0 s")
    finally:
        forever.set()


def test_device_files_that_are_missing_or_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, failing(SourceError("nvml", "Driver Not Loaded", "load it")))
    control = tmp_path / "nvidiactl"
    monkeypatch.setattr(doctor, "has_hardware", lambda: True)
    monkeypatch.setattr(doctor, "CONTROL_DEVICE", control)
    assert f"{control} is missing" in found("device", doctor.checks(settings(tmp_path))).text
    control.write_text("")
    monkeypatch.setattr(os, "access", lambda path, _: path != control)
    check = found("device", doctor.checks(settings(tmp_path)))
    assert (check.mark, "the group that owns it" in check.text) == ("problem", True)


def test_a_library_that_is_missing_where_a_gpu_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = nvml.nv.NVMLError(nvml.nv.NVML_ERROR_LIBRARY_NOT_FOUND)
    monkeypatch.setattr(nvml, "has_hardware", lambda: True)
    fake(monkeypatch, failing(nvml.explained(missing)))
    check = found("GPUs", doctor.checks(settings(tmp_path)))
    assert check.mark == "problem"
    assert all(word in check.text for word in ("install the NVIDIA driver", "--gpus all", "WSL"))


def test_hints_for_containers_and_wsl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    mark = tmp_path / "mark"
    monkeypatch.setattr(doctor, "CONTAINER_MARKS", (mark,))
    names = {check.name for check in doctor.checks(settings(tmp_path))}
    assert not names & {"container", "WSL"}
    mark.write_text("")
    monkeypatch.setattr(platform, "release", lambda: "5.15.0-microsoft-standard-WSL2")
    checks = doctor.checks(settings(tmp_path))
    assert "--gpus all" in found("container", checks).text
    assert found("WSL", checks).mark == "note"
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert "nvidia.com/gpu" in found("container", doctor.checks(settings(tmp_path))).text


def test_a_journal_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    check = found("journal", doctor.checks(settings(tmp_path / "file" / "journal")))
    assert (check.mark, "--dir" in check.text) == ("problem", True)


def test_a_disk_that_is_smaller_than_what_the_journal_may_take(tmp_path: Path) -> None:
    check = found("journal", doctor.checks(settings(tmp_path, runs_cap="900TiB")))
    assert (check.mark, "TRAINVITALS_RUNS_CAP" in check.text) == ("problem", True)


def test_network_storage_is_pointed_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.slow, "is_slow", lambda _: True)
    assert "network storage" in doctor.checks(settings(tmp_path))[-2].text


@pytest.mark.parametrize("host", ["203.0.113.1", "no.such.host.invalid"])
def test_an_address_of_another_machine_is_a_fault(host: str, tmp_path: Path) -> None:
    check = found("page", doctor.checks(settings(tmp_path, host=host)))
    assert (check.mark, "an agent runs" in check.text, "--host" in check.text) == ("problem", False, True)


def test_a_busy_port_is_no_fault(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        checks = doctor.checks(settings(tmp_path, port=str(taken.getsockname()[1])))
    assert (found("page", checks).mark, doctor.is_well(checks)) == ("note", True)
