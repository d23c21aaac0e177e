"""A machine that was just made is waited for, for so long and no longer, and what failed is told."""

import json
import time
from pathlib import Path

import pytest

from tests.ansible import local

# Each reads what it says from a file, so that it can say something else later.
CLOUD_INIT = """
case $* in
*--wait) while grep -q -e running -e not {0}/cloud; do sleep 0.2; done; grep -q error {0}/cloud && exit 1
    grep -q degraded {0}/cloud && exit 2; exit 0 ;;
*) sed 's/^/status: /' {0}/cloud ;;
esac"""
SYSTEMCTL = "case $1 in is-system-running) cat {0}/system ;; list-units) cat {0}/units ;; esac"


def machine(folder: Path, *, cloud: str = "done", system: str = "running", units: str = "") -> Path:
    for name, text in (("cloud", cloud), ("system", system), ("units", units)):
        (folder / name).write_text(text + "\n" if text else "")
    local.program(folder / "bin", "systemctl", SYSTEMCTL.format(folder))
    return local.program(folder / "bin", "cloud-init", CLOUD_INIT.format(folder))


def waited(folder: Path, path: Path, seconds: int = 3) -> str:
    """What it ended with, or nothing where it went on."""
    done = local.played(folder, [local.role("base", "boot")], path=path, base_boot_seconds=seconds)
    if done.returncode == 0:
        return ""
    assert f"{local.HOST}: " in done.stdout
    return " ".join(done.stdout.split())


def test_one_that_is_done_is_not_waited_for(tmp_path: Path) -> None:
    assert waited(tmp_path, machine(tmp_path)) == ""


def test_one_without_cloud_init_is_not_waited_for(tmp_path: Path) -> None:
    path = machine(tmp_path)
    local.program(path, "cloud-init", "exit 127")
    assert waited(tmp_path, path) == ""


def test_one_that_cloud_init_did_not_start_with_is_not_waited_for(tmp_path: Path) -> None:
    assert waited(tmp_path, machine(tmp_path, cloud="not run")) == ""


@pytest.mark.parametrize(("told", "says"), [
    ({"cloud": "running"}, "cloud-init is at work there, and not done after 3 s"),
    ({"cloud": "not started", "system": "starting"}, "cloud-init is at work there"),
    ({"cloud": "error"}, "cloud-init failed there"),
    ({"units": "google-startup-scripts.service loaded activating start start x"},
     "google-startup-scripts.service is at work there, and not done after 3 s")])  # fmt: skip
def test_one_that_does_not_get_there_is_told(tmp_path: Path, told: dict[str, str], says: str) -> None:
    text = waited(tmp_path, machine(tmp_path, **told))
    assert says in text
    assert "base_boot_seconds: 0" in text


def test_what_cloud_init_got_over_is_no_reason_to_stop(tmp_path: Path) -> None:
    assert waited(tmp_path, machine(tmp_path, cloud="degraded done")) == ""


def test_one_that_is_done_meanwhile_goes_on(tmp_path: Path) -> None:
    path = machine(tmp_path, cloud="running", units="apt-daily.service loaded activating start start x")
    end = f"(sleep 2; echo done >{tmp_path}/cloud; : >{tmp_path}/units) >/dev/null 2>&1 &"
    tasks = [{"ansible.builtin.raw": end}, local.role("base", "boot")]
    done = local.played(tmp_path, tasks, path=path, base_boot_seconds=60)
    assert done.returncode == 0, done.stdout[-3000:]


def image(folder: Path, *, metadata: str, smi: str, installing: str = "exit 1", seconds: int = 3) -> tuple[bool, str]:
    """Whether it went on, and what was seen."""
    path = folder / "bin"
    for name, text in (("curl", metadata), ("nvidia-smi", smi), ("pgrep", installing), ("cut", "echo 1")):
        local.program(path, name, text)
    tasks = [local.role("nvidia", "image"), local.shown("nvidia_image.stdout | trim", folder / "told")]
    done = local.played(folder, tasks, path=path, nvidia_image_seconds=seconds)
    told = folder / "told"
    return done.returncode == 0, json.loads(told.read_text()) if told.exists() else " ".join(done.stdout.split())


def test_an_image_that_brings_no_driver_is_not_waited_for(tmp_path: Path) -> None:
    began = time.monotonic()
    assert image(tmp_path, metadata="exit 22", smi="exit 9", seconds=600) == (True, "none")
    assert time.monotonic() - began < 300


def test_an_image_s_driver_is_waited_for(tmp_path: Path) -> None:
    smi = f"echo x >>{tmp_path}/asked; [ $(wc -l <{tmp_path}/asked) -gt 2 ]"
    assert image(tmp_path, metadata="echo True", smi=smi, seconds=120) == (True, "works")


def test_an_image_that_gave_up_is_left_to_the_role(tmp_path: Path) -> None:
    assert image(tmp_path, metadata="echo True", smi="exit 9") == (True, "ended")


def test_two_do_not_install_a_driver_at_a_time(tmp_path: Path) -> None:
    went_on, text = image(tmp_path, metadata="echo True", smi="exit 9", installing="exit 0")
    assert not went_on
    assert "its image installs the driver by itself (metadata install-nvidia-driver), and is not done after 3 s" in text
