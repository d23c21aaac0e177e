"""A repository is added where apt does not read it already, whatever its files look like to the eye."""

import json
import shutil
from pathlib import Path

import pytest

from tests.ansible import local

DOCKER = {"name": "docker", "url": "https://docker.example/linux/debian", "suite": "trixie", "components": "stable"}
FLAT = {"name": "toolkit", "url": "https://nvidia.example/deb/amd64/", "suite": "/"}
OWN = "/etc/apt/sources.list.d/docker.sources"
DEB822 = "Types: deb\nURIs: https://docker.example/linux/debian/\nSuites: trixie\nComponents: stable\n"


def reading(folder: Path, **files: str) -> Path:
    """apt's settings by which it reads these sources and nothing of this machine's."""
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    config = folder / "apt.conf"
    (folder / "state" / "lists").mkdir(parents=True)
    config.write_text(
        f'Dir::Etc::sourcelist "/dev/null"; Dir::Etc::sourceparts "{folder}"; Dir::Cache "{folder}/cache";'
        f'Dir::State "{folder}/state"; APT::Architecture "amd64"; APT::Architectures "amd64";'
    )
    return config


def is_there(folder: Path, repository: dict[str, str], **files: str) -> bool:
    if not shutil.which("apt-get"):
        pytest.skip("no apt here")
    tasks = [local.role("base", "apt_sources"), local.shown("base_repository_is_there", folder / "told")]
    done = local.played(folder, tasks, environ={"APT_CONFIG": str(reading(folder, **files))},
                        base_repository={**repository, "key_url": "", "fingerprint": ""})  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert not (folder / "cache").exists()
    found: bool = json.loads((folder / "told").read_text())
    return found


@pytest.mark.parametrize("text", [
    "deb https://docker.example/linux/debian trixie stable\n",
    "deb [arch=amd64 signed-by=/k.asc] https://docker.example/linux/debian/ trixie stable test\n"])  # fmt: skip
def test_one_that_apt_reads_is_kept(tmp_path: Path, text: str) -> None:
    assert is_there(tmp_path, DOCKER, own_list=text)


def test_one_in_the_newer_form_is_kept(tmp_path: Path) -> None:
    assert is_there(tmp_path, DOCKER, own_sources=DEB822)


def test_one_with_a_variable_of_apt_s_is_kept(tmp_path: Path) -> None:
    assert is_there(tmp_path, FLAT, nvidia_list="deb https://nvidia.example/deb/$(ARCH) /\n")


@pytest.mark.parametrize(("name", "text"), [
    ("off_list", "# deb https://docker.example/linux/debian trixie stable\n"),
    ("off_sources", f"Enabled: no\n{DEB822}"),
    ("source_sources", DEB822.replace("Types: deb", "Types: deb-src")),
    ("other_list", "deb https://docker.example/linux/debian bookworm stable\n"),
    ("longer_list", "deb https://docker.example/linux/debian-more trixie stable\n"),
    ("saved_list.save", "deb https://docker.example/linux/debian trixie stable\n")])  # fmt: skip
def test_what_apt_does_not_read_is_none(tmp_path: Path, name: str, text: str) -> None:
    assert not is_there(tmp_path, DOCKER, **{name: text})


def test_one_s_own_source_is_looked_after(tmp_path: Path) -> None:
    """By another name for its folder, which is this machine's otherwise."""
    told = f"https://docker.example/linux/debian trixie {OWN}:1"
    path = local.program(tmp_path / "bin", "apt-get", f"echo '{told}'")
    tasks = [local.role("base", "apt_sources"), local.shown("base_repository_is_there", tmp_path / "told")]
    done = local.played(tmp_path, tasks, path=path, base_repository=DOCKER)
    assert done.returncode == 0, done.stdout[-3000:]
    assert json.loads((tmp_path / "told").read_text()) is False
