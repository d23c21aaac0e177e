"""Disks that are full, read-only or gone: no torn line, a count of what was lost, and writing that resumes."""

import errno
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.collector.journal.helpers import numbers, small_disk, whole_lines
from tests.collector.support import wait_for
from trainvitals.journal.append import Appender

Write = Callable[[int, bytes], int]


def rotating(folder: Path) -> Appender:
    return Appender(folder, "training_metrics", suffix=".jsonl", max_bytes=1 << 20)


def full_after(part: int, write: Write = os.write) -> Write:
    """As the kernel does it: what fits is written, then nothing more."""
    room = part

    def short(fd: int, line: bytes) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = write(fd, line[:room])
        room -= written
        return written

    return short


@pytest.mark.parametrize("part", [1, 20, 45])
def test_a_short_write_leaves_no_part_of_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    appender = rotating(tmp_path)
    assert appender.append({"n": 0})
    with monkeypatch.context() as full:
        full.setattr(os, "write", full_after(part))
        for number in range(1, 4):
            assert not appender.append({"n": number})
            assert numbers(tmp_path) == [0]
    assert appender.append({"n": 4})
    assert numbers(tmp_path) == [0, 4]
    assert (appender.counts.written, appender.counts.dropped) == (2, 3)


def test_where_even_taking_back_fails_nothing_is_written_behind_the_torn_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    appender = rotating(tmp_path)
    appender.append({"n": 0})
    path = appender.path
    assert path is not None
    whole = path.stat().st_size

    def refused(fd: int, size: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "ftruncate", refused)
        with broken.context() as full:
            full.setattr(os, "write", full_after(9))
            assert not appender.append({"n": 1})
        for number in range(2, 5):
            assert not appender.append({"n": number})
        assert path.stat().st_size == whole + 9
    assert appender.append({"n": 5})
    assert numbers(tmp_path) == [0, 5]
    assert (appender.counts.written, appender.counts.dropped) == (2, 4)


def test_a_short_write_of_many_lines_keeps_the_whole_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the queue of slow storage writes them."""
    appender = rotating(tmp_path)
    lines = [b'{"n":%d}\n' % number for number in range(5)]
    with monkeypatch.context() as full:
        full.setattr(os, "write", full_after(len(lines[0]) * 3 + 4))
        appender._write_queued(b"".join(lines))
    assert numbers(tmp_path) == [0, 1, 2]
    assert (appender.counts.written, appender.counts.dropped) == (3, 2)


def test_a_full_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(b"x" * 30_000)
        appender = rotating(disk / "run")
        kept = [n for n in range(2000) if appender.append({"n": n, "text": "x" * (n % 90)})]
        assert len(kept) < 2000
        assert numbers(disk / "run") == kept
        assert (appender.counts.written, appender.counts.dropped) == (len(kept), 2000 - len(kept))

        ballast.unlink()
        wait_for(lambda: appender.append({"n": 2000}), seconds=5)
        kept.append(2000)
        kept += [n for n in range(2001, 2051) if appender.append({"n": n})]
        assert kept[-1] == 2050
        assert numbers(disk / "run") == kept


def test_a_disk_that_is_full_from_the_start(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        with pytest.raises(OSError, match="space"):
            (disk / "ballast").write_bytes(b"x" * 200_000)
        appender = rotating(disk / "run")
        assert not any(appender.append({"n": n}) for n in range(20))
        (disk / "ballast").unlink()
        wait_for(lambda: appender.append({"n": 20}), seconds=5)
        assert numbers(disk / "run") == [20]
        assert len(list((disk / "run").iterdir())) == 1


def test_a_disk_that_turns_read_only_and_back(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        appender = rotating(disk / "run")
        appender.append({"n": 0})
        appender.close()
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        assert not any(appender.append({"n": n}) for n in range(1, 20))
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
        wait_for(lambda: appender.append({"n": 20}), seconds=5)
        assert numbers(disk / "run") == [0, 20]
        appender.close()


def test_a_file_in_place_of_the_folder_until_it_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.write_text("in the way")
    appender = Appender(folder, "events.jsonl")
    assert not appender.append({"n": 0})
    folder.unlink()
    wait_for(lambda: appender.append({"n": 1}), seconds=5)
    assert numbers(folder) == [1]
    assert appender.counts.written == 1


@pytest.mark.parametrize("fixed", [True, False])
def test_a_folder_that_is_deleted_comes_back(tmp_path: Path, fixed: bool) -> None:
    folder = tmp_path / "runs" / "one"
    appender = Appender(folder, "events.jsonl") if fixed else rotating(folder)
    appender.append({"n": 0})
    shutil.rmtree(tmp_path / "runs")

    def comes_back() -> bool:
        appender.append({"n": 1})
        return folder.exists()

    wait_for(comes_back, seconds=5)
    assert appender.append({"n": 2})
    found = [record["n"] for path in folder.iterdir() for record in whole_lines(path)]
    assert found == [1, 2]
