"""The machines of an inventory: reached, set up, verified; and the ways to what runs on them.

Site(Path("hosts.yml")).play("site.yml")
"""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deploy import say
from deploy.cloud import ROOT
from deploy.errors import DeployError

ANSIBLE = ROOT / "ansible"
TOOLS = Path(sys.executable).parent
REACH_SECONDS, PLAY_SECONDS, ASK_SECONDS = 600, 5400, 120
PORTS = {"Grafana": 3000, "Prometheus": 9090, "Alertmanager": 9093, "collector": 8080}


class Site:
    def __init__(self, inventory: Path) -> None:
        if not inventory.is_file():
            raise DeployError(f"INVENTORY: there is no file {inventory}; ansible/inventory/example/hosts.yml shows one")
        self.inventory = inventory.resolve()
        self._told = self._inventory()

    def hosts(self, group: str) -> list[str]:
        return sorted(set(self._hosts(group)))

    def _hosts(self, group: str) -> Iterator[str]:
        told = self._told.get(group, {})
        yield from told.get("hosts", [])
        for child in told.get("children", []):
            yield from self._hosts(child)

    def check(self) -> None:
        if not self.hosts("monitoring"):
            raise DeployError(f"{self.inventory.name}: the group monitoring has no host: name the one for Prometheus")
        if len(self.hosts("monitoring")) > 1:
            raise DeployError(
                f"{self.inventory.name}: the group monitoring has several hosts, one Prometheus is enough"
            )

    def wait(self) -> None:
        """Until each answers by SSH."""
        status = self._follow("ansible", "all", "--one-line", "-m", "ansible.builtin.wait_for_connection",
                              "-a", f"timeout={REACH_SECONDS} sleep=5 connect_timeout=10",
                              seconds=REACH_SECONDS + 120)  # fmt: skip
        if status:
            raise DeployError(
                f"SSH: not every host answers within {REACH_SECONDS} s, see above. Try one by hand: "
                f"{self.ssh(self.hosts('all')[0])}"
            )

    def play(self, name: str) -> None:
        if self._follow("ansible-playbook", str(ANSIBLE / name), seconds=PLAY_SECONDS):
            raise DeployError(
                f"{name}: a step failed; the lines that begin with `fatal:` name the host, the step and the fix. "
                "Mend it and run this again: what is done stays done"
            )

    def verify(self) -> None:
        words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(ROOT / "tests" / "infra"), "--hosts=all",
                 "--connection=ansible", f"--ansible-inventory={self.inventory}"]  # fmt: skip
        if subprocess.run(words, cwd=ROOT, env=self._environ(), check=False, timeout=PLAY_SECONDS).returncode:
            raise DeployError(
                "verify: something is not as it should be; each line above says what, where and what to do"
            )

    def ssh(self, host: str, *words: str) -> str:
        """The command that logs in there, to be typed in a shell."""
        told = self._variables(host)
        key = told.get("ansible_ssh_private_key_file") or told.get("ansible_private_key_file")
        port = told.get("ansible_port") or told.get("ansible_ssh_port")
        user, address = told.get("ansible_user"), told.get("ansible_host", host)
        parts = ["ssh", *words, told.get("ansible_ssh_common_args", ""), told.get("ansible_ssh_extra_args", ""),
                 f"-i {shlex.quote(key)}" if key else "", f"-p {port}" if port else "",
                 f"{user}@{address}" if user else address]  # fmt: skip
        return " ".join(part for part in parts if part)

    def tunnel(self) -> str:
        return self.ssh(self.hosts("monitoring")[0], "-N", *(f"-L {port}:127.0.0.1:{port}" for port in PORTS.values()))

    def price(self) -> float | None:
        """Dollars an hour of all, where each is known."""
        prices = [self._variables(host).get("stack_node_price") for host in self.hosts("all")]
        known = [float(price) for price in prices if price not in (None, "")]
        return sum(known) if known and len(known) == len(prices) else None

    def _variables(self, host: str) -> dict[str, Any]:
        found: dict[str, Any] = self._told["_meta"]["hostvars"].get(host, {})
        return found

    def _inventory(self) -> dict[str, Any]:
        words = [str(TOOLS / "ansible-inventory"), "-i", str(self.inventory), "--list"]
        done = subprocess.run(words, check=False, cwd=ROOT, env=self._environ(), capture_output=True, text=True,
                              timeout=ASK_SECONDS)  # fmt: skip
        if done.returncode:
            raise DeployError(f"INVENTORY: {self.inventory} is no inventory\n{done.stderr.strip()[-2000:]}")
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def _follow(self, program: str, *words: str, seconds: float) -> int:
        command = ["timeout", "--kill-after=30", str(int(seconds)), str(TOOLS / program), "-i", str(self.inventory)]
        return subprocess.run([*command, *words], cwd=ROOT, env=self._environ(), check=False).returncode

    def _environ(self) -> dict[str, str]:
        # By itself Ansible only warns of a file that it cannot read, and goes on without hosts.
        return {**os.environ, "ANSIBLE_CONFIG": str(ANSIBLE / "ansible.cfg"), "PATH": f"{TOOLS}:{os.environ['PATH']}",
                "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true"}  # fmt: skip


def tell(site: Site) -> None:
    """Where to look, and what it costs."""
    price = site.price()
    say.line(f"Hosts: {', '.join(site.hosts('all'))}")
    say.line("Dashboards: make tunnel, then http://localhost:3000 (user admin)")
    say.line(f"By hand: {site.tunnel()}")
    say.line("Price: " + ("unknown" if price is None else f"${price:.2f} an hour while they run"))
