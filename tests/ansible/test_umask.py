"""A machine whose umask lets nobody else in: the services can read their release all the same, and a run mends it."""

import subprocess
from pathlib import Path

import yaml

from tests.ansible import local
from tests.ansible.test_site_secrets import loaded
from tests.stack.bases import ROOT

MAIN = ROOT / "ansible" / "roles" / "stack" / "tasks" / "main.yml"


def brought(folder: Path, umask: int) -> Path:
    """The release, unpacked as unarchive does."""
    release = loaded("stack_release")
    archive, home = folder / "a.tar.gz", folder / "release"
    archive.write_bytes(release.packed(ROOT, release.files(ROOT, release.SHIPPED), "source"))
    home.mkdir()
    subprocess.run(["tar", "--extract", "-p", "-zf", archive, "-C", home], check=True, timeout=60, umask=umask)
    return home


def closed(home: Path) -> list[str]:
    return [str(path) for path in home.rglob("*") if path.stat().st_mode & 0o044 != 0o044]


def test_a_release_brings_the_modes_of_its_folders(tmp_path: Path) -> None:
    home = brought(tmp_path, 0o077)
    assert closed(home) == []
    assert (home / "prometheus" / "rules").stat().st_mode & 0o777 == 0o755


def test_a_run_opens_what_an_earlier_one_left_closed_and_then_changes_nothing(tmp_path: Path) -> None:
    home = brought(tmp_path, 0o022)
    for name in ("prometheus", "prometheus/rules", "compose"):
        (home / name).chmod(0o700)
    (home / "prometheus" / "web").mkdir(mode=0o750)
    (task,) = [
        task for task in yaml.safe_load(MAIN.read_text()) if task["name"] == "Let the services enter its folders"
    ]
    for changed in (1, 0):
        done = local.played(tmp_path, [task], stack_release_dir=str(home))
        assert f"changed={changed} " in done.stdout, done.stdout
    assert closed(home) == [str(home / "prometheus" / "web")]
