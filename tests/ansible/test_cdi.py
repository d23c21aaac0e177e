"""CDI specifications: a stale one is told from a good one, and at boot there is one before the engine starts."""

import configparser
import json
from pathlib import Path
from typing import Any

import pytest

from tests.ansible import local
from tests.stack.bases import ROOT

TEMPLATES = ROOT / "ansible" / "roles" / "nvidia" / "templates"
# As nvidia-ctk writes it, shortened.
SPECIFICATION = """---
cdiVersion: 0.5.0
containerEdits:
  deviceNodes:
  - path: {folder}/dev/nvidia-uvm
  hooks:
  - args: [nvidia-cdi-hook, create-symlinks, --link, "libcuda.so.1::/usr/lib/nowhere/libcuda.so"]
    hookName: createContainer
    path: {folder}/nvidia-cdi-hook
  mounts:
  - containerPath: /usr/lib/nowhere/libcuda.so.580
    hostPath: {folder}/libcuda.so.580
    options: [ro]
devices:
- containerEdits:
    deviceNodes:
    - path: {folder}/dev/nvidia0
  name: "0"
kind: nvidia.com/gpu
"""
NAMED = ("dev/nvidia-uvm", "dev/nvidia0", "nvidia-cdi-hook", "libcuda.so.580")


def look(folder: Path, *there: str) -> dict[str, Any]:
    for name in there:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    (folder / "cdi").mkdir()
    (folder / "cdi" / "nvidia.yaml").write_text(SPECIFICATION.format(folder=folder))
    (folder / "cdi" / "other.yaml").write_text("kind: example.com/nic\n")
    tasks = [local.role("nvidia", "look"), local.shown("nvidia_found", folder / "told")]
    done = local.played(folder, tasks, nvidia_cdi_folders=[f"{folder}/cdi", f"{folder}/none"])
    assert done.returncode == 0, done.stdout[-3000:]
    found: dict[str, Any] = json.loads((folder / "told").read_text())
    assert found["specifications"] == [f"{folder}/cdi/nvidia.yaml"]
    return found


def test_one_whose_files_are_all_there_is_good(tmp_path: Path) -> None:
    assert look(tmp_path, *NAMED)["stale"] is None


@pytest.mark.parametrize("missing", NAMED)
def test_one_that_names_what_is_not_there_is_stale(tmp_path: Path, missing: str) -> None:
    found = look(tmp_path, *(name for name in NAMED if name != missing))
    assert found["stale"] == [f"{tmp_path}/cdi/nvidia.yaml"]


def judged(folder: Path, expression: str, **found: Any) -> Any:
    given = {"release": "debian-12", "architecture": "x86_64", "kernel": "6.1", "devices": None, "works": True,
             "installed": True, "loaded": True, "refreshes": False, "toolkit": "1.17", **found}  # fmt: skip
    done = local.played(
        folder, [*local.variables("nvidia"), local.shown(expression, folder / "told")], nvidia_found=given
    )
    assert done.returncode == 0, done.stdout[-3000:]
    return json.loads((folder / "told").read_text())


def test_a_stale_one_does_not_count_as_one(tmp_path: Path) -> None:
    both = ["/etc/cdi/nvidia.yaml", "/run/cdi/nvidia.yaml"]
    assert judged(tmp_path, "nvidia_good_specifications", specifications=both, stale=both[:1]) == both[1:]


def test_what_the_next_boot_takes_away_is_no_reason_to_write_none(tmp_path: Path) -> None:
    found = ["/run/cdi/nvidia.yaml", "/etc/cdi/mine.yaml"]
    assert judged(tmp_path, "nvidia_foreign_specifications", specifications=found, stale=None) == found[1:]


@pytest.mark.parametrize(("refreshes", "count"), [(False, 1), (True, 0)])
def test_somebody_else_s_that_is_stale_is_told(tmp_path: Path, refreshes: bool, count: int) -> None:
    found = {"specifications": ["/etc/cdi/mine.yaml"], "stale": ["/etc/cdi/mine.yaml"], "refreshes": refreshes}
    told = judged(tmp_path, "nvidia_problems", **found)
    assert len(told) == count
    assert all("nvidia-ctk cdi generate --output=/etc/cdi/mine.yaml" in why for why in told)


@pytest.mark.parametrize("name", ["trainvitals-cdi.service", "nvidia-cdi-refresh.conf"])
def test_at_boot_devices_and_specification_come_before_the_engine(name: str) -> None:
    lines = [line for line in (TEMPLATES / f"{name}.j2").read_text().splitlines() if line[:1] not in ("#", "{")]
    unit = configparser.RawConfigParser(strict=False, delimiters="=")
    unit.read_string("\n".join(lines))
    assert unit["Unit"]["Before"] == "docker.service"
    # A driver that hangs keeps nobody from starting the engine for ever.
    assert int(unit["Service"]["TimeoutStartSec"]) > 60
    first = [line for line in lines if line.startswith("ExecStartPre=-")]
    assert ["nvidia-smi" in first[0], "nvidia-modprobe -c 0 -u" in first[1]] == [True, True]
