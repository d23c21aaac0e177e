"""sudo where it asks for a password: the inventory's goes there by standard input, and stands on no command line."""

import json
import re
import shlex
import subprocess
from collections.abc import Mapping
from functools import partial
from typing import Any

NAMES = ("ansible_become_password", "ansible_become_pass")
ASK_SECONDS = 60
MEND = "sudo without a password (NOPASSWD in /etc/sudoers.d), or the right ansible_become_password in the inventory"
_REFUSED = re.compile(r"^sudo: .*password|not in the sudoers|not allowed to", re.MULTILINE)


def prepare(backend: Any, told: Mapping[str, Any]) -> None:
    """`told` is what the inventory says of the machine."""
    if not any(told.get(name) for name in NAMES):
        return
    word = _password(backend.host, backend.ansible_inventory)
    way = backend.ansible_runner.get_host(backend.host).backend
    backend.get_sudo_command = lambda command, _: f"sudo -S -p '' /bin/sh -c {shlex.quote(command)}"
    way.run_local = partial(_run, way, word)


def refusal(done: Any) -> str:
    """What sudo says where it lets nobody in; what the command says is in its output."""
    said = str(getattr(done, "stderr", "") or "").strip()
    return said.splitlines()[-1] if done.rc and not done.stdout.strip() and _REFUSED.search(said) else ""


def _password(host: str, inventory: str) -> str:
    """By Ansible, which opens vaults and puts together what refers to others."""
    named = "{{ ansible_become_password | default(ansible_become_pass, true) }}"
    words = ["ansible", "-i", inventory, host, "-m", "ansible.builtin.debug", "-a", f"msg={named}"]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=ASK_SECONDS)
    try:
        return str(json.loads(done.stdout.partition("=>")[2])["msg"])
    except (ValueError, KeyError) as error:
        raise RuntimeError(f"Ansible cannot read ansible_become_password of {host}") from error


def _run(way: Any, word: str, command: str, *args: str) -> Any:
    done = subprocess.run(way.quote(command, *args), shell=True, check=False, capture_output=True,
                          input=f"{word}\n".encode())  # fmt: skip
    return way.result(done.returncode, command.encode(), done.stdout, done.stderr)
