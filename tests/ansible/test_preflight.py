"""What stands in the way is named with its fix, and the machine stays as it was."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from tests.ansible.support import state, told_by
from tests.rehearsal.machines import Site

HOST = "spoilt"
DISK = {"base_disk_free_mib": {"/var/lib/docker": 64}}


class Obstacle(NamedTuple):
    spoil: str
    mend: str
    says: str
    role: str = "base"
    variables: Mapping[str, Any] = MappingProxyType({})


def program(name: str, text: str) -> tuple[str, str]:
    """One that comes before the machine's own, and its removal."""
    path = f"/usr/local/bin/{name}"
    return f"printf '#!/bin/sh\\n{text}\\n' >{path} && chmod 755 {path}", f"rm {path}"


OBSTACLES = {
    "no sudo": Obstacle("mv /etc/sudoers.d/admin /opt/", "mv /opt/admin /etc/sudoers.d/",
                        "admin may not become root"),
    "wrong system": Obstacle("sed -i.bak s/VERSION_ID=.*/VERSION_ID=11/ /usr/lib/os-release",
                             "mv /usr/lib/os-release.bak /usr/lib/os-release", "its system is debian-11: use one of"),
    "wrong processor": Obstacle(*program("uname", "echo riscv64"), "its processor is of riscv64"),
    "old Python": Obstacle(*program("python3", "echo 3.6"), "its Python is 3.6, and 3.8 is needed"),
    "clock off": Obstacle(*program("date", 'exec /usr/bin/date -d -10minutes "$@"'), "s off from this machine's"),
    "disk full": Obstacle("fallocate -l 60M /var/lib/docker/full", "rm /var/lib/docker/full",
                          "the disk of /var/lib/docker has 40 MiB left, and 64 are needed"),
    "port taken": Obstacle("systemd-run --unit=holder python3 -m http.server 9100; until ss -Hltn | grep -q :9100; do"
                           " sleep 0.1; done", "systemctl stop holder", "port 9100 is taken by python3"),
    "old engine": Obstacle(*program("dockerd", "echo Docker version 20.10.24, build 1"),
                           "its Docker Engine is 20.10.24 (installed by hand), and 25.0 is needed", "docker"),
    "old distribution": Obstacle("true", "true", "debian-12 has an engine older than 25.0", "docker",
                                 {"docker_source": "distribution"}),
    "broken settings": Obstacle("mkdir /etc/docker && echo { >/etc/docker/daemon.json", "rm -r /etc/docker",
                                "/etc/docker/daemon.json is no JSON", "docker"),
    "no repository": Obstacle("true", "true", "the key of Docker's packages does not come from http://127.0.0.1:1/debian/gpg",
                              "docker", {"docker_repository_url": "http://127.0.0.1:1"}),
    "no GPU": Obstacle("true", "true", "there is no NVIDIA GPU", "nvidia", {"nvidia_gpu": "always"}),
}  # fmt: skip


@pytest.mark.parametrize("name", OBSTACLES)
def test_it_stops_with_the_reason_and_leaves_the_machine_as_it_was(site: Site, name: str) -> None:
    one = OBSTACLES[name]
    site.run(HOST, one.spoil)
    try:
        before = state(site, HOST)
        told = told_by(site, one.role, limit=HOST, **DISK, base_ports_free=[9100], **one.variables)
        assert f"{HOST}: " in told.text
        assert one.says in " ".join(told.text.split()), told.text
        assert told.recaps[HOST] == (0, 1)
        assert sorted(set(state(site, HOST)) ^ set(before)) == []
    finally:
        site.run(HOST, one.mend)


def test_without_any_of_these_it_goes_on(site: Site) -> None:
    site.run(HOST, "mkdir -p /mnt/docker/debian && touch /mnt/docker/debian/gpg")
    told = told_by(site, "base", "docker", "nvidia", limit=HOST, entry="preflight", base_ports_free=[9100], **DISK,
                   docker_repository_url="file:///mnt/docker")  # fmt: skip
    assert told.recaps[HOST] == (0, 0), told.text
