"""restore.yml overwrites what is there, so it says what and asks; where nobody can answer it stops."""

import io
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.ansible import local
from tests.stack.bases import ROOT

ARCHIVES = ("mon-20260101T000000Z.tar.gz", "mon-20260301T000000Z.tar.gz", "monitor-20270101T000000Z.tar.gz")


def asked(folder: Path, *, archives: tuple[str, ...] = ARCHIVES, **variables: Any) -> str:
    """As far as its first play goes; nobody is at the keyboard."""
    for name in archives:
        (folder / name).touch()
    plays = (ROOT / "ansible" / "restore.yml").read_text().partition("\n- name: Put back")[0]
    (folder / "ask.yml").write_text(plays)
    done = local.played(folder, [{"ansible.builtin.debug": {"msg": "GOES ON"}}], after=folder / "ask.yml",
                        stack_backup_dir=str(folder), **variables)  # fmt: skip
    return " ".join(done.stdout.split())


def test_without_an_answer_it_stops_and_says_what_would_be_overwritten(tmp_path: Path) -> None:
    told = asked(tmp_path)
    assert "GOES ON" not in told
    assert "Nothing was restored. Readings, silences, dashboards' changes and passwords are overwritten" in told
    assert f"mon by {ARCHIVES[1]}." in told
    assert "stack_restore_confirmed=true" in told


@pytest.mark.parametrize("word", [True, "true"])
def test_confirmed_beforehand_it_goes_on(tmp_path: Path, word: object) -> None:
    assert "GOES ON" in asked(tmp_path, stack_restore_confirmed=word)


def test_without_an_archive_it_stops_before_it_asks(tmp_path: Path) -> None:
    told = asked(tmp_path, archives=(), stack_restore_confirmed=True)
    assert "mon: there is no archive" in told
    assert "GOES ON" not in told


def restored(folder: Path, free_mib: int) -> "subprocess.CompletedProcess[str]":
    """restore.sh, on a disk with so much room, where Docker and Compose do nothing."""
    data = folder / "docker" / "volumes" / "trainvitals_grafana-data" / "_data"
    data.mkdir(parents=True)
    (data / "now").write_text("now")
    kept = folder / "volumes" / "grafana-data"
    kept.mkdir(parents=True)
    (kept / "then").write_bytes(bytes(3 << 20))
    (folder / "journal" / "run").mkdir(parents=True)
    (folder / "journal" / "run" / "a").write_text("then")
    subprocess.run(["tar", "-czf", folder / "a.tar.gz", "-C", folder, "volumes", "journal"], check=True, timeout=60)
    shutil.copy(ROOT / "ansible/roles/stack/files/journal_back", folder)
    (folder / "home" / "current" / "compose").mkdir(parents=True)
    path = local.program(folder / "bin", "docker", f"[ $1 != info ] || echo {folder}/docker")
    local.program(path, "df", f"echo Avail; echo {free_mib}")
    words = [
        ROOT / "ansible/roles/stack/files/restore.sh",
        folder / "home",
        folder / "here",
        folder / "a.tar.gz",
        "5",
    ]
    return subprocess.run(words, check=False, capture_output=True, text=True, timeout=60,
                          env={"PATH": f"{path}:/usr/sbin:/usr/bin:/sbin:/bin"})  # fmt: skip


def test_what_is_there_goes_only_where_there_is_room_for_what_comes(tmp_path: Path) -> None:
    done = restored(tmp_path, 1)
    data = tmp_path / "docker" / "volumes" / "trainvitals_grafana-data" / "_data"
    assert done.returncode == 1
    assert "restore: 3 MiB are to be unpacked" in done.stderr
    assert (data / "now").exists()


def test_with_room_it_is_put_back(tmp_path: Path) -> None:
    done = restored(tmp_path, 1000)
    data = tmp_path / "docker" / "volumes" / "trainvitals_grafana-data" / "_data"
    assert done.returncode == 0, done.stderr
    assert [path.name for path in data.iterdir()] == ["then"]
    assert (tmp_path / "here" / "run" / "a").read_text() == "then"
    assert json.dumps(done.stdout).startswith('"changed: grafana-data')


FUTURE = 4102444800


def archived(folder: Path, **entries: tuple[str, str]) -> Path:
    """An archive of a journal: by name how each is (file, link) and what is in it or whereto it leads."""
    path = folder / "backup.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, (kind, text) in {"": ("folder", ""), **entries}.items():
            member = tarfile.TarInfo(f"journal/{name}".rstrip("/"))
            member.uid, member.gid = os.getuid(), os.getgid()
            member.type = {"file": tarfile.REGTYPE, "link": tarfile.SYMTYPE, "pipe": tarfile.FIFOTYPE,
                           "folder": tarfile.DIRTYPE}[kind]  # fmt: skip
            member.mode, member.mtime = 0o755 if kind == "folder" else 0o4640, 1_700_000_000
            member.size, member.linkname = (0, text) if kind == "link" else (len(text), "")
            if text == "later":
                member.mtime = FUTURE
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


def put_back(folder: Path, **entries: tuple[str, str]) -> list[str]:
    words = [ROOT / "ansible/roles/stack/files/journal_back", archived(folder, **entries), folder / "journal"]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    (tmp_path / "journal").mkdir()
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "crontab").write_text("root's")
    return tmp_path / "journal"


def test_no_link_in_the_journal_is_written_through(journal: Path, tmp_path: Path) -> None:
    """At any depth: the file itself, its folder, and a folder above that."""
    (journal / "crontab").symlink_to(tmp_path / "etc" / "crontab")
    (journal / "run").symlink_to(tmp_path / "etc")
    (journal / "deep").mkdir()
    (journal / "deep" / "er").symlink_to(tmp_path / "etc")
    entries = dict.fromkeys(("crontab", "run/crontab", "deep/er/crontab", "run/a/new", "good/a"), ("file", "evil"))
    told = put_back(tmp_path, **entries)
    assert [path.name for path in (tmp_path / "etc").iterdir()] == ["crontab"]
    assert (tmp_path / "etc" / "crontab").read_text() == "root's"
    assert (journal / "good" / "a").read_text() == "evil"
    assert [line.split("'")[1] for line in told] == [f"journal/{name}" for name in list(entries)[:4]]
    assert (journal / "run").is_symlink()


def test_links_of_the_archive_that_lead_out_stay_out(journal: Path, tmp_path: Path) -> None:
    files = dict.fromkeys(("out/crontab", "../etc/crontab"), ("file", "evil"))
    told = put_back(tmp_path, out=("link", "../etc"), root=("link", "/etc"), inner=("link", "x/../good"),
                    p=("pipe", ""), **files)  # fmt: skip
    assert (tmp_path / "etc" / "crontab").read_text() == "root's"
    assert sorted(path.name for path in journal.iterdir()) == ["inner", "out"]
    assert (journal / "out" / "crontab").read_text() == "evil"
    assert len(told) == 4
    assert "left as it is: 'journal/out': it is a link out of the journal, to '../etc'" in told


def test_what_is_newer_here_stays_and_a_time_to_come_is_not_believed(journal: Path, tmp_path: Path) -> None:
    for name, time in {"old": 1_600_000_000, "new": 1_800_000_000, "lies": 1_600_000_000}.items():
        (journal / name).write_text("here")
        os.utime(journal / name, (time, time))
    old = (journal / "old").stat().st_ino
    assert put_back(tmp_path, old=("file", "then"), new=("file", "then"), lies=("file", "later"),
                    gone=("file", "then")) == []  # fmt: skip
    found = {path.name: path.read_text() for path in journal.iterdir()}
    assert found == {"old": "then", "new": "here", "lies": "here", "gone": "then"}
    assert (journal / "old").stat().st_ino != old
    # No mode that gives another's rights comes along.
    assert (journal / "gone").stat().st_mode & 0o7777 == 0o640


def test_a_second_name_of_another_file_is_not_written_to(journal: Path, tmp_path: Path) -> None:
    os.utime(tmp_path / "etc" / "crontab", (1, 1))
    os.link(tmp_path / "etc" / "crontab", journal / "crontab")
    assert put_back(tmp_path, crontab=("file", "evil")) == []
    assert (tmp_path / "etc" / "crontab").read_text() == "root's"
