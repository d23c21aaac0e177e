"""Watching folders: what changes wakes the reader, and what cannot be watched is said."""

import ctypes
import errno
import os
import shutil
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collector.journal.helpers import open_descriptors
from tests.collector.support import wait_for
from trainvitals.journal.watch import Watch, open_watch


@pytest.fixture
def watch() -> Iterator[Watch]:
    made = open_watch()
    if made is None:
        pytest.skip("this kernel has no inotify")
    yield made
    made.close()


def changed(watch: Watch) -> set[Path]:
    """All that the kernel has to tell by now."""
    paths: set[Path] = set()
    while watch.wait(0.2):
        more, lost = watch.changed()
        assert not lost
        paths |= more
    return paths


def test_a_file_that_comes_grows_moves_or_goes_shows(tmp_path: Path, watch: Watch) -> None:
    assert watch.add(tmp_path)
    assert changed(watch) == set()
    path = tmp_path / "a.jsonl"
    path.touch()
    assert changed(watch) == {path}
    with path.open("ab") as file:
        file.write(b"{}\n")
    assert changed(watch) == {path}
    path.rename(tmp_path / "b.jsonl")
    assert changed(watch) == {path, tmp_path / "b.jsonl"}
    (tmp_path / "b.jsonl").unlink()
    assert changed(watch) == {tmp_path / "b.jsonl"}


def test_a_change_wakes_who_waits(tmp_path: Path, watch: Watch) -> None:
    watch.add(tmp_path)
    timer = threading.Timer(0.1, (tmp_path / "late").touch)
    timer.start()
    assert watch.wait(30)
    timer.join()
    assert watch.changed() == ({tmp_path / "late"}, False)
    assert not watch.wait(0)


def test_many_folders_are_told_apart(tmp_path: Path, watch: Watch) -> None:
    folders = [tmp_path / f"run-{number}" for number in range(50)]
    for folder in folders:
        folder.mkdir()
        assert watch.add(folder)
        assert watch.add(folder)
    for folder in folders[::2]:
        (folder / "ü.jsonl").touch()
    assert changed(watch) == {folder / "ü.jsonl" for folder in folders[::2]}


def test_a_folder_made_again_can_be_added_again(tmp_path: Path, watch: Watch) -> None:
    folder = tmp_path / "run"
    for _ in range(3):
        folder.mkdir()
        wait_for(lambda: watch.changed() is not None and watch.add(folder))
        (folder / "a").touch()
        assert folder / "a" in changed(watch)
        shutil.rmtree(folder)
        changed(watch)


def test_a_folder_that_moved_away_leaves_its_name_free(tmp_path: Path, watch: Watch) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    watch.add(folder)
    folder.rename(tmp_path / "elsewhere")
    folder.mkdir()
    changed(watch)
    assert watch.add(folder)
    (tmp_path / "elsewhere" / "old").touch()
    (folder / "new").touch()
    assert changed(watch) == {folder / "new"}


def test_a_folder_that_is_not_there_is_not_watched_yet(tmp_path: Path, watch: Watch) -> None:
    assert not watch.add(tmp_path / "later")
    assert watch.changed() == (set(), False)
    (tmp_path / "later").mkdir()
    assert watch.add(tmp_path / "later")


def test_a_folder_that_cannot_be_watched_makes_the_reader_look(
    tmp_path: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel limits how many folders a user may watch."""
    with monkeypatch.context() as limited:
        limited.setattr(watch, "_libc", Limited())
        assert not watch.add(tmp_path)
        assert watch.changed() == (set(), True)
        assert watch.changed() == (set(), True)
    assert watch.changed() == (set(), True)
    assert watch.changed() == (set(), False)
    (tmp_path / "a").touch()
    assert changed(watch) == {tmp_path / "a"}


class Limited:
    def inotify_add_watch(self, *_: object) -> int:
        ctypes.set_errno(errno.ENOSPC)
        return -1


def test_an_overflow_is_told(tmp_path: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    watch.add(tmp_path)
    (tmp_path / "a").touch()
    real = os.read(watch.fd, 4096)
    overflow = struct.pack("iIII", -1, 0x4000, 0, 0)
    monkeypatch.setattr(os, "read", lambda fd, size: overflow + real)
    assert watch.changed() == ({tmp_path / "a"}, True)


def test_no_descriptor_is_left(tmp_path: Path) -> None:
    before = open_descriptors()
    for _ in range(20):
        watch = open_watch()
        assert watch is not None
        watch.add(tmp_path)
        watch.changed()
        watch.close()
    assert open_descriptors() == before


def test_a_kernel_without_inotify_has_readers_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    class Without:
        def inotify_init1(self, *_: object) -> int:
            return -1

    monkeypatch.setattr("ctypes.CDLL", lambda *_, **__: Without())
    assert open_watch() is None
    monkeypatch.setattr("ctypes.CDLL", lambda *_, **__: object())
    assert open_watch() is None


def watches(watch: Watch) -> int:
    return Path(f"/proc/self/fdinfo/{watch.fd}").read_text().count("inotify wd:")


def test_a_folder_no_longer_of_interest_holds_no_watch(tmp_path: Path, watch: Watch) -> None:
    folders = [tmp_path / f"run-{number}" for number in range(20)]
    for folder in folders:
        folder.mkdir()
        assert watch.add(folder)
    for folder in folders[:15]:
        watch.remove(folder)
        watch.remove(folder)
    assert watches(watch) == 5
    (folders[0] / "a").touch()
    assert changed(watch) == set()
    assert watch.add(folders[0])
    (folders[0] / "b").touch()
    assert changed(watch) == {folders[0] / "b"}
    shutil.rmtree(folders[19])
    watch.remove(folders[19])
    changed(watch)
    assert watches(watch) == 5


def test_a_folder_that_could_not_be_watched_may_be_given_up(
    tmp_path: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as limited:
        limited.setattr(watch, "_libc", Limited())
        watch.add(tmp_path)
    watch.remove(tmp_path)
    assert watch.changed() == (set(), False)
    assert watches(watch) == 0
