"""A site and the clone that is deployed to it, by the playbooks as they are shipped.

    deployment.play("site.yml").changed  ->  {"gpu1": 0, "gpu2": 0, "mon": 0}

The clone is a copy whose rules wait for seconds where those of the repository wait for minutes.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.deploy import clones
from tests.rehearsal.machines import Site
from tests.stack.bases import ROOT
from tests.stack.support import shortened, wait_for

_RECAP = re.compile(r"^(\S+)\s+: ok=\d+\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.MULTILINE)
_FOLDERS = ("compose", "prometheus", "grafana", "collector", "requirements", "scripts", "ansible", "deploy",
            "terraform/inventory", "tests/infra")  # fmt: skip
_NOT_SHIPPED = shutil.ignore_patterns(".env", ".cache", ".secrets", ".backups", "__pycache__", "*.egg-info", ".ansible")
HOME = "/opt/trainvitals"
PLAY_SECONDS = 900


@dataclass(frozen=True)
class Played:
    text: str
    seconds: float
    changed: dict[str, int]
    failed: dict[str, int]


@dataclass
class Deployment:
    site: Site
    clone: Path
    images: str
    # What the controller's environment says, such as whom alerts go to.
    environ: dict[str, str] = field(default_factory=dict)
    first: Played | None = None
    # What was there on each machine before it was deployed to.
    before: dict[str, set[str]] = field(default_factory=dict)

    def make(self) -> Played:
        """`make deploy`, and its log."""
        # What an inventory may say of all its machines, for Ansible finds it beside that.
        told = self.site.inventory.parent / "group_vars" / "all.yml"
        told.parent.mkdir(exist_ok=True)
        told.write_text(json.dumps(self._variables()))
        begun = time.monotonic()
        command = clones.make("deploy", f"INVENTORY={self.site.inventory}")
        done = subprocess.run(command, cwd=self.clone, check=False, capture_output=True, text=True,
                              timeout=PLAY_SECONDS, stdin=subprocess.DEVNULL,
                              env={**os.environ, **self.environ})  # fmt: skip
        seconds = time.monotonic() - begun
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
        (log,) = (self.clone / ".cache" / "deploy").glob("*.log")
        return Played(done.stdout + done.stderr + log.read_text(), seconds, {}, {})

    def _variables(self) -> dict[str, Any]:
        return {"stack_images_archive": self.images, "docker_source": "distribution"}

    def play(self, playbook: str, *words: str, check: bool = True, inventory: Path | None = None,
             **variables: Any) -> Played:  # fmt: skip
        told = {**self._variables(), **variables}
        folder = self.clone / "ansible"
        command = [Path(sys.executable).with_name("ansible-playbook"), "--inventory", inventory or self.site.inventory,
                   folder / playbook, "--extra-vars", json.dumps(told), *words]  # fmt: skip
        begun = time.monotonic()
        environ = {"ANSIBLE_NOCOLOR": "1", "ANSIBLE_CONFIG": str(folder / "ansible.cfg"), **self.environ}
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PLAY_SECONDS,
                              stdin=subprocess.DEVNULL, env={**os.environ, **environ})  # fmt: skip
        recap = _RECAP.findall(done.stdout)
        played = Played(done.stdout + done.stderr, time.monotonic() - begun,
                        {host: int(changed) for host, changed, _, _ in recap},
                        {host: int(gone) + int(failed) for host, _, gone, failed in recap})  # fmt: skip
        assert done.returncode == 0 or not check, played.text[-8000:]
        return played

    def verified(self) -> "subprocess.CompletedProcess[str]":
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/infra", "--hosts=all",
                 f"--ansible-inventory={self.site.inventory}"]  # fmt: skip
        return subprocess.run(words, cwd=ROOT, check=False, capture_output=True, text=True, timeout=300)

    def prometheus(self, query: str) -> list[dict[str, Any]]:
        address = f"http://127.0.0.1:9090/api/v1/query?query={quote(query)}"
        found: list[dict[str, Any]] = wait_for(lambda: self._asked("mon", address), 10)["data"]["result"]
        return found

    def alertmanager(self, path: str, body: Any = None) -> Any:
        words = f"-H 'Content-Type: application/json' --data {shlex.quote(json.dumps(body))} " if body else ""
        return self._asked("mon", f"{words}http://127.0.0.1:9093/api/v2/{path}")

    def grafana(self, words: str = "") -> str:
        """What the stand-in keeps, asked by the password that the stack made."""
        told = f"curl -sS --user admin:$({HOME}/scripts/stack password) {words} http://127.0.0.1:3000/kept"
        return self.site.run("mon", told)

    def release(self, host: str) -> str:
        return self.site.run(host, f"basename $(readlink {HOME}/current)").strip()

    def instances(self, job: str = "trainvitals", state: str = "== 1") -> set[str]:
        return {one["metric"]["instance"] for one in self.prometheus(f'up{{job="{job}"}} {state}')}

    def _asked(self, host: str, words: str) -> Any:
        status, told = self.site.ended(host, f"curl -sS --fail-with-body --max-time 10 {words}")
        # A busy engine loses what a command said now and then.
        if status or not told:
            raise OSError(told or f"no word from {host}: {words}")
        return json.loads(told)


def copied(folder: Path) -> Path:
    for name in _FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=_NOT_SHIPPED)
    for name in ("Makefile", "pytest.toml", "tests/__init__.py"):
        shutil.copy2(ROOT / name, folder / name)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    for path in (folder / "prometheus" / "rules").glob("*.yml"):
        path.write_text(shortened(path.read_text()))
    return folder
