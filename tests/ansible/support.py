"""Roles on the rehearsal's machines, one by one or together.

applied(site, "base", "docker", base_firewall_ports=[9100])  ->  {"gpu1": Recap(changed=11, failed=0), ...}
"""

import json
import re
from typing import Any, NamedTuple

from tests.rehearsal.machines import Site
from tests.stack.bases import ROOT

_RECAP = re.compile(r"^(\S+)\s+: ok=\d+\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.MULTILINE)
# What a machine writes by itself, and Ansible's own folder of temporary files.
_VOLATILE = (
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/tmp",
    "/mnt",
    "/var/log",
    "/var/tmp",
    "/var/lib/systemd",
    "/etc/fakenvml",
)
# And what sudo leaves in the home of its user.
_STATE = (
    "find / -xdev \\( {} -o -name .ansible -o -name .sudo_as_admin_successful \\) -prune"
    " -o ! -path /home/admin -printf '%p %y %m %u %s %T@ %l\\n' | sort; dpkg-query -W;"
    " systemctl list-unit-files --no-legend | grep -v transient"
)


class Recap(NamedTuple):
    changed: int
    failed: int


class Told(NamedTuple):
    text: str
    recaps: dict[str, Recap]

    def changed(self) -> dict[str, int]:
        return {host: recap.changed for host, recap in self.recaps.items()}


def told_by(site: Site, *roles: str, limit: str = "all", words: tuple[str, ...] = (), **variables: Any) -> Told:
    """What Ansible said, whether it went well or not."""
    told = json.dumps({"wanted": roles, **variables})
    path = ROOT / "tests" / "ansible" / "roles.yml"
    done = site.ansible("ansible-playbook", path, "--limit", limit, "--extra-vars", told, *words, check=False,
                        ANSIBLE_CONFIG=str(ROOT / "ansible" / "ansible.cfg"), ANSIBLE_NOCOLOR="1")  # fmt: skip
    found = {host: Recap(int(changed), int(gone) + int(failed))
             for host, changed, gone, failed in _RECAP.findall(done.stdout)}  # fmt: skip
    return Told(done.stdout + done.stderr, found)


def applied(site: Site, *roles: str, limit: str = "all", words: tuple[str, ...] = (), **variables: Any) -> Told:
    told = told_by(site, *roles, limit=limit, words=words, **variables)
    assert told.recaps, told.text
    assert not any(recap.failed for recap in told.recaps.values()), told.text[-6000:]
    return told


def state(site: Site, host: str) -> list[str]:
    """Files, packages and units of a machine."""
    return site.run(host, _STATE.format(" -o ".join(f"-path {path}" for path in _VOLATILE))).splitlines()
