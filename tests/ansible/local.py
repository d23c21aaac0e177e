"""Parts of roles on this very machine, where what they look at is a folder's: no machine is made for it.

played(folder, [{"ansible.builtin.include_role": {"name": "stack", "tasks_from": "kept"}}], stack_home="/…")
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.stack.bases import ROOT

HOST = "mon"
Environ = Mapping[str, str | None]
NOTHING: Environ = MappingProxyType({})
_CONFIG = ROOT / "ansible" / "ansible.cfg"
PYTHON = sys.executable
# As its inventory would have them. Nobody becomes root here, and nothing outside of the folder is written to.
_VARIABLES = {"ansible_connection": "local", "ansible_python_interpreter": PYTHON, "ansible_become": False}


def played(folder: Path, tasks: list[dict[str, Any]], *words: str, after: Path | None = None, path: Path | None = None,
           inventory: Path | None = None, hosts: str = HOST, environ: Environ = NOTHING,
           **variables: Any) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """`after` is a playbook that comes first. A program that lies in `path` is found before this machine's own. What
    `environ` says is None is not set."""
    playbook, usual = folder / "play.yml", folder / "hosts.json"
    before = [{"import_playbook": str(after)}] if after else []
    playbook.write_text(json.dumps([*before, {"hosts": hosts, "gather_facts": False, "tasks": tasks}]))
    usual.write_text(json.dumps({"monitoring": {"hosts": {HOST: _VARIABLES}}}))
    surroundings = {**os.environ, "ANSIBLE_CONFIG": str(_CONFIG), "ANSIBLE_NOCOLOR": "1", **environ}
    if path:
        surroundings["PATH"] = f"{path}:{surroundings['PATH']}"
    command = [Path(PYTHON).with_name("ansible-playbook"), "-i", inventory or usual, playbook, "--extra-vars",
               json.dumps(variables), *words]  # fmt: skip
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120, cwd=folder,
                          env={name: value for name, value in surroundings.items() if value is not None})  # fmt: skip


def role(name: str, entry: str = "main") -> dict[str, Any]:
    return {"ansible.builtin.include_role": {"name": name, "tasks_from": entry, "public": True}}


def shown(expression: str, into: Path) -> dict[str, Any]:
    """What an expression comes to, as JSON."""
    return {"ansible.builtin.copy": {"content": f"{{{{ {expression} | to_json }}}}", "dest": str(into)}}


def program(folder: Path, name: str, text: str) -> Path:
    """A stand-in of a program, by its shell script; the folder that it lies in."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)
    return folder


def variables(name: str) -> list[dict[str, Any]]:
    """A role's own, and nothing that it does."""
    folder = ROOT / "ansible" / "roles" / name
    return [{"ansible.builtin.include_vars": str(folder / kind / "main.yml")} for kind in ("defaults", "vars")]
