"""Whom a machine's agent tells: the Alertmanager beside it, which listens for nobody else, or nobody."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ansible import local
from tests.stack.bases import ROOT

KNOWN: dict[str, Any] = {
    "stack_found": {"dcgm": "", "gpu_driver": "", "bind": "10.0.0.11"}, "stack_web_file": "web.yml",
    "inventory_hostname_short": "gpu1", "stack_public_name": "", "stack_journal": "/j", "stack_node_price": "",
    "stack_expected_gpus": ""}  # fmt: skip
STACK = ROOT / "ansible" / "roles" / "stack"
HERE = "alertmanager=http://alertmanager:9093"


def told(folder: Path, monitor: dict[str, Any] | None, node: str = "gpu1") -> dict[str, str]:
    """TRAINVITALS_NOTIFY of each machine."""
    usual = local._VARIABLES
    groups: dict[str, Any] = {"gpu_nodes": {"hosts": {node: usual}}}
    if monitor is not None:
        groups["monitoring"] = {"hosts": {"mon": usual | monitor}}
    inventory = folder / "inventory.json"
    inventory.write_text(json.dumps(groups))
    of_role = {"ansible.builtin.include_vars": str(STACK / "vars" / "main.yml")}
    write = local.shown("stack_knobs_here.TRAINVITALS_NOTIFY", folder / "{{ inventory_hostname }}.json")
    done = local.played(folder, [of_role, write], inventory=inventory, hosts="all", **KNOWN)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    return {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json") if path.stem in ("mon", node)}


def test_the_monitoring_machine_tells_its_own_and_its_nodes_nobody_as_that_listens_for_itself(tmp_path: Path) -> None:
    assert told(tmp_path, {"ansible_host": "10.0.0.10"}) == {"mon": HERE, "gpu1": ""}


@pytest.mark.parametrize(("bind", "refused"), [
    ("10.0.0.10", True), ("0.0.0.0", True), ("127.0.0.1", False), ("", False)])  # fmt: skip
def test_it_is_refused_to_listen_for_others(tmp_path: Path, bind: str, refused: bool) -> None:
    tasks = yaml.safe_load((STACK / "tasks" / "preflight.yml").read_text())
    (look,) = [task for task in tasks if task["name"].startswith("What asks for no password")]
    of_role = {"ansible.builtin.include_vars": str(STACK / "vars" / "main.yml")}
    done = local.played(tmp_path, [of_role, look], stack_env={"TRAINVITALS_BIND": bind} if bind else {})
    assert ("mon: stack_env has TRAINVITALS_BIND: " + bind in " ".join(done.stdout.split())) is refused, done.stdout
    assert (done.returncode != 0) is refused


def test_one_machine_that_is_both_tells_its_own(tmp_path: Path) -> None:
    assert told(tmp_path, {}, node="mon") == {"mon": HERE}


def test_without_a_monitoring_machine_there_is_nobody_to_tell(tmp_path: Path) -> None:
    assert told(tmp_path, None) == {"gpu1": ""}
