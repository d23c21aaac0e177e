"""Removing leaves what keeps unattended upgrades from a driver, for these go on."""

from pathlib import Path

import pytest
import yaml

from tests.ansible import local
from tests.stack.bases import ROOT

BASE = ROOT / "ansible" / "roles" / "base"


def removed(folder: Path, nvidia: bool) -> str:
    """What is left of the settings of apt that the role writes."""
    path = folder / "52trainvitals"
    settings = {"src": str(BASE / "templates" / "apt.conf.j2"), "dest": str(path), "mode": "0644"}
    text = (BASE / "tasks" / "remove.yml").read_text().replace("/etc/apt/apt.conf.d", str(folder))
    tasks = [task for task in yaml.safe_load(text.replace("/etc/sysctl.d", str(folder)))
             if "import_tasks" not in "".join(task)][:3]  # fmt: skip
    for changed in ("changed=2", "changed=0"):
        first = [*local.variables("base"), {"ansible.builtin.template": settings}] if changed == "changed=2" else []
        done = local.played(folder, [*first, *tasks], base_found={"nvidia": nvidia})
        assert (done.returncode, f"{changed} " in done.stdout) == (0, True), done.stdout[-3000:]
    return path.read_text() if path.exists() else ""


@pytest.mark.parametrize("nvidia", [True, False])
def test_upgrades_are_kept_from_a_driver_and_otherwise_are_others_affair(tmp_path: Path, nvidia: bool) -> None:
    left = removed(tmp_path, nvidia)
    assert ('"^nvidia-";' in left) is nvidia
    assert "Periodic" not in left
