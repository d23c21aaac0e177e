"""Kernel parameters are in force after each run, also where an earlier one wrote them and went no further."""

from pathlib import Path

import yaml

from tests.ansible import local
from tests.stack.bases import ROOT

BASE = ROOT / "ansible" / "roles" / "base"
WANTED = {"fs.a": 1024, "fs.b": 5}
# A kernel whose parameters lie in files.
SYSCTL = """cd {0}; case $1 in
--values) shift; for name; do cat "$name"; done;;
--load) echo "$2" >>loaded; grep = "$2" | while read -r name _ value; do echo "$value" >"$name"; done;;
esac"""


def ran(folder: Path, **wanted: int) -> str:
    """The role's tasks, where that kernel is this machine's."""
    program = local.program(folder / "bin", "sysctl", SYSCTL.format(folder)) / "sysctl"
    text = (BASE / "tasks" / "sysctl.yml").read_text().replace("/usr/sbin/sysctl", str(program))
    text = text.replace("/etc/sysctl.d", str(folder)).replace("sysctl.conf.j2", str(BASE / "templates/sysctl.conf.j2"))
    tasks = yaml.safe_load(text.replace("    owner: root\n    group: root\n", ""))
    done = local.played(folder, [*local.variables("base"), *tasks], base_sysctl=wanted or WANTED)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def kernel(folder: Path, **values: int) -> None:
    for name, value in values.items():
        (folder / f"fs.{name}").write_text(f"{value}\n")


def test_what_was_written_and_never_applied_is_applied(tmp_path: Path) -> None:
    kernel(tmp_path, a=128, b=9)
    ran(tmp_path)
    kernel(tmp_path, a=128)
    assert "changed=1 " in ran(tmp_path)
    assert [(tmp_path / name).read_text() for name in WANTED] == ["1024\n", "9\n"]


def test_what_is_high_enough_is_left_alone(tmp_path: Path) -> None:
    kernel(tmp_path, a=2048, b=9)
    ran(tmp_path)
    assert "changed=0 " in ran(tmp_path)
    assert not (tmp_path / "loaded").exists()
