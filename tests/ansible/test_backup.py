"""What backup.yml packs: the volumes that are there and the journal. A machine that keeps nothing has no archive."""

import subprocess
import tarfile
from pathlib import Path

import yaml

from tests.ansible import local
from tests.stack.bases import ROOT

STACK = ROOT / "ansible" / "roles" / "stack"


def packed(folder: Path, journal: str, *volumes: str) -> "subprocess.CompletedProcess[str]":
    """backup.sh, of these volumes, where Docker and Compose do nothing."""
    for volume in volumes:
        data = folder / "docker" / "volumes" / f"trainvitals_{volume}" / "_data"
        data.mkdir(parents=True)
        (data / "kept").write_text(volume)
    (folder / "home" / "current" / "compose").mkdir(parents=True)
    path = local.program(folder / "bin", "docker", f"[ $1 != info ] || echo {folder}/docker")
    words = [STACK / "files" / "backup.sh", folder / "home", journal, folder / "a.tar.gz"]
    return subprocess.run(words, check=False, capture_output=True, text=True, timeout=60,
                          env={"PATH": f"{path}:/usr/sbin:/usr/bin:/sbin:/bin"})  # fmt: skip


def test_volumes_and_journal_are_packed(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    done = packed(tmp_path, str(tmp_path / "journal"), "grafana-data")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    with tarfile.open(tmp_path / "a.tar.gz") as archive:
        assert {"volumes/grafana-data/kept", "journal"} <= set(archive.getnames())


def test_where_nothing_is_kept_that_is_said_and_no_disk_is_looked_through(tmp_path: Path) -> None:
    local.program(tmp_path / "bin", "du", f"touch {tmp_path}/looked")
    done = packed(tmp_path, "-")
    assert (done.returncode, done.stdout) == (0, "nothing is kept here\n"), done.stderr
    assert not (tmp_path / "a.tar.gz").exists()
    assert not (tmp_path / "looked").exists()


def test_nothing_is_fetched_from_there(tmp_path: Path) -> None:
    (pack,) = [task for task in yaml.safe_load((STACK / "tasks" / "backup.yml").read_text()) if "block" in task]
    tasks = pack["block"][1:]
    done = local.played(tmp_path, tasks, stack_packed={"stdout": "nothing is kept here\n"},
                        stack_backup_dir=str(tmp_path / "kept"), stack_folder={"path": "/nowhere"},
                        stack_archive=str(tmp_path / "kept" / "a.tar.gz"))  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert "mon: nothing is kept there" in done.stdout
