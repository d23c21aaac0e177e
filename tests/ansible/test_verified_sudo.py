"""tests/infra where sudo asks for a password: it is handed on, and where it is none a line says so."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import testinfra
import yaml

from tests.infra import conftest, sudo

WORD = "it's $(secret)"
SUDO = f"""#!/bin/sh
echo "$@" >>{{folder}}/said
[ "$1" = -S ] || {{{{ echo 'sudo: a terminal is required to read the password' >&2; exit 1; }}}}
read -r word
[ "$word" = "{WORD.replace("$", chr(92) + "$")}" ] || {{{{ echo 'sudo: 1 incorrect password attempt' >&2; exit 1; }}}}
shift 3
exec "$@"
"""


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """This machine, by a sudo that asks, with what the inventory says of it."""
    (tmp_path / "sudo").write_text(SUDO.format(folder=tmp_path))
    (tmp_path / "sudo").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}")

    def reached(**told: str) -> Any:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.yml"
        path.write_text(yaml.safe_dump({"gpu_nodes": {"hosts": {"gpu1": {"ansible_connection": "local", **told}}}}))
        (one,) = testinfra.get_hosts(["ansible://gpu1"], ansible_inventory=str(path), sudo=True)
        return conftest.met(one)

    return reached


@pytest.mark.parametrize("name", sudo.NAMES)
def test_the_inventory_s_password_is_handed_on_and_stands_on_no_command_line(
    host: Any, tmp_path: Path, name: str
) -> None:
    assert host(**{name: "{{ mine }}", "mine": WORD}).run("echo hello") == (0, "hello")
    assert WORD not in (tmp_path / "said").read_text()


@pytest.mark.parametrize(("told", "said"), [
    ({}, "a terminal is required to read the password"),
    ({sudo.NAMES[0]: "wrong"}, "1 incorrect password attempt"),
])  # fmt: skip
def test_a_sudo_that_lets_nobody_in_is_told_once_and_is_asked_no_more(
    host: Any, tmp_path: Path, told: dict[str, str], said: str
) -> None:
    machine = host(**told)
    for _ in range(2):
        with pytest.raises(
            pytest.fail.Exception, match=rf"gpu1: sudo lets nobody become root: sudo: {said}\n.*NOPASSWD"
        ):
            machine.run("true")
    assert len((tmp_path / "said").read_text().splitlines()) == 1


def test_what_sudo_only_warns_of_is_no_refusal() -> None:
    done = type("Done", (), {"rc": 1, "stdout": "", "stderr": "sudo: unable to resolve host gpu1"})
    assert sudo.refusal(done) == ""


def test_where_a_command_says_nothing_what_is_said_around_it_is_told() -> None:
    machine = conftest.Machine(type("Host", (), {"run": lambda *_: type("Done", (), {
        "rc": 127, "stdout": "", "stderr": "timeout: not found\n"})})(), "gpu1")  # fmt: skip
    assert machine.run("true") == (127, "timeout: not found")
