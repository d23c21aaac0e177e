"""The firewall's files: who may reach what, and that nobody is let in where nobody is named."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ansible import local
from tests.stack.bases import ROOT

TEMPLATES = ROOT / "ansible" / "roles" / "base" / "templates"
HERE = {"ansible_connection": "local", "ansible_python_interpreter": local.PYTHON}


def rules(folder: Path, **variables: Any) -> str:
    dest = folder / "firewall.nft"
    write = {"ansible.builtin.template": {"src": str(TEMPLATES / "firewall.nft.j2"), "dest": str(dest), "mode": "0644"}}
    done = local.played(folder, [*local.variables("base"), write], **variables)
    assert done.returncode == 0, done.stdout[-3000:]
    return dest.read_text()


def block(text: str, name: str) -> str:
    """A set or chain, without comments."""
    return re.sub(r"\s+", " ", text.partition(f" {name} {{")[2].partition("}\n\n")[0].partition("\n    }")[0])


def test_where_nobody_is_named_the_machine_itself_alone_comes_in(tmp_path: Path) -> None:
    text = rules(tmp_path, base_firewall_ports=[9100], base_firewall_sources=[])
    assert "elements" not in block(text, "sources4") + block(text, "sources6")
    assert "elements = { 9100 }" in block(text, "ports")
    assert block(text, "guarded").endswith("reject with tcp reset drop")
    assert "jump guarded" in block(text, "input")
    assert "iif lo accept" in block(text, "allowed")


def test_rules_are_replaced_as_a_whole(tmp_path: Path) -> None:
    """nft takes a file as one change, and this one's takes its own table alone away."""
    text = rules(tmp_path, base_firewall_ports=[9100], base_firewall_sources=["10.0.0.1", "fd00::1"])
    lines = [line for line in text.splitlines() if line.startswith(("table", "delete", "flush"))]
    assert lines == ["table inet trainvitals", "delete table inet trainvitals", "table inet trainvitals {"]
    assert "10.0.0.1" in block(text, "sources4")
    assert "fd00::1" in block(text, "sources6")


@pytest.mark.parametrize("when", ["ExecStartPost", "ExecReload", "ExecStop"])
def test_whatever_takes_all_rules_away_has_these_loaded_again(when: str) -> None:
    lines = (TEMPLATES / "nftables.conf.j2").read_text().splitlines()
    # Added to the unit's own, which an empty value would take away.
    assert f"{when}=-/usr/sbin/nft --file /etc/trainvitals/firewall.nft" in lines
    assert f"{when}=" not in lines


def test_the_port_by_which_sshd_lets_in_stays_open_whatever_port_is_asked_for(tmp_path: Path) -> None:
    deny = {"base_firewall_default_deny": True, "ansible_port": 2222}
    for found, port in (({"ssh_port": 22}, 22), ({"ssh_port": None}, 2222), ({}, 2222)):
        text = rules(tmp_path, base_found=found, **deny)
        assert f"tcp dport {{ {port} }} accept" in block(text, "input")


@pytest.mark.parametrize(("connection", "port"), [("10.0.0.1 50000 10.0.0.2 22", 22), ("", None)])
def test_the_machine_says_by_which_port_it_lets_in(tmp_path: Path, connection: str, port: int | None) -> None:
    told = tmp_path / "probe.sh"
    write = {"ansible.builtin.template": {"src": str(TEMPLATES / "probe.sh.j2"), "dest": str(told), "mode": "0755"}}
    assert local.played(tmp_path, [*local.variables("base"), write]).returncode == 0
    environ = {"PATH": os.environ["PATH"], **({"SSH_CONNECTION": connection} if connection else {})}
    done = subprocess.run(["sh", told], check=True, capture_output=True, text=True, timeout=60, env=environ)
    assert yaml.safe_load(done.stdout)["ssh_port"] == port


def closed(folder: Path, monitor: dict[str, Any] | None = None, **groups: Any) -> list[Any]:
    """For gpu1, which Prometheus on mon reaches over the network: its ports, and who may reach them. `groups` are what
    the inventory's file says of all machines of one."""
    told: dict[str, Any] = {"gpu_nodes": {"hosts": {"gpu1": HERE}}, "monitoring": {"hosts": {"mon": monitor or {}}}}
    for name, variables in groups.items():
        told.setdefault(name, {})["vars"] = variables
    return defaults(folder, told, "[base_firewall_ports, base_firewall_sources]")


def defaults(folder: Path, inventory: dict[str, Any], expression: str) -> Any:
    """Of the role for gpu1, by a part of it that does nothing then."""
    (folder / "more.yml").write_text(json.dumps(inventory))
    tasks = [local.role("base", "sysctl"), local.shown(expression, folder / "told")]
    done = local.played(folder, tasks, inventory=folder / "more.yml", hosts="gpu1", base_sysctl={})
    assert done.returncode == 0, done.stdout[-3000:]
    return json.loads((folder / "told").read_text())


def test_a_port_that_is_chosen_is_the_one_that_is_closed(tmp_path: Path) -> None:
    chosen = {"stack_env": {"NODE_EXPORTER_PORT": "9101"}}
    ports, sources = closed(tmp_path, {"ansible_host": "10.0.0.10"}, gpu_nodes=chosen)
    assert sorted(ports) == [8080, 9101, 9400, 9835]
    assert sources == ["10.0.0.10"]


def test_prometheus_may_come_by_the_address_that_it_told_out_of_the_run(tmp_path: Path) -> None:
    """The inventory has another name for it."""
    told = {"stack_watcher": {"bind": "10.0.0.7"}}
    assert closed(tmp_path, {"ansible_host": "watcher.example"}, gpu_nodes=told)[1] == ["10.0.0.7"]


@pytest.mark.parametrize("group", ["all", "gpu_nodes"])
def test_what_the_inventory_s_file_says_of_its_machines_counts(tmp_path: Path, group: str) -> None:
    told = {"base_firewall_ports": [9100], "base_firewall_sources": ["10.0.0.0/24"]}
    assert closed(tmp_path, **{group: told}) == [[9100], ["10.0.0.0/24"]]


def test_no_variables_lie_beside_the_playbooks() -> None:
    """They would count for more than what an inventory's file says of its groups."""
    assert [path.name for path in (ROOT / "ansible").glob("*_vars")] == []


def test_a_machine_that_prometheus_is_on_closes_nothing(tmp_path: Path) -> None:
    whole = {"monitoring": {"hosts": {"gpu1": HERE}}, "gpu_nodes": {"hosts": {"gpu1": {}}}}
    assert defaults(tmp_path, whole, "base_firewall_wanted") is False


def watched(folder: Path, told: dict[str, Any], *words: str) -> str:
    """The role's question to a monitoring machine that is not in the run."""
    groups = {"monitoring": {"hosts": {local.HOST: told}}, "gpu_nodes": {"hosts": {"gpu1": HERE}}}
    (folder / "more.yml").write_text(json.dumps(groups))
    tasks = [local.role("stack", "watcher"), local.shown("stack_watcher.bind | default('not asked')", folder / "told")]
    done = local.played(folder, tasks, *words, inventory=folder / "more.yml", hosts="gpu1")
    return done.stdout if done.returncode else json.loads((folder / "told").read_text())


def test_a_monitoring_machine_that_is_not_in_the_run_is_asked(tmp_path: Path) -> None:
    assert re.fullmatch(r"[\d.]+", watched(tmp_path, {**HERE, "stack_address": "127.0.0.1"}))


def test_one_that_does_not_answer_is_named(tmp_path: Path) -> None:
    nowhere = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 9}
    told = " ".join(watched(tmp_path, nowhere).split())
    assert f"gpu1: {local.HOST}, which this run leaves alone, does not say by which address it asks" in told
