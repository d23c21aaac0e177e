"""Whom alerts go to is told once: a later deployment from a shell that says nothing of it leaves it as it is."""

import json
import shutil
from pathlib import Path

import pytest

from tests.ansible import local
from tests.compose.files import EXAMPLE
from tests.stack.bases import ROOT
from trainvitals.config import read_env_lines

TEMPLATE = ROOT / "ansible" / "roles" / "stack" / "templates" / "env.j2"
SECRET = "https://hooks.example/secret"
FOUND = {"dcgm": "", "gpu_driver": "", "bind": "127.0.0.1", "release": "new", "idle": False}
ALL = {"SMTP_HOST": "mail.example.org", "SMTP_FROM": "Us <a@b.c>", "SMTP_PASSWORD": r"a$b#c\d e",
       "SLACK_CHANNEL": "#gpus", "SMTP_PORT": "465", "QUIET_HOURS": "22:00-07:00 Europe/Berlin", "WEBHOOK_URL": "http://it's.example/x?y=1",
       "TELEGRAM_CHAT_ID": "-100"}  # fmt: skip
NOBODY = dict.fromkeys(("WEBHOOK_URL", "SLACK_CHANNEL", "SMTP_HOST"))


def deployed(home: Path, environ: dict[str, str | None], **variables: object) -> str:
    """compose/.env as a deployment from such an environment writes it into the release that runs."""
    compose = home / "releases" / "new" / "compose"
    compose.mkdir(parents=True, exist_ok=True)
    shutil.copy(EXAMPLE, compose / ".env.example")
    if not (home / "current").exists():
        (home / "current").symlink_to("releases/new")
    write = {"ansible.builtin.template": {"src": str(TEMPLATE), "dest": str(compose / ".env"), "mode": "0600"}}
    done = local.played(home, [local.role("stack", "kept"), write], "-vvv", environ={**NOBODY, **environ},
                        stack_home=str(home), stack_source_dir=str(ROOT), stack_found=FOUND, **variables)  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert SECRET not in done.stdout
    return (compose / ".env").read_text()


def channels(text: str, folder: Path) -> dict[str, str]:
    (folder / "shown").write_text(text)
    usual, found = read_env_lines(EXAMPLE), read_env_lines(folder / "shown")
    return {name: found[name] for name in ALL if found[name] != usual[name]}


def test_a_deployment_that_names_nobody_changes_nothing(tmp_path: Path) -> None:
    first = deployed(tmp_path, dict(ALL))
    assert channels(first, tmp_path) == ALL
    assert deployed(tmp_path, {}) == first


def test_one_is_replaced_and_the_others_stay(tmp_path: Path) -> None:
    deployed(tmp_path, dict(ALL))
    found = channels(deployed(tmp_path, {"WEBHOOK_URL": SECRET}), tmp_path)
    assert found == {**ALL, "WEBHOOK_URL": SECRET}
    # The value was kept without being shown.
    assert channels(deployed(tmp_path, {}), tmp_path) == found


@pytest.mark.parametrize("way", ["environment", "inventory"])
def test_what_is_given_as_empty_goes(tmp_path: Path, way: str) -> None:
    deployed(tmp_path, dict(ALL))
    environ: dict[str, str | None] = {"WEBHOOK_URL": "", "SMTP_PORT": ""}
    text = deployed(tmp_path, environ) if way == "environment" else deployed(tmp_path, {}, **environ)
    left = {name: value for name, value in ALL.items() if name not in environ}
    assert channels(text, tmp_path) == left
    assert channels(deployed(tmp_path, {}), tmp_path) == left


def test_the_inventory_says_more_than_the_environment(tmp_path: Path) -> None:
    text = deployed(tmp_path, {"WEBHOOK_URL": "http://one"}, WEBHOOK_URL="http://another")
    assert channels(text, tmp_path) == {"WEBHOOK_URL": "http://another"}
    assert channels(deployed(tmp_path, {"WEBHOOK_URL": "http://one"}, WEBHOOK_URL=""), tmp_path) == {
        "WEBHOOK_URL": "http://one"
    }


def test_what_came_of_a_public_name_goes_with_it(tmp_path: Path) -> None:
    given = {"GRAFANA_URL": "http://graphs.example"}
    before = deployed(tmp_path, dict(given))
    assert "PUBLIC_NAME=gpus.example" in deployed(tmp_path, {}, stack_public_name="gpus.example")
    after = deployed(tmp_path, {})
    assert "gpus.example" not in after
    assert deployed(tmp_path, dict(given)) == before == deployed(tmp_path, {})


def test_a_run_that_was_broken_off_forgets_nobody(tmp_path: Path) -> None:
    deployed(tmp_path, dict(ALL))
    (tmp_path / "current").unlink()
    tasks = [local.role("stack", "kept"), local.shown("stack_channels", tmp_path / "text")]
    done = local.played(tmp_path, tasks, environ=NOBODY, stack_home=str(tmp_path), stack_source_dir=str(ROOT))
    assert done.returncode == 0, done.stdout[-3000:]
    assert json.loads((tmp_path / "text").read_text()) == ALL
