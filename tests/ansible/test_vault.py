"""A secret that cannot be decrypted is named before any machine is touched."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.ansible import local
from tests.stack.bases import ROOT

BIN = Path(sys.executable).parent
SAID = "it is a secret"


def sealed(folder: Path, name: str, blanks: int) -> str:
    """`name` with its value as ansible-vault encrypts it, so many blanks from the left."""
    (folder / "password").write_text("right")
    (folder / "another").write_text("wrong")
    words = [
        BIN / "ansible-vault",
        "encrypt_string",
        "--vault-password-file",
        folder / "password",
        "--name",
        name,
        SAID,
    ]
    done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=60, cwd=folder)
    return "\n".join(" " * blanks + line for line in done.stdout.splitlines())


def look(folder: Path, told: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """As site.yml begins, as far as the first step that asks a machine."""
    (folder / "host_vars").mkdir()
    (folder / "host_vars" / f"{local.HOST}.yml").write_text(told)
    touch = {"ansible.builtin.raw": f"touch {folder}/touched", "become": False}
    return local.played(folder, [touch], *words, after=ROOT / "ansible" / "secrets.yml")


@pytest.mark.parametrize("name", ["SLACK_WEBHOOK_URL", "ansible_become_password", "ansible_ssh_pass"])
@pytest.mark.parametrize("password", ["", "another"])
def test_one_that_cannot_be_decrypted_is_named_and_no_machine_is_touched(
    tmp_path: Path, name: str, password: str
) -> None:
    words = ["--vault-password-file", str(tmp_path / password)] if password else []
    done = look(tmp_path, sealed(tmp_path, name, 0), *words)
    text = " ".join(done.stdout.split())
    assert done.returncode == 2, text
    assert f"{local.HOST}: {name} cannot be read" in text
    assert "ANSIBLE_VAULT_PASSWORD_FILE" in text
    assert not (tmp_path / "touched").exists()


def test_one_within_another_variable_is_found(tmp_path: Path) -> None:
    done = look(tmp_path, f"SMTP_PORT: 587\nstack_env:\n{sealed(tmp_path, 'SMTP_PASSWORD', 2)}\n")
    assert "stack_env cannot be read" in " ".join(done.stdout.split())


def test_with_the_password_it_goes_on_and_shows_none(tmp_path: Path) -> None:
    done = look(tmp_path, sealed(tmp_path, "SLACK_WEBHOOK_URL", 0), "-vvv", "--vault-password-file",
                str(tmp_path / "password"))  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert (tmp_path / "touched").exists()
    assert SAID not in done.stdout + done.stderr


def test_what_stands_on_a_command_line_is_no_place_for_a_secret() -> None:
    stack = ROOT / "ansible" / "roles" / "stack"
    assert "stack_build_args" in (stack / "tasks" / "images.yml").read_text()
    assert "stack_build_args" not in (stack / "tasks" / "secrets.yml").read_text()
    assert "nothing secret belongs here.\nstack_build_args" in (stack / "defaults" / "main.yml").read_text()


@pytest.mark.parametrize("name", ["site.yml", "upgrade.yml"])
def test_the_playbooks_look_at_secrets_first(name: str) -> None:
    text = (ROOT / "ansible" / name).read_text()
    assert text.index("import_playbook: secrets.yml") < text.index("hosts: gpu_nodes")
