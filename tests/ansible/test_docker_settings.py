"""Settings that a run wrote and did not get to apply are applied by the next one."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ansible import local
from tests.stack.bases import ROOT

DOCKER = ROOT / "ansible" / "roles" / "docker"
FORMER = "trainvitals-former.json"
ENGINE = {"release": "debian-12", "codename": "bookworm", "engine": "28.5", "compose": "2.40", "buildx": "0.13",
          "package": "docker-ce", "snap": False, "unit": True, "containerd": None}  # fmt: skip
SHOWN = "{'changed': docker_settings_changed, 'restart': docker_wants_restart, 'mode': docker_settings_mode}"


def probed(folder: Path) -> dict[str, Any]:
    """What the role finds where /etc/docker is that folder, and no engine answers."""
    text = (DOCKER / "templates" / "probe.sh.j2").read_text().replace("/etc/docker/", f"{folder}/")
    dest = {"src": str(folder / "probe.j2"), "dest": str(folder / "probe.sh"), "mode": "0755"}
    (folder / "probe.j2").write_text(text)
    path = local.program(folder / "bin", "docker", "exit 1")
    assert local.played(folder, [{"ansible.builtin.template": dest}]).returncode == 0
    done = subprocess.run(["sh", folder / "probe.sh"], check=True, capture_output=True, text=True, timeout=60,
                          env={"PATH": f"{path}:/usr/bin:/bin"})  # fmt: skip
    found = yaml.safe_load(done.stdout)
    return ENGINE | {key: found[key] for key in ("config", "former", "mode") if key in found}


def judged(folder: Path, **variables: Any) -> dict[str, Any]:
    done = local.played(folder, [*local.variables("docker"), local.shown(SHOWN, folder / "told")],
                        docker_found=probed(folder), **variables)  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    told: dict[str, Any] = json.loads((folder / "told").read_text())
    return told


WRITTEN = {"live-restore": True, "features": {"cdi": True}, "log-driver": "local"}


def test_what_was_written_and_not_taken_up_is_still_to_be_applied(tmp_path: Path) -> None:
    (tmp_path / "daemon.json").write_text(json.dumps(WRITTEN))
    assert judged(tmp_path)["changed"] == []
    (tmp_path / FORMER).write_text('{"live-restore": true}')
    told = judged(tmp_path)
    assert sorted(told["changed"]) == ["features", "log-driver"]
    assert told["restart"]


@pytest.mark.parametrize(("before", "config", "mode"), [
    (None, {}, "0644"), (None, {"proxies": {}}, "0600"), (0o600, {}, "0600"), (0o640, {"debug": True}, "0640"),
    (0o644, {"proxies": {"http-proxy": "http://a:b@c"}}, "0600")])  # fmt: skip
def test_the_file_is_open_to_whom_it_was_and_with_a_proxy_to_root_alone(
    tmp_path: Path, before: int | None, config: dict[str, Any], mode: str
) -> None:
    if before:
        (tmp_path / "daemon.json").write_text(json.dumps(config))
        (tmp_path / "daemon.json").chmod(before)
    assert judged(tmp_path, docker_daemon_options=config)["mode"] == mode


@pytest.mark.parametrize("fails", [False, True])
def test_those_of_before_are_noted_for_as_long_as_the_engine_has_them(tmp_path: Path, fails: bool) -> None:
    path = local.program(tmp_path / "bin", "dockerd", f"cp {tmp_path}/{FORMER} {tmp_path}/seen; exit {int(fails)}")
    text = (DOCKER / "tasks" / "settings.yml").read_text().replace("/etc/docker", str(tmp_path))
    tasks = yaml.safe_load(text.replace("owner: root", "force: true").replace("group: root", "follow: true"))
    tasks[1]["block"] = [task for task in tasks[1]["block"] if "copy" in "".join(task)]
    for task in tasks[1]["block"]:
        task.pop("notify", None)
    done = local.played(tmp_path, [*local.variables("docker"), *tasks], path=path,
                        docker_found={**ENGINE, "mode": "0600", "config": {"labels": ["kept=yes"]}})  # fmt: skip
    assert (done.returncode != 0) is fails, done.stdout[-3000:]
    assert json.loads((tmp_path / "seen").read_text()) == {"labels": ["kept=yes"]}
    assert not (tmp_path / FORMER).exists()
    assert (tmp_path / "daemon.json").exists() is not fails
    assert fails or (tmp_path / "daemon.json").stat().st_mode & 0o777 == 0o600
