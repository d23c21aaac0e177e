"""scripts/stack where there is no engine: it says why, in words that mend it."""

import os
import pwd
import subprocess
from pathlib import Path

import pytest

from tests.compose.files import ROOT

SCRIPT = ROOT / "scripts" / "stack"
SAYS = {
    "permission denied while trying to connect": "sudo usermod -aG docker",
    "Cannot connect to the Docker daemon": "sudo systemctl start docker",
}


def stack(folder: Path, *words: str, **more: str) -> "subprocess.CompletedProcess[str]":
    """With the few programs that it needs, and the Docker that stands in `folder`."""
    for name in ("bash", "dirname", "timeout", "id"):
        if not (folder / name).exists():
            (folder / name).symlink_to(f"/usr/bin/{name}" if Path(f"/usr/bin/{name}").exists() else f"/bin/{name}")
    environ = {"PATH": str(folder), **more}
    return subprocess.run(["/bin/bash", str(SCRIPT), *words], env=environ, capture_output=True, text=True, timeout=30,
                          check=False)  # fmt: skip


def docker(folder: Path, body: str) -> None:
    program = folder / "docker"
    program.write_text(f"#!/bin/bash\n{body}\n")
    program.chmod(0o755)


def test_without_docker_it_says_so(tmp_path: Path) -> None:
    told = stack(tmp_path, "answers")
    assert (told.returncode, told.stdout) == (1, "there is no Docker here\n")


def test_without_compose_it_says_what_to_install(tmp_path: Path) -> None:
    docker(tmp_path, "exit 1")
    told = stack(tmp_path, "answers")
    assert told.returncode == 1
    assert "docker-compose-plugin" in told.stdout


@pytest.mark.parametrize(("error", "fix"), SAYS.items())
def test_an_engine_that_does_not_answer_is_told_with_the_fix(error: str, fix: str, tmp_path: Path) -> None:
    docker(tmp_path, f'[ "$1" = compose ] && exit 0; echo "{error}" >&2; exit 1')
    told = stack(tmp_path, "answers")
    assert told.returncode == 1
    assert fix in told.stdout
    assert told.stdout.count("\n") == 1


def test_who_may_not_use_the_engine_is_named_in_the_fix(tmp_path: Path) -> None:
    docker(tmp_path, '[ "$1" = compose ] && exit 0; echo "permission denied" >&2; exit 1')
    assert " docker me, then" in stack(tmp_path, "answers", USER="me").stdout
    told = stack(tmp_path, "answers")
    assert f" docker {pwd.getpwuid(os.geteuid()).pw_name}, then" in told.stdout
    assert told.stderr == ""


def test_an_engine_that_answers_is_enough(tmp_path: Path) -> None:
    docker(tmp_path, "exit 0")
    told = stack(tmp_path, "answers")
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")


def test_what_it_does_not_know_is_told_with_what_it_does(tmp_path: Path) -> None:
    told = stack(tmp_path, "explode")
    assert told.returncode == 2
    assert "password" in told.stderr


def test_make_lists_what_the_script_does() -> None:
    listed = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=30,
                            env=dict(os.environ)).stdout  # fmt: skip
    assert all(f"  make {name}" in listed for name in ("up", "down", "logs", "password", "alert-test", "agent"))
