"""The file of an index: whole lines whatever happens to its writer or its disk, and nobody else's file."""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.collector.journal.helpers import line_of, python, small_disk
from trainvitals.journal.index_file import IndexFile

HEAD, NAME = b'{"index":1}\n', "here.index.rank0.jsonl"
NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="acting as another user needs root")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    (folder / "agent").mkdir(parents=True)
    return folder


def file(run: Path, head: bytes = HEAD) -> IndexFile:
    return IndexFile(run, NAME, head)


def path(run: Path) -> Path:
    return run / "agent" / NAME


def test_what_is_appended_is_read_again_behind_the_head(run: Path) -> None:
    assert file(run).read() == b""
    assert file(run).append(b"one\ntwo\n") and file(run).append(b"three\n")
    assert file(run).read() == b"one\ntwo\nthree\n"
    assert path(run).read_bytes() == HEAD + b"one\ntwo\nthree\n"


def test_what_a_kill_left_of_a_line_is_cut_off(run: Path) -> None:
    file(run).append(b"one\n")
    with path(run).open("ab") as torn:
        torn.write(b"tw")
    assert file(run).read() == b"one\n"
    assert file(run).append(b"three\n")
    assert path(run).read_bytes() == HEAD + b"one\nthree\n"


@pytest.mark.parametrize("content", [b"", b"garbage", b'{"index":0}\none\n', HEAD[:-3], b"\0" * 5000])
def test_the_file_of_another_version_or_none_begins_anew(run: Path, content: bytes) -> None:
    path(run).write_bytes(content)
    assert file(run).read() == b""
    assert file(run).append(b"one\n")
    assert path(run).read_bytes() == HEAD + b"one\n"


def test_each_change_by_others_shows(run: Path) -> None:
    mine = file(run)
    assert mine.stamp() is None
    mine.append(b"one\n")
    stamps = [mine.stamp()]
    path(run).write_bytes(HEAD)
    stamps.append(mine.stamp())
    path(run).unlink()
    stamps.append(mine.stamp())
    mine.clear()
    assert len(set(stamps)) == 3 and stamps[2] is None
    assert mine.append(b"two\n") and mine.read() == b"two\n"


WRITER = """
import sys
from pathlib import Path
from trainvitals.journal.index_file import IndexFile
file = IndexFile(Path(sys.argv[1]), sys.argv[2], b'{"index":1}\\n')
number = len(file.read().splitlines())
print("ready", flush=True)
while True:
    file.append(b"".join(b"%d " % (number + at) + b"x" * 4000 + b"\\n" for at in range(50)))
    number += 50
"""


def test_a_writer_that_is_killed_again_and_again_leaves_no_gap(run: Path) -> None:
    chance = random.Random(8)
    for _ in range(12):
        writer = python(WRITER, run, NAME)
        assert line_of(writer) == "ready"
        time.sleep(chance.random() * 0.03)
        writer.send_signal(signal.SIGKILL)
        writer.communicate(timeout=10)
        numbers = [int(line.split()[0]) for line in file(run).read().splitlines()]
        assert numbers == list(range(len(numbers)))
    assert numbers


def test_on_a_full_disk_nothing_is_half_written_and_it_goes_on_when_there_is_room(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "64k") as disk:
        (disk / "agent").mkdir()
        mine, line = file(disk), b"x" * 9999 + b"\n"
        assert mine.append(line)
        filler = disk / "filler"
        filler.write_bytes(b"x" * 20_000)
        while mine.append(line):
            pass
        kept = mine.read()
        assert len(kept) % len(line) == 0 and path(disk).read_bytes() == HEAD + kept
        filler.unlink()
        assert mine.append(line) and mine.read() == kept + line


def test_no_link_leads_to_a_file_that_is_not_an_index(run: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(HEAD + b"secret\n")
    path(run).symlink_to(precious)
    mine = file(run)
    assert mine.read() == b"" and not mine.append(b"one\n")
    mine.clear()
    assert precious.read_bytes() == HEAD + b"secret\n"


def test_nor_does_one_in_a_folders_place(tmp_path: Path, run: Path) -> None:
    file(run).append(b"one\n")
    (tmp_path / "linked").symlink_to("run")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "agent").symlink_to("../run/agent")
    for folder in (tmp_path / "linked", tmp_path / "other", tmp_path / "missing"):
        assert file(folder).read() == b"" and not file(folder).append(b"two\n")
    assert file(run).read() == b"one\n"


def test_a_pipe_keeps_nobody_waiting(run: Path) -> None:
    os.mkfifo(path(run))
    assert file(run).read() == b"" and not file(run).append(b"one\n")


@as_root
def test_what_another_user_put_there_is_neither_believed_nor_written_to(run: Path) -> None:
    path(run).write_bytes(HEAD + b"lies\n")
    os.chown(path(run), NOBODY, NOBODY)
    assert file(run).read() == b"" and not file(run).append(b"one\n")
    file(run).clear()
    assert path(run).read_bytes() == HEAD + b"lies\n"


def test_a_folder_that_may_not_be_written_is_no_error(run: Path) -> None:
    (run / "agent").rmdir()
    assert not file(run).append(b"one\n")
    assert file(run).stamp() is None
