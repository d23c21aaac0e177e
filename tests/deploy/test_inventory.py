"""A typing error in an inventory is told with what was meant, before anything is asked of a machine."""

import sys
from pathlib import Path

import pytest
import yaml

from deploy import inventory
from deploy.errors import DeployError
from deploy.site import Site
from tests.stack.bases import ROOT

MON = "monitoring: {hosts: {mon: }}\n"


def refused(folder: Path, text: str) -> str:
    (folder / "hosts.yml").write_text(text)
    with pytest.raises(DeployError) as told:
        Site(folder / "hosts.yml")
    return str(told.value)


@pytest.mark.parametrize(("text", "said"), [
    ("gpu_nodes: {hosts: {gpu1: {stack_expected_gpu: 8}}}\n",
     "gpu1: stack_expected_gpu is no variable of ours: stack_expected_gpus is"),
    ("gpu_nodes: {hosts: {gpu1: , gpu2: }, vars: {docker_sauce: distribution}}\n",
     "gpu1, gpu2: docker_sauce is no variable of ours: docker_source is"),
    ("gpu-nodes: {hosts: {gpu1: }}\n", "the group gpu-nodes is not read: gpu_nodes is"),
    ("GPU_Node: {hosts: {gpu1: }}\n", "the group GPU_Node is not read: gpu_nodes is"),
    ("all: {hosts: {gpu1: }}\n", "gpu1 is in no group: put it into gpu_nodes, or monitoring"),
])  # fmt: skip
def test_what_nobody_would_read_is_named_with_what_was_meant(tmp_path: Path, text: str, said: str) -> None:
    told = refused(tmp_path, text + MON)
    assert told.startswith("hosts.yml: ") and said in told


@pytest.mark.parametrize("text", [
    "gpu_nodes: {children: {gpu_nodes_west: {hosts: {gpu1: }}}}\n",
    "others: {hosts: {elsewhere: {docker_users: [me], stack_of: plates}}}\n",
    "gpu_nodes: {hosts: {gpu1: {docker_users: [me], stack_of: plates, nvidia_driver_branch: '580', base_url: x}}}\n",
    "gpu_nodes: {hosts: {gpu1: {stack_expected_gpus: 8, my_stack: 1, dockers_: 2, SLACK_WEBHOOK_URL: x}}}\n",
])  # fmt: skip
def test_what_is_somebody_else_s_is_left_to_them(tmp_path: Path, text: str) -> None:
    (tmp_path / "hosts.yml").write_text(text + MON)
    assert "mon" in Site(tmp_path / "hosts.yml").machines


def test_machines_of_another_group_are_named_with_the_groups_that_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = f"{{ansible_connection: local, ansible_python_interpreter: {sys.executable}}}"
    (tmp_path / "hosts.yml").write_text(
        f"nodes: {{hosts: {{gpu2: , gpu1: }}}}\nmonitoring: {{hosts: {{mon: {here}}}}}\n"
    )
    Site(tmp_path / "hosts.yml").wait(1)
    told = (
        "gpu1, gpu2 of the group nodes: left alone. GPU machines stand in gpu_nodes, that of Prometheus in monitoring"
    )
    assert capsys.readouterr().out.count(told) == 1


def test_of_groups_within_ours_nothing_is_said() -> None:
    told = {"gpu_nodes": {"children": ["west"]}, "west": {"hosts": ["gpu1"]}, "monitoring": {"hosts": ["gpu1"]}}
    assert [*inventory.others(told)] == []


@pytest.mark.parametrize("role", ["base", "docker", "nvidia", "stack"])
def test_every_knob_of_a_role_is_known(role: str) -> None:
    told = yaml.safe_load((ROOT / "ansible" / "roles" / role / "defaults" / "main.yml").read_text())
    assert set(told) - inventory.known() == set()


def test_the_example_is_read(tmp_path: Path) -> None:
    text = (ROOT / inventory.EXAMPLE).read_text()
    (tmp_path / "hosts.yml").write_text(text)
    assert Site(tmp_path / "hosts.yml").machines == ["gpu1", "gpu2", "mon"]


@pytest.mark.parametrize(("text", "said"), [
    ("gpu_nodes: [\n", "line 2, column 1"),
    ("gpu_nodes:\n  hosts:\n    gpu1: a: b\n", "line 3, column 12: mapping values are not allowed here"),
    ("gpu_nodes:\n\thosts:\n", "line 2, column 1: while scanning for the next token, found character '\\t'"),
])  # fmt: skip
def test_of_yaml_that_is_none_the_line_and_the_reason_are_said_and_no_more(
    tmp_path: Path, text: str, said: str
) -> None:
    told = refused(tmp_path, text)
    assert told.startswith("INVENTORY: hosts.yml is no inventory: ") and said in told
    assert "ini" not in told.replace("is no inventory", "").split() and len(told.splitlines()) == 1


def test_of_yaml_that_names_no_hosts_the_reason_is_said_and_no_more(tmp_path: Path) -> None:
    told = refused(tmp_path, "gpu_nodes: {hosts: [gpu1]}\n" + MON)
    assert 'Invalid "hosts" entry for "gpu_nodes" group' in told and len(told.splitlines()) == 1


def test_what_is_no_yaml_is_ansible_s_to_read(tmp_path: Path) -> None:
    (tmp_path / "hosts.ini").write_text("[monitoring]\nmon\n")
    assert Site(tmp_path / "hosts.ini").machines == ["mon"]


def test_a_secret_of_a_vault_is_yaml(tmp_path: Path) -> None:
    (tmp_path / "hosts.yml").write_text("a: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  00\n")
    inventory.need_yaml(tmp_path / "hosts.yml")
