"""The ways to what runs on a site: the commands that people type, the addresses that they open.

ssh(site, "mon")  ->  ssh ubuntu@10.0.0.10
"""

import json
import re
import shlex
import socket
import subprocess
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from deploy import money, say
from deploy.cloud import ROOT
from deploy.errors import DeployError

if TYPE_CHECKING:
    from deploy.site import Site

PAGES = json.loads((ROOT / "terraform/inventory/pages.json").read_text())
LAST_PORT = 65535
HOME = "/opt/trainvitals"
VOLUME = "trainvitals_grafana-password"
# What ssh says, and what mends it.
FIXES = {
    "Permission denied": "it lets this key or user not in: see ansible_user and ansible_ssh_private_key_file, "
    "ssh-copy-id, and ssh-add for a key with a passphrase",
    "Host key verification failed": "this machine does not know its key: log in once by hand and compare it, or "
    "ssh-keyscan -H its address >>~/.ssh/known_hosts",
    "REMOTE HOST IDENTIFICATION HAS CHANGED": "its key is another: if it was made anew, ssh-keygen -R its address",
    "Could not resolve hostname": "no such name: see ansible_host",
    "Connection refused": "sshd does not listen there: see ansible_host and ansible_port",
    "timed out": "nothing answers at that address: is it on, and does a firewall let this machine in?",
    "UNKNOWN port": "the way through the cloud was closed, by hand it says why: is your login there still good, may "
    "you go that way, and has the machine booted?",
}
# No waiting mends these; a machine that boots may learn only then whom it is to let in.
LASTING = ("Host key verification failed", "REMOTE HOST IDENTIFICATION HAS CHANGED")
LASTING_ONCE_BOOTED = "Permission denied"


def ssh(site: "Site", host: str, *words: str) -> str:
    """The command that logs in there, to be typed in a shell."""
    told = site.variables(host)
    key = told.get("ansible_ssh_private_key_file") or told.get("ansible_private_key_file")
    port = told.get("ansible_port") or told.get("ansible_ssh_port")
    user, address = told.get("ansible_user"), told.get("ansible_host", host)
    parts = ["ssh", *words, told.get("ansible_ssh_common_args", ""), told.get("ansible_ssh_extra_args", ""),
             f"-i {shlex.quote(key)}" if key else "", f"-p {port}" if port else "",
             f"{user}@{address}" if user else address]  # fmt: skip
    return " ".join(part for part in parts if part)


def why(reason: str) -> str:
    """The last of what ssh said, and what mends it."""
    said = (reason.strip().splitlines() or ["it does not answer"])[-1]
    fix = next((fix for words, fix in FIXES.items() if words in reason), "")
    return f"{said}: {fix}" if fix else said


def lasts(reason: str, *, booting: bool) -> bool:
    return any(words in reason for words in LASTING) or (not booting and LASTING_ONCE_BOOTED in reason)


def tunnel(site: "Site") -> str:
    """Not at all rather than without one of the pages."""
    roads = (f"-L {port}:127.0.0.1:{port}" for port in pages(site).values())
    return ssh(site, site.monitor, "-N", "-o ExitOnForwardFailure=yes", *roads)


def pages(site: "Site") -> dict[str, Any]:
    """Each page's port, there and here: links in messages name it."""
    knobs = site.variables(site.monitor).get("stack_env") or {}
    # What only Ansible can put together is named as it stands.
    said = knobs if isinstance(knobs, dict) else dict.fromkeys((page["knob"] for page in PAGES), knobs)
    _need_ports({page["knob"]: said.get(page["knob"], page["port"]) for page in PAGES}, site.monitor)
    return {page["name"]: said.get(page["knob"], page["port"]) for page in PAGES}


def _need_ports(ports: dict[str, Any], host: str) -> None:
    knobs: dict[str, str] = {}
    for knob, port in ports.items():
        told = str(port)
        if "{{" in told:
            continue
        if not re.fullmatch(r"[1-9][0-9]{0,4}", told) or int(told) > LAST_PORT:
            raise DeployError(f"{host}: stack_env has {knob}: {told}, which is no port: take a whole number from 1 to "
                              f"{LAST_PORT}")  # fmt: skip
        if told in knobs:
            raise DeployError(f"{host}: stack_env gives {knobs[told]} and {knob} one port, {told}: take two")
        knobs[told] = knob


def open_tunnel(site: "Site") -> None:
    """Until Ctrl-C."""
    command = tunnel(site)
    if "{{" in command:
        raise DeployError(f"{site.monitor}: only Ansible can read how it is reached, write it out: {command}")
    for name, port in pages(site).items():
        _need_free(name, int(port))
    say.line(command)
    for text in _pages(site):
        say.line(text)
    say.line("Ctrl-C ends it.")
    try:
        status = subprocess.run(shlex.split(command), check=False, cwd=ROOT).returncode
    except KeyboardInterrupt:
        return
    if status:
        raise DeployError(f"the tunnel broke, ssh ended with {status} and says why above: run this again")


def tell(site: "Site", chosen: str) -> None:
    """The last words: where to look, how to get in, what it costs, how it goes on. `chosen`: CLOUD=gcp."""
    say.line(f"Machines: {', '.join(f'{host} ({_address(site, host)})' for host in site.machines)}")
    say.line(money.rate(site.price()))
    say.line(f"Dashboards: make tunnel {chosen}, leave it running, then")
    for text in _pages(site):
        say.line(f"  {text}")
    say.line(f"Grafana's password: {password(site)}")
    say.line(f"  kept on {site.monitor} as the file password of Docker's volume {VOLUME}")
    say.line(f"The tunnel by hand: {tunnel(site)}")
    say.line(f"Look again whether all is well: make verify {chosen}")
    say.line(f"Take it down: {_down(chosen)}")


def password(site: "Site") -> str:
    home = site.variables(site.monitor).get("stack_home", HOME)
    return f"{ssh(site, site.monitor)} sudo {home}/scripts/stack password"


def _pages(site: "Site") -> Iterator[str]:
    for name, port in pages(site).items():
        yield f"{name}: http://localhost:{port}{' (user admin)' if name == 'Grafana' else ''}"
    if public := site.variables(site.monitor).get("stack_public_name"):
        yield f"Grafana without a tunnel: https://{public}"


def _address(site: "Site", host: str) -> str:
    told = site.variables(host)
    return str(told.get("stack_address") or told.get("ansible_host") or host)


def _down(chosen: str) -> str:
    name, _, value = chosen.partition("=")
    return f"make destroy {chosen}" if name == "CLOUD" else removal(value)


def removal(inventory: str) -> str:
    return f".venv/bin/ansible-playbook -i {inventory} ansible/remove.yml"


def _need_free(name: str, port: int) -> None:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError as error:
        raise DeployError(
            f"port {port} of this machine, for {name}, is taken: end what listens there; a stack of its own ends by "
            "make down"
        ) from error
