"""Docker and NVIDIA's toolkit from repositories like their makers', whose keys must be the right ones.

The repositories are stand-ins: nobody reaches the real ones from everywhere that the tests run.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ansible.repository import Key, Package, publish
from tests.ansible.support import applied, state, told_by
from tests.rehearsal import gpus
from tests.rehearsal.images import ENGINE
from tests.rehearsal.machines import Machine, Site
from tests.stack.bases import ROOT
from tests.stack.support import wait_for

PARTS = ("docker-ce-cli", "containerd.io", "docker-buildx-plugin", "docker-compose-plugin")
PROGRAMS = ROOT / "tests" / "rehearsal" / "programs"
# As the maker's package has them: at boot nothing says when.
UNITS = {
    "service": "[Service]\nType=oneshot\nExecStart=nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml\n",
    "path": "[Path]\nPathChanged=/usr/bin/nvidia-smi\n",
}
PLACE = f"file://{gpus.SCENARIO}"


@pytest.fixture(scope="module")
def key(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Key:
    return Key(tmp_path_factory.mktemp("key") / "gnupg")


@pytest.fixture(scope="module")
def docker(site: Site, key: Key) -> dict[str, str]:
    """Variables of the role by which the machine `other` has Docker's packages at hand."""
    subprocess.run([ROOT / "scripts" / "fetch-tools", "engine"], check=True, capture_output=True, timeout=600)
    whole = Package("docker-ce", "5:28.5.2-1", "iptables, runc, libdevmapper1.02.1", ENGINE / "usr")
    publish(site.shared("other") / "debian", [whole, *(Package(name, "1") for name in PARTS)], key, "trixie", "stable")
    # As the real package does when it is installed.
    site.run("other", "groupadd --system docker")
    return {"docker_repository_url": PLACE, "docker_repository_fingerprint": key.fingerprint}


@pytest.fixture(scope="module")
def bare(site: Site, key: Key, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A machine with a driver and without a toolkit, and the toolkit's repository."""
    site.add({"bare": Machine("trixie", gpus=1, toolkit=False)})
    programs = tmp_path_factory.mktemp("toolkit")
    (programs / "bin").mkdir()
    (programs / "bin" / "nvidia-ctk").write_bytes((PROGRAMS / "nvidia-ctk").read_bytes())
    (programs / "bin" / "nvidia-ctk").chmod(0o755)
    units = programs / "lib" / "systemd" / "system"
    units.mkdir(parents=True)
    for kind, text in UNITS.items():
        (units / f"nvidia-cdi-refresh.{kind}").write_text(f"{text}[Install]\nWantedBy=multi-user.target\n")
    _published(site.shared("bare"), programs, key)
    yield {"nvidia_toolkit_repository_url": PLACE, "nvidia_toolkit_repository_fingerprint": key.fingerprint}
    site.remove("bare")


def _published(root: Path, programs: Path, key: Key) -> None:
    flat = root / "stable" / "deb" / "amd64"
    publish(flat, [Package("nvidia-container-toolkit", "1.18.0-1", files=programs)], key)
    (root / "gpgkey").write_bytes((flat / "gpg").read_bytes())


def test_a_repository_with_another_key_is_not_trusted(site: Site, docker: dict[str, str]) -> None:
    told = told_by(site, "base", "docker", limit="other", **{**docker, "docker_repository_fingerprint": "0" * 40})
    assert told.recaps["other"].failed == 1
    assert f"is none with the fingerprint {'0' * 40}" in " ".join(told.text.split())
    left = [line for line in state(site, "other") if "/etc/apt/" in line and "docker" in line]
    assert [line.split()[0] for line in left] == ["/etc/apt/keyrings/docker.asc.unchecked"]


def test_docker_comes_from_its_own_repository(site: Site, docker: dict[str, str]) -> None:
    applied(site, "docker", limit="other", **docker)
    assert site.run("other", "dpkg-query --show --showformat '${Version}' docker-ce") == "5:28.5.2-1"
    assert site.run("other", "docker info --format '{{.LiveRestoreEnabled}}'").strip() == "true"
    assert applied(site, "docker", limit="other", **docker).changed() == {"other": 0}


def test_the_toolkit_comes_from_its_own_repository(site: Site, bare: dict[str, str]) -> None:
    told = applied(site, "base", "nvidia", limit="bare", **bare)
    assert "bare: driver 580.95.05 is kept" in told.text
    assert "1.18.0-1" in site.run("bare", "dpkg-query --show nvidia-container-toolkit")
    assert "nvidia.com/gpu=all" in site.run("bare", "nvidia-ctk cdi list")
    assert applied(site, "base", "nvidia", limit="bare", **bare).changed() == {"bare": 0}


def test_the_toolkit_s_own_units_are_done_before_the_engine_starts(site: Site, bare: dict[str, str]) -> None:
    applied(site, "base", "nvidia", limit="bare", **bare)
    assert site.ended("bare", "test -e /etc/systemd/system/trainvitals-cdi.service")[0] == 1
    site.reboot("bare")
    wait_for(lambda: site.ended("bare", "test -s /run/cdi/nvidia.yaml")[0] == 0, 30)
    told = site.run("bare", "systemctl show --property=Before --value nvidia-cdi-refresh.service")
    assert "docker.service" in told.split()
    assert applied(site, "base", "nvidia", limit="bare", **bare).changed() == {"bare": 0}


def test_a_specification_of_what_is_gone_is_made_anew(site: Site, bare: dict[str, str]) -> None:
    site.run("bare", "sed -i 's|libnvidia-ml.so.1|libnvidia-ml.so.0|' /run/cdi/nvidia.yaml")
    assert applied(site, "base", "nvidia", limit="bare", **bare).changed()["bare"] > 0
    assert "libnvidia-ml.so.1" in site.run("bare", "cat /run/cdi/nvidia.yaml")
