"""With the role's preferences apt keeps the driver to its branch, and leaves all else as it is."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.ansible import local
from tests.ansible.test_apt_sources import reading
from tests.stack.bases import ROOT

TEMPLATE = ROOT / "ansible" / "roles" / "nvidia" / "templates" / "driver.pref.j2"
RELEASE = "Origin: NVIDIA\nLabel: NVIDIA CUDA\nArchitectures: amd64\n"
OFFERED = {"nvidia-open": ["580.95.05-1", "580.105.08-1", "590.44.01-1"], "libcuda1": ["580.105.08-1", "590.44.01-1"],
           "libnvidia-ml1": ["590.44.01-1"], "nvidia-container-toolkit": ["1.18.0-1", "1.19.0-1"],
           "cuda-toolkit": ["13.0.1-1", "13.2.0-1"]}  # fmt: skip
INSTALLED = {"nvidia-open": "580.95.05-1", "libcuda1": "580.95.05-1", "libnvidia-ml1": "580.95.05-1",
             "nvidia-container-toolkit": "1.18.0-1", "cuda-toolkit": "13.0.1-1"}  # fmt: skip


def entry(name: str, version: str, more: str) -> str:
    return f"Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: a <b@c>\nDescription: x\n{more}\n"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """apt on a machine with such packages, after the repository came to offer newer ones."""
    if not shutil.which("apt-get"):
        pytest.skip("no apt here")
    found = reading(tmp_path, nvidia_list="deb [trusted=yes] https://nvidia.example/debian12 /\n")
    offered = [entry(name, one, f"Filename: {name}.deb\nSize: 1\n") for name, all_ in OFFERED.items() for one in all_]
    lists = tmp_path / "state" / "lists"
    (lists / "nvidia.example_debian12_Packages").write_text("\n".join(offered))
    (lists / "nvidia.example_debian12_Release").write_text(RELEASE)
    there = [entry(name, one, "Status: install ok installed\n") for name, one in INSTALLED.items()]
    (tmp_path / "status").write_text("\n".join(there))
    (tmp_path / "preferences").mkdir()
    with found.open("a") as file:
        file.write(f'Dir::State::status "{tmp_path}/status"; Dir::Etc::preferences "/dev/null";'
                   f'Dir::Etc::preferencesparts "{tmp_path}/preferences";')  # fmt: skip
    return found


def upgraded(config: Path) -> dict[str, str]:
    """What apt-get upgrade would come to."""
    done = subprocess.run(["apt-get", "--simulate", "upgrade"], check=True, capture_output=True, text=True, timeout=60,
                          env={"APT_CONFIG": str(config), "PATH": "/usr/bin:/bin"})  # fmt: skip
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("Inst ")]
    return {line[1]: line[3].lstrip("(") for line in lines}


def test_an_upgrade_keeps_to_the_branch(config: Path, tmp_path: Path) -> None:
    assert upgraded(config)["nvidia-open"] == "590.44.01-1"
    dest = tmp_path / "preferences" / "trainvitals-nvidia.pref"
    write = {"ansible.builtin.template": {"src": str(TEMPLATE), "dest": str(dest), "mode": "0644"}}
    done = local.played(tmp_path, [write], nvidia_driver_branch="580")
    assert done.returncode == 0, done.stdout[-3000:]
    assert upgraded(config) == {"nvidia-open": "580.105.08-1", "libcuda1": "580.105.08-1",
                                "nvidia-container-toolkit": "1.19.0-1", "cuda-toolkit": "13.2.0-1"}  # fmt: skip
