"""What a deployment leaves on a machine: names that were not there before, but for those that packages brought.

before = seen(site, "gpu1")
...
left(site, "gpu1", before)  ->  ["/etc/docker/daemon.json"]
"""

import re

from tests.rehearsal.machines import Site

# What is no disk's, the machine's own to write, or dpkg's and apt's (whose nightly copies lie in /var/backups).
_PRUNED = " -o ".join(f"-path {path}" for path in (
    "/proc", "/sys", "/dev", "/run", "/tmp", "/mnt", "/var/log", "/var/cache", "/var/lib/apt", "/var/lib/dpkg",
    "/var/backups", "/etc/fakenvml"))  # fmt: skip
# Ansible's own, sudo's and Python's.
_PRUNED += " -o -name .ansible -o -name .sudo_as_admin_successful -o -name __pycache__"
_SEEN = f"find / -xdev \\( {_PRUNED} \\) -prune -o -print"
_PACKAGED = "cat /var/lib/dpkg/info/*.list"
# What packages make when they are installed, and their programs when they run, at midnight too.
_OF_PACKAGES = re.compile(
    r"(?!.*trainvitals)(/usr/(?!local/).*|/etc/alternatives/.*"
    r"|/etc/systemd/(system|user)/.*\.wants(/.*)?|/etc/cni(/.*)?|/etc/rc.\.d/.*|/etc/(group|gshadow|passwd|shadow)-"
    r"|/etc/apt/apt\.conf\.d/(20auto-upgrades|50unattended-upgrades)|/var/lib/(systemd|ucf|containerd|logrotate|man-db)(/.*)?"
    r"|/var/tmp/systemd-private-.*)"
)


def seen(site: Site, host: str) -> set[str]:
    return set(site.run(host, _SEEN).splitlines())


def left(site: Site, host: str, before: set[str]) -> list[str]:
    packaged = set(site.run(host, _PACKAGED).splitlines())
    new = seen(site, host) - before - packaged
    return sorted(name for name in new if not _OF_PACKAGES.fullmatch(name))
