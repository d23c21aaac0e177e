"""compose/.env as the role writes it: what is given arrives as it is, whatever signs are in it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ansible.test_site_secrets import loaded
from tests.compose.files import EXAMPLE
from tests.stack.bases import ROOT
from trainvitals.config import read_env_lines
from trainvitals.stack.check_env import problems

TEMPLATE = ROOT / "ansible" / "roles" / "stack" / "templates" / "env.j2"
GIVEN = {
    "COMPOSE_PROFILES": "node,server", "SMTP_HOST": "mail.example.org", "SMTP_FROM": "Us <a@b.c>",
    "SMTP_TO": "a@b.c,d@e.f",
    "SMTP_USER": "me", "SMTP_PASSWORD": r"a$b#c\d e", "SLACK_CHANNEL": "#gpus", "TRAINVITALS_BIND": "[fd00::7]",
    "TRAINVITALS_WEB_CONFIG": "/etc/trainvitals/web.yml",
    "QUIET_HOURS": "22:00-07:00 Europe/Berlin", "SLACK_WEBHOOK_URL": "https://hooks.example/x?y=$1"}  # fmt: skip


def written(folder: Path, **knobs: str) -> Path:
    told = json.dumps({"stack_example": EXAMPLE.read_text(), "stack_knobs": knobs})
    words = [Path(sys.executable).with_name("ansible"), "localhost", "--connection", "local", "-m", "template", "-a",
             f"src={TEMPLATE} dest={folder / '.env'}", "-e", told]  # fmt: skip
    subprocess.run(words, check=True, capture_output=True, text=True, timeout=60, cwd=folder)
    return folder / ".env"


def test_what_is_given_arrives_as_it_is_and_the_rest_is_as_the_example_has_it(tmp_path: Path) -> None:
    path = written(tmp_path, **GIVEN)
    assert problems(path) == []
    assert read_env_lines(path) == {**read_env_lines(EXAMPLE), **GIVEN}


@pytest.mark.parametrize(("name", "value", "told"), [
    ("GRAFANA_PROT", "3001", "GRAFANA_PROT is no knob: the nearest one is GRAFANA_PORT"),
    ("GRAFANA_PORT", "x\nSLACK_CHANNEL=y", "")])  # fmt: skip
def test_what_cannot_be_written_is_told(name: str, value: str, told: str, tmp_path: Path) -> None:
    found = problems(written(tmp_path, **{name: value}))
    assert found
    assert told in "".join(found)


# A blank, both quotes, and all that Compose takes for more than itself, in the middle and at the end.
HARD = [
    "abc\\",
    "abc\\\\",
    "it's $5",
    r"it's\nx \$HOME \\",
    "both ' and \"",
    "'",
    '"',
    "${HOME}'",
    "a'#b #c\\",
    r"a\'b",
]


@pytest.mark.parametrize("value", HARD)
def test_whatever_is_in_a_password_arrives(value: str, tmp_path: Path) -> None:
    path = written(tmp_path, **{**GIVEN, "SMTP_PASSWORD": value})
    assert problems(path) == []
    assert read_env_lines(path)["SMTP_PASSWORD"] == value
    assert loaded("stack_kept").read(path)["SMTP_PASSWORD"] == value


def composing() -> str:
    """The machine's own Docker where that has Compose, else that of scripts/start-engine."""
    for docker in ("docker", str(ROOT / ".cache" / "tools" / "docker" / "docker")):
        words = [docker, "compose", "version"]
        if shutil.which(docker) and not subprocess.run(words, capture_output=True, timeout=60, check=False).returncode:
            return docker
    return ""


def test_compose_reads_back_what_was_written(tmp_path: Path) -> None:
    """By Compose itself, which shows a $ twice."""
    docker = composing()
    if not docker:
        pytest.skip("Docker Compose is not here")
    knobs = {f"HARD_{number}": value for number, value in enumerate(HARD)}
    written(tmp_path, **knobs)
    composition = {"services": {"a": {"image": "a", "environment": {name: f"${{{name}}}" for name in knobs}}}}
    (tmp_path / "compose.yaml").write_text(json.dumps(composition))
    environ = {name: value for name, value in os.environ.items() if name not in knobs}
    done = subprocess.run([docker, "compose", "config", "--format", "json"], cwd=tmp_path, check=False,
                          capture_output=True, text=True, timeout=60, env=environ)  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["services"]["a"]["environment"]
    assert {name: value.replace("$$", "$") for name, value in found.items()} == knobs
