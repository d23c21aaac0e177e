"""A run for some machines leaves what belongs to the others as it is, and no run touches what it need not."""

import base64
import json
from pathlib import Path

import pytest
import yaml

from tests.ansible import local
from tests.stack.bases import ROOT

TASKS = sorted((ROOT / "ansible" / "roles").glob("*/tasks/*.yml"))


def test_prometheus_goes_on_to_ask_those_that_it_asked(tmp_path: Path) -> None:
    """Whose names begin like another's are not that one."""
    text = '- targets: ["10.0.0.10:9400"]\n  labels: {instance: "gpu10", __web_config__: "yes"}\n'
    here = {"ansible_connection": "local", "ansible_python_interpreter": local.PYTHON}
    nodes = {
        "gpu1": {},
        "gpu10.example": {},
        "gpu2": {"stack_found": {"dcgm": "dcgm"}},
        "gpu3": {"stack_found": {"dcgm": ""}},
    }
    groups = {"monitoring": {"hosts": {local.HOST: here}}, "gpu_nodes": {"hosts": nodes}}
    (tmp_path / "more.yml").write_text(json.dumps(groups))
    tasks = [*local.variables("stack"), local.shown("stack_dcgm_nodes", tmp_path / "told")]
    done = local.played(tmp_path, tasks, inventory=tmp_path / "more.yml",
                        stack_scraped={"content": base64.b64encode(text.encode()).decode()})  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert json.loads((tmp_path / "told").read_text()) == ["gpu10.example", "gpu2"]


def preflight(folder: Path, *words: str) -> str:
    """What the role asks of gpu1 before it looks at the machine."""
    tasks = yaml.safe_load((ROOT / "ansible/roles/stack/tasks/preflight.yml").read_text())
    (look,) = [task for task in tasks if task["name"].startswith("The site's secrets")]
    here = {"ansible_connection": "local", "ansible_python_interpreter": local.PYTHON}
    told = {"monitoring": {"hosts": {"mon": here}}, "gpu_nodes": {"hosts": {"gpu1": here}}}
    (folder / "more.yml").write_text(json.dumps(told))
    tasks = [*local.variables("stack"), look]
    done = local.played(folder, tasks, *words, inventory=folder / "more.yml", hosts="all",
                        stack_secrets_dir=str(folder / "secrets"))  # fmt: skip
    return " ".join(done.stdout.split())


def test_no_new_secrets_are_made_for_some_machines_alone(tmp_path: Path) -> None:
    told = preflight(tmp_path, "--limit", "gpu1")
    assert f"gpu1: this clone has no secrets of the site ({tmp_path}/secrets)" in told
    assert "failed=0" in preflight(tmp_path)
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "ca.crt").touch()
    assert "failed=0" in preflight(tmp_path, "--limit", "gpu1")


@pytest.mark.parametrize("path", TASKS, ids=lambda path: f"{path.parts[-3]}-{path.stem}")
def test_systemd_reads_units_anew_only_where_one_changed(path: Path) -> None:
    """It takes GPUs from running containers that got theirs by the toolkit's older hook."""
    told = [line.strip() for line in path.read_text().splitlines() if "daemon_reload" in line]
    assert [line for line in told if "is changed" not in line] == []
