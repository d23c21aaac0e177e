"""What is told of a site's machines comes from its inventory, whoever wrote that."""

import os
import re
import shlex
import socket
from pathlib import Path

import pytest

from deploy import ways
from deploy.cloud import ROOT
from deploy.errors import DeployError
from deploy.site import Site
from tests.deploy.conftest import Program
from tests.ports import free_port

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
    words = shlex.split(ways.tunnel(site(tmp_path, HOSTS)))
    assert words[:2] == ["ssh", "-N"] and words[-1] == "me@10.0.0.10"
    assert [words[at + 1] for at, word in enumerate(words) if word == "-L"] == [
        f"{port}:127.0.0.1:{port}" for port in (3000, 9090, 9093, 8080)
    ]
    assert "ProxyCommand=relay %h 22" in words and "~/.ssh/a key" in words and "2222" in words


def test_ports_that_the_inventory_changes_are_those_of_the_tunnel_and_the_pages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    knobs = "all: {vars: {stack_env: {GRAFANA_PORT: 3001, TRAINVITALS_PORT: '8090', NODE_EXPORTER_PORT: 1}}}\n"
    one = site(tmp_path, HOSTS + knobs)
    wanted = ["3001", "9090", "9093", "8090"]
    assert re.findall(r"-L (\d+):127.0.0.1:(\d+)", ways.tunnel(one)) == [(port, port) for port in wanted]
    ways.tell(one, "INVENTORY=hosts.yml")
    assert re.findall(r"http://localhost:(\d+)", capsys.readouterr().out) == wanted


@pytest.mark.parametrize(("knobs", "wanted"), [
    ("TRAINVITALS_PORT: 70000", "TRAINVITALS_PORT: 70000, which is no port: take a whole number from 1 to 65535"),
    ("GRAFANA_PORT: abc", "GRAFANA_PORT: abc, which is no port"), ("GRAFANA_PORT: 0", "GRAFANA_PORT: 0, which is"),
    ("GRAFANA_PORT: 3000.5", "GRAFANA_PORT: 3000.5, which is no port"),
    ("GRAFANA_PORT: 9090", "gives GRAFANA_PORT and PROMETHEUS_PORT one port, 9090: take two")])  # fmt: skip
def test_a_port_that_is_none_or_another_s_is_told_with_its_knob(tmp_path: Path, knobs: str, wanted: str) -> None:
    with pytest.raises(DeployError, match=f"mon: stack_env .*{wanted}"):
        site(tmp_path, HOSTS + f"all: {{vars: {{stack_env: {{{knobs}}}}}}}\n")


def test_each_page_has_the_port_that_its_knob_has() -> None:
    example = (ROOT / "compose" / ".env.example").read_text()
    assert [page for page in ways.PAGES if f"\n{page['knob']}={page['port']}\n" not in example] == []


@pytest.mark.parametrize("knobs", ["{GRAFANA_PORT: '{{ mine }}'}", "'{{ mine }}'"])
def test_ports_that_only_ansible_reads_are_no_way_for_ssh(tmp_path: Path, knobs: str) -> None:
    with pytest.raises(DeployError, match="mon: only Ansible can read how it is reached"):
        ways.open_tunnel(site(tmp_path, HOSTS + f"all: {{vars: {{stack_env: {knobs}}}}}\n"))


def test_a_price_is_of_all_or_unknown(tmp_path: Path) -> None:
    assert site(tmp_path, HOSTS).price() == pytest.approx(3.57)
    assert site(tmp_path, HOSTS.replace(", stack_node_price: 2", "")).price() is None
    assert site(tmp_path, HOSTS.replace("stack_node_price: 2}", 'stack_node_price: "{{ dear }}"}')).price() is None


@pytest.mark.parametrize(("text", "wanted"), [
    ("gpu_nodes: {hosts: {gpu1: }}\n", "the group monitoring has no host"),
    ("monitoring: {hosts: {a: , b: }}\n", "the group monitoring has several hosts"),
])  # fmt: skip
def test_a_site_that_cannot_be_is_told(tmp_path: Path, text: str, wanted: str) -> None:
    with pytest.raises(DeployError, match=wanted):
        site(tmp_path, text)


def test_the_last_words_say_where_to_look_how_to_get_in_and_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = site(tmp_path, HOSTS)
    ways.tell(one, "INVENTORY=hosts.yml")
    told = capsys.readouterr().out
    assert "gpu1 (10.0.0.11), gpu2 (10.0.0.12), mon (10.0.0.10)" in told
    assert "Price: about $3.57 an hour while they run" in told
    assert "make tunnel INVENTORY=hosts.yml" in told and "make verify INVENTORY=hosts.yml" in told
    assert re.findall(r"http://localhost:(\d+)", told) == ["3000", "9090", "9093", "8080"]
    (password,) = re.findall(r"Grafana's password: (.*)", told)
    assert password.startswith("ssh -o ProxyCommand=")
    assert password.endswith("me@10.0.0.10 sudo /opt/trainvitals/scripts/stack password")
    assert "kept on mon as the file password of Docker's volume trainvitals_grafana-password" in told
    assert "ansible-playbook -i hosts.yml ansible/remove.yml" in told


def test_what_a_cloud_made_is_taken_down_by_make(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ways.tell(site(tmp_path, HOSTS), "CLOUD=gcp")
    assert "make destroy CLOUD=gcp" in capsys.readouterr().out


@pytest.fixture
def free_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere than where a stack may run on this machine."""
    monkeypatch.setattr(ways, "PAGES", [page | {"port": free_port()} for page in ways.PAGES])


@pytest.mark.usefixtures("free_pages")
def test_a_tunnel_does_not_hide_behind_what_listens_here_already(tmp_path: Path) -> None:
    one = site(tmp_path, HOSTS)
    port = ways.pages(one)["Prometheus"]
    with (
        socket.create_server(("127.0.0.1", port)),
        pytest.raises(DeployError, match=f"port {port} of this machine, for Prometheus, is taken"),
    ):
        ways.open_tunnel(one)


@pytest.mark.usefixtures("free_pages")
def test_an_address_that_only_ansible_reads_is_no_way_for_ssh(tmp_path: Path) -> None:
    with pytest.raises(DeployError, match="mon: only Ansible can read how it is reached"):
        ways.open_tunnel(site(tmp_path, HOSTS.replace("10.0.0.10", '"{{ network }}.10"')))


@pytest.mark.usefixtures("free_pages")
def test_a_tunnel_that_breaks_is_told(tmp_path: Path, program: Program) -> None:
    program("ssh", "exit 255")
    with pytest.raises(DeployError, match="the tunnel broke, ssh ended with 255"):
        ways.open_tunnel(site(tmp_path, HOSTS))


@pytest.mark.usefixtures("free_pages")
def test_ctrl_c_is_how_a_tunnel_ends(tmp_path: Path, program: Program) -> None:
    program("ssh", f"kill -INT {os.getpid()}; exec sleep 30")
    ways.open_tunnel(site(tmp_path, HOSTS))


@pytest.mark.parametrize(("said", "fix"), [
    ("me@10.0.0.10: Permission denied (publickey).", "ssh-copy-id"),
    ("Host key verification failed.", "log in once by hand"),
    ("ssh: Could not resolve hostname mon: Name or service not known", "see ansible_host"),
    ("ssh: connect to host 10.0.0.10 port 22: Connection timed out", "does a firewall let this machine in"),
    ("Connection closed by UNKNOWN port 65535", "by hand it says why"),
])  # fmt: skip
def test_what_ssh_says_comes_with_what_mends_it(said: str, fix: str) -> None:
    assert said in ways.why(f"Task failed: Failed to connect to the host via ssh: x\n{said}\n")
    assert fix in ways.why(said)


def test_without_ssh_nothing_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = site(tmp_path, HOSTS)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DeployError, match="ssh is not installed: apt-get install openssh-client"):
        one.wait(60)
