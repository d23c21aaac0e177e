"""What is told of a site's machines comes from its inventory, whoever wrote that."""

import shlex
from pathlib import Path

import pytest

from deploy.errors import DeployError
from deploy.site import Site

HOSTS = """
gpu_nodes:
  hosts:
    gpu1: {ansible_host: 10.0.0.11, stack_node_price: 1.5}
    gpu2: {ansible_host: 10.0.0.12, stack_node_price: 2}
monitoring:
  hosts:
    mon: {ansible_host: 10.0.0.10, ansible_user: me, ansible_port: 2222, stack_node_price: 0.07,
          ansible_ssh_common_args: '-o ProxyCommand="relay %h 22"', ansible_ssh_private_key_file: ~/.ssh/a key}
"""


def site(folder: Path, text: str) -> Site:
    (folder / "hosts.yml").write_text(text)
    return Site(folder / "hosts.yml")


def test_the_tunnel_goes_the_way_that_ansible_goes(tmp_path: Path) -> None:
    words = shlex.split(site(tmp_path, HOSTS).tunnel())
    assert words[:2] == ["ssh", "-N"] and words[-1] == "me@10.0.0.10"
    assert [words[at + 1] for at, word in enumerate(words) if word == "-L"] == [
        f"{port}:127.0.0.1:{port}" for port in (3000, 9090, 9093, 8080)
    ]
    assert "ProxyCommand=relay %h 22" in words and "~/.ssh/a key" in words and "2222" in words


def test_a_price_is_of_all_or_unknown(tmp_path: Path) -> None:
    assert site(tmp_path, HOSTS).price() == pytest.approx(3.57)
    assert site(tmp_path, HOSTS.replace(", stack_node_price: 2", "")).price() is None


@pytest.mark.parametrize(("text", "wanted"), [
    ("gpu_nodes: {hosts: {gpu1: }}\n", "the group monitoring has no host"),
    ("monitoring: {hosts: {a: , b: }}\n", "the group monitoring has several hosts"),
])  # fmt: skip
def test_a_site_that_cannot_be_is_told(tmp_path: Path, text: str, wanted: str) -> None:
    with pytest.raises(DeployError, match=wanted):
        site(tmp_path, text).check()


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(DeployError, match="no inventory"):
        site(tmp_path, "gpu_nodes: [\n")
