"""The machines that the roles are tried on, all at once: making them so takes most of the time."""

import os
from collections.abc import Iterator

import pytest

from tests.ansible.support import Told, applied
from tests.rehearsal.machines import Machine, Site, rehearsal

MACHINES = {
    # As a deep-learning image has it: driver, toolkit and engine are there.
    "gpu1": Machine("bookworm", gpus=2, engine=True),
    "mon": Machine("trixie"),
    "other": Machine("trixie", groups=("others",)),
    "spoilt": Machine("bookworm", groups=("others",), tmpfs={"/var/lib/docker": "size=100m"}),
}
FIREWALL = {"base_firewall_ports": [9100, 8081], "base_ports_free": [9100]}
KEPT = '{"log-driver": "local", "labels": ["kept=yes"]}'


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    if not os.environ.get("REHEARSAL"):
        pytest.skip("run by make rehearsal")
    docker = pytest.importorskip("docker")
    with rehearsal(docker.from_env(timeout=300), MACHINES) as found:
        found.run("gpu1", f"mkdir -p /etc/docker && echo '{KEPT}' >/etc/docker/daemon.json")
        yield found


def wanted(site: Site) -> dict[str, object]:
    return {**FIREWALL, "base_firewall_sources": [site.addresses["mon"]], "docker_source": "distribution"}


@pytest.fixture(scope="session")
def looked_at(site: Site) -> Told:
    """A run that only says what it would do."""
    return applied(site, "base", "docker", "nvidia", limit="gpu1,mon", words=("--check", "--diff"), **wanted(site))


@pytest.fixture(scope="session")
def converged(site: Site, looked_at: Told) -> Told:
    return applied(site, "base", "docker", "nvidia", limit="gpu1,mon", **wanted(site))


@pytest.fixture(scope="session")
def serving(site: Site, converged: Told) -> Site:
    """On gpu1: port 9100 and 9200 published by Docker, ports 8081 and 8082 of the machine itself."""
    site.run("gpu1", "apt-get -qq update && apt-get -qq -y install --no-install-recommends busybox-static", seconds=300)
    site.run("gpu1", "mkdir -p /opt/tiny/bin && cp /bin/busybox /opt/tiny/bin/ && ln -sf busybox /opt/tiny/bin/sh"
                     " && tar -C /opt/tiny -c . | docker import - tiny")  # fmt: skip
    # The first process of a container ends by a signal only where it says so.
    command = "sh -c 'busybox httpd -f -p 80 -h / & trap \"kill $!\" TERM; wait'"
    for port in (9100, 9200):
        site.run("gpu1", f"docker run --detach --restart always --name at{port} --publish {port}:80 tiny {command}")
    for port in (8081, 8082):
        site.run("gpu1", f"cat >/etc/systemd/system/at{port}.service <<END\n[Service]\nExecStart=/bin/busybox httpd -f"
                         f" -p {port} -h /etc\n[Install]\nWantedBy=multi-user.target\nEND\n"
                         f"systemctl enable --now at{port}")  # fmt: skip
    return site
