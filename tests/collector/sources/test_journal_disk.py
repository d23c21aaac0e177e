"""The room where the journal lies is told whatever it lies on, and storage that does not answer holds nobody up."""

import ctypes
import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import BinaryIO

import psutil
import pytest

from tests.collector.journal.helpers import small_disk
from tests.collector.support import serving, wait_for
from trainvitals.model import Reading
from trainvitals.sources import journal_disk
from trainvitals.sources.host import Host
from trainvitals.sources.journal_disk import JournalDisk, Space

LIBC = ctypes.CDLL(None, use_errno=True)
DETACH = 2


@contextmanager
def dead_storage(at: Path) -> Iterator[BinaryIO]:
    """A FUSE file system of which nobody answers a question, until its server is closed: then each fails."""
    at.mkdir()
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("mounting a FUSE file system needs /dev/fuse")
    with open("/dev/fuse", "r+b", buffering=0) as server, ExitStack() as undo:
        options = f"fd={server.fileno()},rootmode=40000,user_id={os.geteuid()},group_id={os.getegid()}"
        if LIBC.mount(b"dead", bytes(at), b"fuse.dead", 0, options.encode()):
            pytest.skip(f"mounting a FUSE file system needs root: {os.strerror(ctypes.get_errno())}")
        undo.callback(LIBC.umount2, bytes(at), DETACH)
        yield server


def filesystems(device: Host) -> dict[str, Reading]:
    return {reading.label("mountpoint"): reading for reading in device.read("slow") if reading.scope == "filesystem"}


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy this machine is."""
    monkeypatch.setattr(journal_disk, "WAIT_SECONDS", 30.0)


@pytest.mark.usefixtures("patient")
def test_what_is_no_disk_is_told_where_the_journal_lies_on_it(tmp_path: Path) -> None:
    with small_disk(tmp_path / "memory", "1m") as folder:
        (folder / "deep" / "er").mkdir(parents=True)
        told = filesystems(Host(journal=folder / "deep" / "er"))
        assert str(folder) not in filesystems(Host())
        assert told[str(folder)].values == {"size_bytes": 2.0**20, "free_bytes": pytest.approx(2.0**20, rel=0.1)}
        (tmp_path / "link").symlink_to(folder)
        assert str(folder) in filesystems(Host(journal=tmp_path / "link"))


def test_a_disk_that_is_told_already_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = [SimpleNamespace(device="/dev/sda1", mountpoint="/", fstype="ext4")]
    monkeypatch.setattr(psutil, "disk_partitions", lambda all: there)  # noqa: A006
    device = Host(journal=tmp_path)
    for same in (Space("/", "/dev/root", 8.0, 4.0), Space("/srv", "/dev/sda1", 8.0, 4.0)):
        monkeypatch.setattr(JournalDisk, "ask", lambda self, same=same: same)
        assert list(filesystems(device)) == ["/"]
    monkeypatch.setattr(JournalDisk, "ask", lambda self: Space("/srv", "server:/srv", 8.0, 4.0))
    told = filesystems(device)
    assert list(told) == ["/", "/srv"]
    assert told["/srv"].values == {"size_bytes": 8.0, "free_bytes": 4.0}


@pytest.mark.usefixtures("patient")
def test_a_folder_that_is_not_there_and_a_size_that_is_not_known_are_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert JournalDisk(tmp_path / "none").ask() is None
    monkeypatch.setattr(journal_disk, "space", lambda mountpoint, device, at: Space(mountpoint, device, 0.0, 0.0))
    assert JournalDisk(tmp_path).ask() is None


def test_storage_that_does_not_answer_is_asked_once_and_again_when_it_has_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_disk, "WAIT_SECONDS", 0.2)
    go, asked = threading.Event(), []
    real = os.statvfs

    def hanging(at: str | Path) -> os.statvfs_result:
        if at == tmp_path:
            asked.append(at)
            go.wait(30)
        return real(at)

    monkeypatch.setattr(os, "statvfs", hanging)
    device = Host(journal=tmp_path)
    rest = filesystems(Host())
    for _ in range(3):
        assert filesystems(device).keys() == rest.keys()
    assert len(asked) == 1
    go.set()
    wait_for(lambda: JournalDisk(tmp_path).ask() is not None and filesystems(device).keys() >= rest.keys())
    assert len(asked) >= 3


def test_an_agent_on_storage_that_is_gone_goes_on_telling_the_rest(tmp_path: Path) -> None:
    with dead_storage(tmp_path / "dead") as server:
        began = time.monotonic()
        device = Host(journal=tmp_path / "dead")
        first, second = filesystems(device), filesystems(device)
        assert str(tmp_path / "dead") not in first.keys() | second.keys()
        assert time.monotonic() - began < 10 * journal_disk.WAIT_SECONDS
        assert device._journal is not None
        asking = device._journal._asking
        assert asking is not None
        assert asking.is_alive()
        server.close()
        asking.join(10)
        assert not asking.is_alive()


def test_a_served_journal_s_room_is_told_to_prometheus(tmp_path: Path) -> None:
    with small_disk(tmp_path / "memory", "8m") as folder, serving(folder, "--simulate", "1") as agent:
        name = f'host_filesystem_size_bytes{{mountpoint="{folder}"}} 8.388608e+06'
        wait_for(lambda: name in agent.get("/metrics"), 20)
