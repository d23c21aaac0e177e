"""Removing says that it removed only where nothing of the stack can be left."""

import shutil
import subprocess
from pathlib import Path

from tests.ansible import local
from tests.compose.files import SERVICES
from tests.stack.bases import ROOT

SCRIPT = ROOT / "ansible" / "roles" / "stack" / "files" / "remove.sh"


def removed(folder: Path, **programs: str) -> "subprocess.CompletedProcess[str]":
    """Of this machine's programs only those that the script may not lack; Docker's are stand-ins, or missing."""
    path = folder / "bin"
    path.mkdir()
    for name in ("bash", "sh", "env", "rm", "timeout", "grep", "sort", "cat", "sed"):
        (path / name).symlink_to(next(file for at in ("/usr/bin", "/bin") if (file := Path(at, name)).exists()))
    for name, text in programs.items():
        local.program(path, name, text)
    (folder / "home").mkdir(exist_ok=True)
    return subprocess.run(["/usr/bin/env", "bash", SCRIPT, folder / "home"], check=False, capture_output=True,
                          text=True, timeout=60, env={"PATH": str(path)})  # fmt: skip


def test_an_engine_that_is_stopped_is_to_be_started_first(tmp_path: Path) -> None:
    done = removed(tmp_path, docker="exit 1", dockerd="exit 1")
    assert done.returncode == 1
    assert "start Docker first (systemctl start docker)" in done.stderr
    assert done.stdout == ""
    assert (tmp_path / "home").exists()


def test_where_no_engine_is_nothing_can_be_left(tmp_path: Path) -> None:
    done = removed(tmp_path)
    assert (done.returncode, done.stdout) == (0, f"changed: {tmp_path / 'home'}\n"), done.stderr
    assert not (tmp_path / "home").exists()


def test_of_an_engine_that_answers_all_goes(tmp_path: Path) -> None:
    told = f'echo "$@" >>{tmp_path}/asked; case "$1 $2" in "volume ls") echo trainvitals_data;; esac'
    done = removed(tmp_path, docker=told, dockerd="exit 1")
    assert done.returncode == 0, done.stderr
    assert "volume rm trainvitals_data" in (tmp_path / "asked").read_text()
    assert not (tmp_path / "home").exists()


def test_every_image_that_a_release_names_goes_but_for_those_that_others_use(tmp_path: Path) -> None:
    """An archive of images brings those of other machines too."""
    images = {service["image"] for service in SERVICES.values()}
    told = f'echo "$@" >>{tmp_path}/asked; case "$*" in "rmi caddy:"*) exit 1;; esac'
    compose = tmp_path / "home" / "releases" / "one" / "compose"
    compose.mkdir(parents=True)
    shutil.copy(ROOT / "compose" / "compose.yaml", compose)
    done = removed(tmp_path, docker=told, dockerd="exit 1")
    assert done.returncode == 0, done.stderr
    asked = (tmp_path / "asked").read_text().splitlines()
    assert {line.removeprefix("rmi ") for line in asked if line.startswith("rmi ")} == images
    gone = {line.removeprefix("changed: ") for line in done.stdout.splitlines()} - {str(tmp_path / "home")}
    assert gone == {image for image in images if not image.startswith("caddy:")}
