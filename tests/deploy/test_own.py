"""`make deploy INVENTORY=hosts.yml` as typed, from end to end, on machines that are this one, with a stand-in set-up.

What is set up on real ones is the rehearsal's business.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy import clones
from tests.terraform import support

HOSTS = f"""
gpu_nodes: {{hosts: {{gpu1: , gpu2: }}}}
monitoring: {{hosts: {{mon: }}}}
others: {{hosts: {{elsewhere: {{ansible_connection: ssh, ansible_host: 127.0.0.1, ansible_port: 1}}}}}}
all: {{vars: {{ansible_connection: local, ansible_python_interpreter: {sys.executable}, stack_node_price: 0.5}}}}
"""
SITE = """
- name: Set up
  hosts: gpu_nodes:monitoring
  gather_facts: false
  tasks:
    - name: Look for room
      ansible.builtin.assert:
        that: inventory_hostname != 'gpu2' or '%s/room' is exists
        fail_msg: "gpu2: there is no room, make some"
    - name: Bring it
      ansible.builtin.copy: {content: done, dest: "%s/{{ inventory_hostname }}", mode: "0600"}
"""
VERIFICATION = """
def test_it_is_one_of_ours(host):
    assert host.backend.host in ("gpu1", "gpu2", "mon")
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "a clone"
    folder.mkdir()
    clones.bare(folder)
    (folder / "ansible" / "site.yml").write_text(SITE % (folder, folder))
    (folder / "hosts.yml").write_text(HOSTS)
    shutil.copy(support.ROOT / "pytest.toml", folder)
    infra = folder / "tests" / "infra"
    infra.mkdir(parents=True)
    for package in (infra.parent, infra):
        (package / "__init__.py").touch()
    for name in ("conftest.py", "machine.py", "sudo.py"):
        shutil.copy(support.ROOT / "tests" / "infra" / name, infra)
    (infra / "test_ours.py").write_text(VERIFICATION)
    return folder


def make(clone: Path, action: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(clones.make(action, "INVENTORY=hosts.yml"), cwd=clone, check=False, capture_output=True,
                          text=True, timeout=300, stdin=subprocess.DEVNULL, env=dict(os.environ))  # fmt: skip


def test_from_end_to_end_and_once_more_where_it_broke(clone: Path) -> None:
    broken = make(clone, "deploy")
    assert broken.returncode == 2
    assert "gpu2, at Look for room:\n    gpu2: there is no room, make some" in broken.stderr
    assert "Verification" not in broken.stdout and (clone / "gpu1").exists() and (clone / "mon").exists()

    (clone / "room").touch()
    done = make(clone, "deploy")
    assert done.returncode == 0, done.stdout + done.stderr
    stages = ["deploy: 1/4 SSH", "deploy: 2/4 Set-up", "deploy: 3/4 Verification", "deploy: 4/4 Done"]
    assert [line for line in done.stdout.splitlines() if line.startswith("deploy: ")] == stages
    assert "Bring it: changed on gpu2" in done.stdout and "gpu1: nothing changed" in done.stdout
    assert "3 passed" in done.stdout
    assert "3 passed" in (clone / ".cache" / "deploy" / "hosts.yml.log").read_text()
    last = done.stdout[done.stdout.index("4/4 Done") :]
    assert "Price: about $1.50 an hour" in last and "make tunnel INVENTORY=hosts.yml" in last
    assert "stack password" in last and "make verify INVENTORY=hosts.yml" in last


def test_a_verification_that_fails_fails_the_command(clone: Path) -> None:
    (clone / "tests" / "infra" / "test_ours.py").write_text(
        "def test_it(host):\n    assert host.backend.host != 'mon'\n"
    )
    done = make(clone, "verify")
    assert done.returncode == 2
    assert "verify: something is not as it should be" in done.stderr
