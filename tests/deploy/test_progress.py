"""A real Ansible over machines that are this one: what is shown of it, what is kept, what is said where it fails."""

import sys
from pathlib import Path

import pytest

from deploy import say
from deploy.errors import DeployError
from deploy.site import Site

HOSTS = f"""
gpu_nodes: {{hosts: {{gpu1: , gpu2: }}}}
monitoring: {{hosts: {{mon: }}}}
all: {{vars: {{ansible_connection: local, ansible_python_interpreter: {sys.executable}}}}}
"""
PLAY = """
- name: Bring what watches
  hosts: gpu_nodes:monitoring
  gather_facts: false
  tasks:
    - name: Look
      ansible.builtin.command: echo a word that nobody needs to read
      changed_when: false
    - name: Write it down
      ansible.builtin.copy: {content: done, dest: "{{ playbook_dir }}/{{ inventory_hostname }}.first", mode: "0600"}
"""
TROUBLE = """
    - name: Try, and mend it
      block: [{name: Try, ansible.builtin.command: "false"}]
      rescue: [{name: Mend it, ansible.builtin.debug: {msg: mended}}]
    - name: Does not matter
      ansible.builtin.command: "false"
      ignore_errors: true
    - name: Ask the disk
      ansible.builtin.assert: {that: inventory_hostname != 'gpu2', fail_msg: "gpu2: the disk is full: make room"}
    - name: Use the secret
      ansible.builtin.command: sh -c "echo hunter2 >&2; exit {{ 1 if inventory_hostname == 'mon' else 0 }}"
      no_log: true
    - name: Go on
      ansible.builtin.copy: {content: done, dest: "{{ playbook_dir }}/{{ inventory_hostname }}.last", mode: "0600"}
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    (tmp_path / "hosts.yml").write_text(HOSTS)
    (tmp_path / "ok.yml").write_text(PLAY)
    (tmp_path / "trouble.yml").write_text(PLAY + TROUBLE)
    say.keep(tmp_path / "log")
    return Site(tmp_path / "hosts.yml")


def test_a_line_a_step_that_changes_something_and_one_a_host_at_the_end(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.play(str(tmp_path / "ok.yml"))
    shown = [line.strip().partition(" ")[2] for line in capsys.readouterr().out.splitlines()]
    assert shown == ["Bring what watches", "Write it down: changed on gpu1, gpu2, mon", *["1 changed"] * 3]
    assert "a word that nobody" not in " ".join(shown)
    log = (tmp_path / "log").read_text()
    assert "TASK [Look]" in log and "PLAY RECAP" in log and "Write it down: changed on" in log
    assert "\x1e" not in log
    site.play(str(tmp_path / "ok.yml"))
    assert capsys.readouterr().out.splitlines()[1:] == [
        f"  {host}: nothing changed" for host in ("gpu1", "gpu2", "mon")
    ]


def test_where_it_fails_host_step_reason_and_fix_are_said_and_the_others_go_on(site: Site, tmp_path: Path) -> None:
    with pytest.raises(DeployError) as told:
        site.play(str(tmp_path / "trouble.yml"))
    words = str(told.value)
    assert "failed on gpu2, mon" in words
    assert "gpu2, at Ask the disk:\n    gpu2: the disk is full: make room" in words
    assert "run this again: what is done stays done" in words
    assert "gpu1, at" not in words and "at Try" not in words and "Does not matter" not in words
    assert (tmp_path / "gpu1.last").exists() and not (tmp_path / "mon.last").exists()


def test_what_may_be_a_secret_is_neither_shown_nor_kept(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(DeployError) as told:
        site.play(str(tmp_path / "trouble.yml"))
    assert "mon, at Use the secret:\n    its words are hidden" in str(told.value)
    assert "hunter2" not in str(told.value) + capsys.readouterr().out + (tmp_path / "log").read_text()


def test_a_playbook_that_is_none_is_told_with_where_to_look(site: Site, tmp_path: Path) -> None:
    (tmp_path / "wrong.yml").write_text("- hosts: all\n  tasks: [{no_such_module: }]\n")
    with pytest.raises(DeployError, match="Ansible ended before any step, the log says why"):
        site.play(str(tmp_path / "wrong.yml"))
    assert "no_such_module" in (tmp_path / "log").read_text()
