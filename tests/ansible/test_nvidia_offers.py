"""Where a driver could not be installed, the preflight says so with what mends it, and asks apt without a trace."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.ansible import local
from tests.ansible.test_apt_sources import reading

KERNEL = "6.1.0-99-amd64"
FOUND = {"release": "debian-12", "architecture": "x86_64", "kernel": KERNEL, "devices": ["0x27b8"], "works": False,
         "installed": False, "loaded": False, "toolkit": ""}  # fmt: skip
SOURCES = "deb https://debian.example/debian bookworm main contrib\n# deb https://debian.example/debian sid non-free\n"
GOOD = {"components": ["main", "contrib", "non-free", "non-free-firmware"], "kernel_package": "offered",
        "secure_boot": False, "enrolled": False}  # fmt: skip


def offers(folder: Path, *, lists: dict[str, str], path: Path | None = None, **found: str) -> dict[str, Any]:
    if not shutil.which("apt-get"):
        pytest.skip("no apt here")
    config = reading(folder, debian_list=SOURCES)
    for name, text in lists.items():
        (folder / "state" / "lists" / f"debian.example_debian_dists_bookworm_{name}").write_text(text)
    before = sorted(folder.rglob("*"))
    tasks = [local.role("nvidia", "offers"), local.shown("nvidia_offers", folder / "told")]
    done = local.played(folder, tasks, path=path, environ={"APT_CONFIG": str(config)}, nvidia_found={**FOUND, **found})
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert {path.name for path in set(folder.rglob("*")) - set(before)} == {"told", "play.yml", "hosts.json"}
    told: dict[str, Any] = json.loads((folder / "told").read_text())
    return told


def listed(package: str) -> dict[str, str]:
    release = "Origin: Debian\nSuite: stable\nCodename: bookworm\nArchitectures: amd64\nComponents: main contrib\n"
    told = f"Package: {package}\nVersion: 6.1\nArchitecture: amd64\nMaintainer: a <b@c>\nDescription: x\n"
    return {"Release": release, "main_binary-amd64_Packages": f"{told}Filename: pool/x.deb\nSize: 1\n"}


def test_without_lists_nothing_is_concluded(tmp_path: Path) -> None:
    assert offers(tmp_path, lists={})["kernel_package"] == "unknown"


def test_headers_that_apt_does_not_have_are_missed(tmp_path: Path) -> None:
    told = offers(tmp_path, lists=listed("linux-headers-6.1.0-1-amd64"))
    assert (told["kernel_package"], told["components"]) == ("absent", ["contrib", "main"])


def test_headers_that_apt_has_are_found(tmp_path: Path) -> None:
    assert offers(tmp_path, lists=listed(f"linux-headers-{KERNEL}"))["kernel_package"] == "offered"


@pytest.mark.parametrize(("byte", "is_on"), [(" 1", True), (" 0", False), ("", False)])
def test_secure_boot_is_read_where_the_firmware_says_it(tmp_path: Path, byte: str, is_on: bool) -> None:
    path = local.program(tmp_path / "bin", "od", f"echo '{byte}'")
    assert offers(tmp_path, lists={}, path=path)["secure_boot"] is is_on


def problems(folder: Path, told: dict[str, Any], **variables: Any) -> str:
    tasks = [*local.variables("nvidia"),
             local.shown("{'why': nvidia_problems, 'packages': nvidia_driver_packages}", folder / "told")]  # fmt: skip
    given = {"nvidia_found": {**FOUND, **variables.pop("found", {})}, "nvidia_offers": {**GOOD, **told}, **variables}
    done = local.played(folder, tasks, **given)
    assert done.returncode == 0, done.stdout[-3000:]
    return (folder / "told").read_text()


def test_what_can_be_installed_is_no_problem(tmp_path: Path) -> None:
    assert json.loads(problems(tmp_path, {}))["why"] == []


UBUNTU = {"found": {"release": "ubuntu-24.04", "kernel": "6.8.0-1015-gcp"}}


@pytest.mark.parametrize(("told", "variables", "says"), [
    ({"components": ["main", "contrib"]}, {"nvidia_driver_source": "distribution"},
     "apt reads no non-free, non-free-firmware there"),
    ({"components": None}, {"nvidia_driver_source": "distribution"}, "add contrib non-free non-free-firmware behind"),
    ({"kernel_package": "absent"}, {}, f"apt offers no linux-headers-{KERNEL}"),
    ({"kernel_package": "absent"}, {**UBUNTU, "nvidia_driver_source": "distribution"},
     "apt offers no linux-modules-nvidia-580-server-open-6.8.0-1015-gcp"),
    ({"secure_boot": True}, {}, "does not know: turn Secure Boot off; or enrol the key"),
    ({"secure_boot": True}, UBUNTU, "does not know: set nvidia_driver_source: distribution")])  # fmt: skip
def test_what_stands_in_the_way_is_told(
    tmp_path: Path, told: dict[str, Any], variables: dict[str, Any], says: str
) -> None:
    (why,) = json.loads(problems(tmp_path, told, **variables))["why"]
    assert says in why


@pytest.mark.parametrize(("told", "variables"), [
    ({"components": ["main"]}, {}), ({"kernel_package": "unknown"}, {}),
    ({"secure_boot": True, "enrolled": True}, {}),
    ({"secure_boot": True}, {**UBUNTU, "nvidia_driver_source": "distribution"})])  # fmt: skip
def test_what_does_not_matter_is_not_told(tmp_path: Path, told: dict[str, Any], variables: dict[str, Any]) -> None:
    assert json.loads(problems(tmp_path, told, **variables))["why"] == []


def test_ubuntu_s_own_modules_are_its_signed_ones(tmp_path: Path) -> None:
    variables = {**UBUNTU, "nvidia_driver_source": "distribution"}
    assert json.loads(problems(tmp_path, {}, **variables))["packages"] == [
        "linux-modules-nvidia-580-server-open-6.8.0-1015-gcp", "nvidia-headless-no-dkms-580-server-open",
        "nvidia-utils-580-server"]  # fmt: skip
