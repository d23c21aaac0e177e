"""The machines of an inventory: reached, set up, verified.

Site(Path("hosts.yml")).play("site.yml")
"""

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from deploy import inventory as inventories
from deploy import say, ways
from deploy.cloud import ROOT, SSH, need
from deploy.errors import DeployError
from deploy.progress import ENVIRON, Failure, Progress, some
from deploy.run import ask, follow

ANSIBLE = ROOT / "ansible"
REACH = Path(__file__).with_name("reach.yml")
TOOLS = Path(sys.executable).parent
PLAY_SECONDS, ASK_SECONDS, PAUSE_SECONDS = 5400, 120, 5
# Those of a cloud boot first; one's own are there, or are not.
CLOUD_SECONDS, OWN_SECONDS = 600, 60
# Who is asked again anyway need not be asked thrice.
ONCE = {"ANSIBLE_TIMEOUT": "20", "ANSIBLE_SSH_RETRIES": "0"}


class Site:
    def __init__(self, inventory: Path) -> None:
        if not inventory.exists():
            raise DeployError(f"INVENTORY: there is no file {inventory}; ansible/inventory/example/hosts.yml shows one")
        self.inventory = inventory.resolve()
        self._told = self._inventory()
        self._check()
        # Who did not let us in: the others go on without them.
        self.absent: list[Failure] = []

    @property
    def machines(self) -> list[str]:
        """Those that are ours to set up. An inventory may have others."""
        return sorted({host for group in inventories.GROUPS for host in self._hosts(group)})

    @property
    def monitor(self) -> str:
        return next(self._hosts("monitoring"))

    def variables(self, host: str) -> dict[str, Any]:
        found: dict[str, Any] = self._told["_meta"]["hostvars"].get(host, {})
        return found

    def price(self) -> float | None:
        """Dollars an hour of all, where each is known."""
        prices = [self.variables(host).get("stack_node_price") for host in self.machines]
        try:
            return sum(float(price) for price in prices)
        except (TypeError, ValueError):
            return None

    def wait(self, seconds: float, *, booting: bool = False) -> None:
        """Until each answers by SSH. Who does not, or cannot by waiting, is left out; the one of Prometheus ends it."""
        self._need_ssh()
        for text in inventories.others(self._told):
            say.line(text)
        end, left, late = time.monotonic() + seconds, self.machines, False
        while left and not late:
            silent, late = self._silent(left), time.monotonic() > end
            if answering := sorted(set(left) - {one.host for one in silent}):
                say.line(f"{some(answering)}: answering")
            self._leave_out([one for one in silent if late or ways.lasts(one.reason, booting=booting)])
            left = sorted({one.host for one in silent} - {one.host for one in self.absent})
            if left:
                say.line(f"{some(left)}: not yet, for {max(0, end - time.monotonic()):.0f} s more")
                time.sleep(PAUSE_SECONDS)

    def play(self, name: str) -> None:
        limit = [f"--limit={','.join(self._present())}"] if self.absent else []
        progress, status = self._played(ANSIBLE / name, *limit, seconds=PLAY_SECONDS)
        progress.tell()
        if status:
            raise DeployError("\n".join([self._broken(name, progress.failures()), *self._left_out()]))

    def verify(self) -> None:
        """All that answer: each is asked once whether it does."""
        self._need_ssh()
        silent = self._silent(self._present())
        self.absent += silent
        for one in silent:
            say.line(f"{one.host}: not verified, it did not let us in: {ways.why(one.reason)}")
        if self._present() and self._verified():
            told = "verify: something is not as it should be; each line above says what, where and what to do"
            raise DeployError("\n".join([told, *self._left_out()]))

    def complete(self) -> None:
        """The last word where somebody was left out."""
        if self.absent:
            raise DeployError("\n".join(self._left_out()))

    def _verified(self) -> int:
        words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(ROOT / "tests" / "infra"),
                 f"--hosts={','.join(self._present())}", "--connection=ansible",
                 f"--ansible-inventory={self.inventory}"]  # fmt: skip
        # Each line as it comes, though it is said into a file.
        environ = self._environ() | {"PYTHONUNBUFFERED": "1"}
        return follow(words, folder=ROOT, seconds=PLAY_SECONDS, environ=environ, hear=say.quote)

    def _present(self) -> list[str]:
        return sorted(set(self.machines) - {one.host for one in self.absent})

    def _leave_out(self, silent: Sequence[Failure]) -> None:
        self.absent += silent
        if silent and self.monitor not in self._present():
            needed = f"{self.monitor} is to have Prometheus, without it nothing is set up."
            raise DeployError("\n".join([*self._left_out(), needed]))
        for one in silent:
            say.line(f"{one.host}: left out, the others go on: {ways.why(one.reason)}")

    def _left_out(self) -> list[str]:
        if not self.absent:
            return []
        told = [f"  {one.host}: {ways.why(one.reason)}\n    by hand: {ways.ssh(self, one.host)}" for one in self.absent]
        return [
            f"SSH: {some([one.host for one in self.absent])} did not let us in:", *told,
            f"Mend it and run this again, or take it out of {self.inventory.name}. REACH_SECONDS=1200 where machines "
            "take longer to boot.",
        ]  # fmt: skip

    def _silent(self, hosts: Sequence[str]) -> list[Failure]:
        """Asked once, side by side: who does not answer, and why."""
        progress, status = self._played(REACH, f"--limit={','.join(hosts)}", quiet=True,
                                        seconds=ASK_SECONDS + 10 * len(hosts))  # fmt: skip
        if status and not progress.failures():
            raise DeployError(self._broken("SSH", []))
        return progress.failures()

    def _played(self, playbook: Path, *words: str, seconds: float, quiet: bool = False) -> tuple[Progress, int]:
        progress = Progress(quiet=quiet)
        command = [str(TOOLS / "ansible-playbook"), "-i", str(self.inventory), str(playbook), *words]
        environ = self._environ() | ENVIRON | (ONCE if quiet else {})
        status = follow(command, folder=ROOT, seconds=seconds, environ=environ, hear=progress.hear, idle=progress.idle)
        return progress, status

    def _broken(self, name: str, failures: Sequence[Failure]) -> str:
        told = [f"  {one.host}, at {one.step}:\n    {_indented(one.reason)}" for one in failures]
        by_hand = [f"  {one.host} by hand: {ways.ssh(self, one.host)}" for one in failures if one.unreachable]
        those = f"it failed on {some({one.host for one in failures})}" if failures else "Ansible ended before any step"
        return "\n".join([
            f"{name}: {those}:" if failures else f"{name}: {those}, the log says why", *told, *by_hand,
            "Mend it and run this again: what is done stays done.",
        ])  # fmt: skip

    def _hosts(self, group: str) -> Iterator[str]:
        return inventories.hosts(self._told, group)

    def _check(self) -> None:
        inventories.check(self._told, self.inventory.name)
        monitoring = sorted(set(self._hosts("monitoring")))
        if not monitoring:
            raise DeployError(f"{self.inventory.name}: the group monitoring has no host: name the one for Prometheus")
        if len(monitoring) > 1:
            raise DeployError(
                f"{self.inventory.name}: the group monitoring has several hosts ({some(monitoring)}), one Prometheus "
                "is enough: keep one"
            )
        ways.pages(self)

    def _need_ssh(self) -> None:
        connections = {self.variables(host).get("ansible_connection", "ssh") for host in self.machines}
        if connections - {"local"}:
            need({"ssh": SSH})

    def _inventory(self) -> dict[str, Any]:
        inventories.need_yaml(self.inventory)
        words = [str(TOOLS / "ansible-inventory"), "-i", str(self.inventory), "--list"]
        done = ask(words, folder=ROOT, seconds=ASK_SECONDS, environ=self._environ())
        if done.returncode:
            raise inventories.refusal(self.inventory, done.stderr)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def _environ(self) -> dict[str, str]:
        # By itself Ansible only warns of a file that it cannot read, and goes on without hosts.
        return {**os.environ, "ANSIBLE_CONFIG": str(ANSIBLE / "ansible.cfg"), "PATH": f"{TOOLS}:{os.environ['PATH']}",
                "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true", "ANSIBLE_NOCOLOR": "1"}  # fmt: skip


def _indented(text: str) -> str:
    return text.strip().replace("\n", "\n    ")
