"""Roles and playbooks keep to the linters' strictest profile, with no rule skipped; so do the files that they bring."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.stack.bases import ROOT

ANSIBLE = ROOT / "ansible"
BIN = Path(sys.executable).parent
PLAYBOOKS = sorted(path.name for path in ANSIBLE.glob("*.yml"))
ROLES = sorted(path.name for path in (ANSIBLE / "roles").iterdir())
SHAPE = ("README.md", "defaults/main.yml", "meta/main.yml", "meta/argument_specs.yml", "tasks/main.yml",
         "tasks/preflight.yml", "handlers/main.yml", "templates")  # fmt: skip


def found_by(*words: str, folder: Path = ANSIBLE) -> str:
    done = subprocess.run([BIN / words[0], *words[1:]], cwd=folder, check=False, capture_output=True, text=True,
                          timeout=300)  # fmt: skip
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_ansible_lint_finds_nothing() -> None:
    assert found_by("ansible-lint", "--nocolor", "--format", "pep8") == ""


def test_yamllint_finds_nothing() -> None:
    assert found_by("yamllint", "--strict", ".") == ""
    others = ("compose", "grafana", "prometheus", ".pre-commit-config.yaml")
    assert found_by("yamllint", "--strict", *others, folder=ROOT) == ""


def test_hadolint_finds_nothing() -> None:
    assert found_by("hadolint", "collector/Dockerfile", folder=ROOT) == ""


def test_no_rule_is_skipped() -> None:
    marks = ("noqa", "skip_list", "warn_list", "yamllint disable")
    files = [path for path in ANSIBLE.rglob("*") if path.suffix in (".yml", ".yaml", "") and path.is_file()]
    assert [str(path) for path in files if any(mark in path.read_text() for mark in marks)] == []


def test_the_syntax_of_every_playbook_is_right() -> None:
    words = ("ansible-playbook", "--syntax-check", "--inventory", "localhost,")
    assert {name: told for name in PLAYBOOKS if (told := found_by(*words, name))} == {}


@pytest.mark.parametrize("role", ROLES)
def test_every_role_has_the_same_shape(role: str) -> None:
    assert [name for name in SHAPE if not (ANSIBLE / "roles" / role / name).exists()] == []
