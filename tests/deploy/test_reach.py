"""Machines that do not answer by SSH: named with the reason and the fix, and left out. The others go on.

This machine stands for those that answer, and a port that nothing listens on for those that do not.
"""

import sys
from pathlib import Path

import pytest

from deploy import site as sites
from deploy.errors import DeployError
from deploy.site import Site
from tests.deploy.conftest import Program

HERE = f"{{ansible_connection: local, ansible_python_interpreter: {sys.executable}}}"
GONE = "{ansible_host: 127.0.0.1, ansible_port: 1}"
PLAY = """
- name: Bring it
  hosts: gpu_nodes:monitoring
  gather_facts: false
  tasks:
    - name: Write it down
      ansible.builtin.copy: {content: done, dest: "{{ playbook_dir }}/{{ inventory_hostname }}.there", mode: "0600"}
"""
REFUSED = "Connection refused: sshd does not listen there: see ansible_host and ansible_port"


def site(folder: Path, *, gpu: str = GONE, mon: str = HERE) -> Site:
    (folder / "hosts.yml").write_text(f"""
gpu_nodes: {{hosts: {{here: {HERE}, gone: {gpu}}}}}
monitoring: {{hosts: {{mon: {mon}}}}}
others: {{hosts: {{elsewhere: {{ansible_host: 192.0.2.1}}}}}}
""")
    (folder / "play.yml").write_text(PLAY)
    return Site(folder / "hosts.yml")


def test_who_does_not_answer_is_left_out_the_others_go_on_and_the_end_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = site(tmp_path)
    one.wait(1)
    shown = capsys.readouterr().out
    assert "here, mon: answering" in shown and "gone: left out, the others go on: " in shown and REFUSED in shown
    one.play(str(tmp_path / "play.yml"))
    assert sorted(path.stem for path in tmp_path.glob("*.there")) == ["here", "mon"]
    with pytest.raises(DeployError) as told:
        one.complete()
    words = str(told.value)
    assert words.startswith("SSH: gone did not let us in:") and REFUSED in words
    assert "by hand: ssh -p 1 127.0.0.1" in words and "take it out of hosts.yml" in words
    assert "elsewhere" not in words and "here" not in words.partition("\n")[0]


def test_without_the_machine_of_prometheus_nothing_is_begun(tmp_path: Path) -> None:
    with pytest.raises(DeployError, match=r"(?s)mon: .*Connection refused.*mon is to have Prometheus, without it"):
        site(tmp_path, mon=GONE).wait(1)


def test_where_all_answer_nobody_is_named(tmp_path: Path) -> None:
    one = site(tmp_path, gpu=HERE)
    one.wait(1)
    one.complete()
    assert one.absent == []


@pytest.mark.parametrize(("said", "fix"), [
    ("Host key verification failed.", "ssh-keyscan"),
    ("me@127.0.0.1: Permission denied (publickey).", "ssh-copy-id"),
])  # fmt: skip
def test_what_no_waiting_mends_is_not_waited_for(
    tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch, said: str, fix: str
) -> None:
    program("ssh", f"echo '{said}' >&2; exit 255")
    monkeypatch.setattr(sites, "PAUSE_SECONDS", 3600)
    one = site(tmp_path)
    one.wait(3600)
    assert [each.host for each in one.absent] == ["gone"]
    with pytest.raises(DeployError, match=fix):
        one.complete()


def test_a_machine_that_boots_learns_whom_it_lets_in(
    tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = tmp_path / "asked"
    program("ssh", f"[ ! -e {asked} ] || exit 0; touch {asked}; echo 'Permission denied (publickey).' >&2; exit 255")
    monkeypatch.setattr(sites, "PAUSE_SECONDS", 0)
    one = site(tmp_path)
    one.wait(3600, booting=True)
    assert one.absent == []
    shown = capsys.readouterr().out
    assert "gone: not yet" in shown and "gone: answering" in shown


def test_a_verification_asks_each_once_and_looks_at_those_that_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one, looked = site(tmp_path), list[list[str]]()
    monkeypatch.setattr(one, "_verified", lambda: looked.append(one._present()))
    one.verify()
    assert looked == [["here", "mon"]]
    assert "gone: not verified, it did not let us in: " in capsys.readouterr().out
    with pytest.raises(DeployError, match=r"SSH: gone did not let us in"):
        one.complete()


def test_what_fails_on_one_is_told_with_who_was_left_out(tmp_path: Path) -> None:
    one = site(tmp_path)
    one.wait(1)
    (tmp_path / "play.yml").write_text(PLAY + "    - {name: Fail, ansible.builtin.fail: {msg: no room}}\n")
    with pytest.raises(DeployError, match=r"(?s)here, at Fail:.*no room.*SSH: gone did not let us in"):
        one.play(str(tmp_path / "play.yml"))
