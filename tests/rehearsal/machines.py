"""Machines for the rehearsal: containers with systemd as their first process, an sshd and, where wanted, a Docker
Engine of their own, on a network of their own. All of it is gone afterwards.

    with rehearsal(client, {"gpu1": Machine("bookworm", gpus=2), "mon": Machine("trixie")}) as site:
        site.ansible("ansible", "all", "-m", "ping")
        site.run("mon", "docker ps")
        site.scenarios["gpu1"].set(0, "temperature", 95)
"""

import ipaddress
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fakenvml import Scenario
from tests.rehearsal import containers, gpus
from tests.rehearsal.archives import FOLDER, archive
from tests.rehearsal.images import USER, image
from tests.stack.support import wait_for

START_SECONDS = 90
_IMAGES = "/mnt/images"
_UID = 1000


@dataclass(frozen=True)
class Machine:
    release: str = "bookworm"
    gpus: int = 0
    # NVIDIA's container toolkit, where there are GPUs.
    toolkit: bool = True
    # An engine that is there already, which no package manager knows of.
    engine: bool = False
    sudo: bool = True
    # In the inventory; where none is given gpu_nodes or monitoring, by whether it has GPUs.
    groups: tuple[str, ...] = ()
    variables: Mapping[str, Any] = field(default_factory=dict)
    # Disks of their own: {"/var/lib/docker": "size=300m"}
    tmpfs: Mapping[str, str] = field(default_factory=dict)

    def is_in(self, group: str) -> bool:
        return group in (self.groups or ("gpu_nodes" if self.gpus else "monitoring",))


class Site:
    """The machines by their names, and how to reach them. `key` and `known_hosts` are SSH's, `USER` is who logs in."""

    def __init__(self, client: Any, network: Any, folder: Path) -> None:
        self._client, self._network, self.folder = client, network, folder
        self._machines: dict[str, Machine] = {}
        self._containers: dict[str, Any] = {}
        self._addresses = ipaddress.ip_network(network.attrs["IPAM"]["Config"][0]["Subnet"]).hosts()
        # The first is this machine's own.
        next(self._addresses)
        self.addresses: dict[str, str] = {}
        self.scenarios: dict[str, Scenario] = {}
        self.inventory, self.key, self.known_hosts = folder / "hosts.yml", folder / "id", folder / "known_hosts"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.key], check=True, timeout=30)

    def add(self, machines: Mapping[str, Machine]) -> None:
        """They start side by side."""
        images = {one: image(self._client, *one) for one in {(each.release, each.engine) for each in machines.values()}}
        for host, machine in machines.items():
            self._create(host, machine, images[machine.release, machine.engine])
        with ThreadPoolExecutor() as pool:
            list(pool.map(self.start, machines))
        for host in machines:
            with self.known_hosts.open("a") as file:
                file.writelines(f"{self.addresses[host]} {key}\n" for key in self._host_keys(host))
        self._write()

    def _host_keys(self, host: str) -> list[str]:
        """A busy engine loses what a command says now and then, and every machine has keys."""
        for _ in range(10):
            if told := self.run(host, "cat /etc/ssh/ssh_host_*_key.pub"):
                return [" ".join(key.split()[:2]) for key in told.splitlines()]
        raise AssertionError(f"{host} told no host key")

    def remove(self, host: str) -> None:
        """As if it had never been."""
        containers.remove(self._containers.pop(host))
        for known in (self._machines, self.addresses, self.scenarios):
            known.pop(host, None)
        self._write()

    def run(self, host: str, command: str, *, check: bool = True, seconds: int = 120) -> str:
        """What a command of root's shell says, on standard output and error."""
        status, told = self.ended(host, command, seconds=seconds)
        assert status == 0 or not check, f"{host}: {command}: ended with {status}: {told[-3000:]}"
        return told

    def ended(self, host: str, command: str, *, seconds: int = 120) -> tuple[int, str]:
        """How it ended, and what it said."""
        words = ["timeout", "--kill-after=5", str(seconds), "bash", "-c", command]
        status, told = self._containers[host].exec_run(words)
        return status, told.decode(errors="replace")

    def shared(self, host: str) -> Path:
        """A folder that the machine sees as gpus.SCENARIO, and cannot write to."""
        return self.folder / "shared" / host

    def stop(self, host: str) -> None:
        self._containers[host].stop(timeout=30)

    def start(self, host: str) -> None:
        """Until all that starts with it has started."""
        self._containers[host].start()
        asked = 'systemctl is-active ssh && test -z "$(systemctl list-jobs --no-legend)"'
        why = "systemctl list-jobs; systemctl --failed; journalctl -n 40"
        wait_for(lambda: self.ended(host, asked)[0] == 0, START_SECONDS, tell=lambda: self.run(host, why, check=False))

    def reboot(self, host: str) -> None:
        self.stop(host)
        self.start(host)

    def load(self, host: str, images: Iterable[str]) -> None:
        """Into the machine's own engine, where none can be pulled."""
        made = archive(self._client, images)
        self.run(host, f"docker load --quiet --input {_IMAGES}/{made.name}", seconds=300)

    def ansible(self, program: str, *words: str | Path, check: bool = True, seconds: int = 600,
                **environ: str) -> "subprocess.CompletedProcess[str]":  # fmt: skip
        """ansible, ansible-playbook and so on, with this inventory."""
        command = [Path(sys.executable).with_name(program), "-i", self.inventory, *words]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=seconds,
                              env={**os.environ, **environ})  # fmt: skip
        assert done.returncode == 0 or not check, f"{words}: {done.stdout[-6000:]}{done.stderr[-3000:]}"
        return done

    def close(self) -> None:
        for container in self._containers.values():
            containers.remove(container)

    def _create(self, host: str, machine: Machine, image_name: str) -> None:
        shared = self.shared(host)
        shared.mkdir(parents=True, exist_ok=True)
        FOLDER.mkdir(parents=True, exist_ok=True)
        files = [(f"home/{USER}/.ssh/authorized_keys", 0o600, self.key.with_suffix(".pub").read_bytes())]
        if machine.gpus:
            self.scenarios[host] = Scenario(shared / "scenario", gpus.scenario(host, machine.gpus))
            files += gpus.files(machine.gpus, toolkit=machine.toolkit)
        if not machine.sudo:
            files.append((f"etc/sudoers.d/{USER}", 0o440, b""))
        self._machines[host], self.addresses[host] = machine, str(next(self._addresses))
        self._containers[host] = containers.created(
            self._client, image_name, host, self.addresses[host], self._network,
            shared={shared: gpus.SCENARIO, FOLDER: _IMAGES}, tmpfs=machine.tmpfs)  # fmt: skip
        self._containers[host].put_archive("/", containers.packed(files, _UID))

    def _write(self) -> None:
        """As a user would write it; JSON is YAML too."""
        options = f"-o UserKnownHostsFile={self.known_hosts} -o StrictHostKeyChecking=yes -o IdentitiesOnly=yes"
        told: dict[str, Any] = {"all": {"vars": {
            "ansible_user": USER, "ansible_ssh_private_key_file": str(self.key),
            "ansible_ssh_common_args": options}}}  # fmt: skip
        named = {name for machine in self._machines.values() for name in machine.groups}
        for group in sorted({"gpu_nodes", "monitoring", *named}):
            told[group] = {"hosts": {host: {"ansible_host": self.addresses[host], **machine.variables}
                                     for host, machine in self._machines.items() if machine.is_in(group)}}  # fmt: skip
        # JSON is YAML too.
        self.inventory.write_text(json.dumps(told, indent=2))


@contextmanager
def rehearsal(client: Any, machines: Mapping[str, Machine]) -> Iterator[Site]:
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as folder, containers.network(client) as network:
        site = Site(client, network, Path(folder))
        try:
            site.add(machines)
            yield site
        finally:
            site.close()
