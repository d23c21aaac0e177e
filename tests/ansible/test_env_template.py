"""compose/.env as the role writes it: what is given arrives as it is, whatever signs are in it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compose.files import EXAMPLE
from tests.stack.bases import ROOT
from trainvitals.config import read_env_lines
from trainvitals.stack.check_env import problems

TEMPLATE = ROOT / "ansible" / "roles" / "stack" / "templates" / "env.j2"
GIVEN = {
    "COMPOSE_PROFILES": "node,server", "SMTP_HOST": "mail.example.org", "SMTP_FROM": "Us <a@b.c>",
    "SMTP_TO": "a@b.c,d@e.f",
    "SMTP_USER": "me", "SMTP_PASSWORD": r"a$b#c\d e", "SLACK_CHANNEL": "#gpus", "TRAINVITALS_BIND": "[fd00::7]",
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
    ("SMTP_PASSWORD", "it's $5", "SMTP_PASSWORD: its value holds a $"),
    ("GRAFANA_PORT", "x\nSLACK_CHANNEL=y", "")])  # fmt: skip
def test_what_cannot_be_written_is_told(name: str, value: str, told: str, tmp_path: Path) -> None:
    found = problems(written(tmp_path, **{name: value}))
    assert found
    assert told in "".join(found)
