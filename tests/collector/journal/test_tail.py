"""Following files: each whole line once, whatever happens to the file or to its reader."""

import json
import os
import random
import shutil
from pathlib import Path

import pytest

from tests.collector.journal.helpers import add, following, line, lines, open_descriptors, read
from trainvitals.journal import tail
from trainvitals.journal.tail import Tail


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "events.jsonl"


def test_a_growing_file_is_read_once(path: Path) -> None:
    reader = following(path)
    assert read(reader, path) == []
    for number in range(0, 50, 5):
        add(path, lines(range(number, number + 5)))
        assert read(reader, path) == list(range(number, number + 5))
        assert read(reader, path) == []


def test_a_half_written_line_waits_for_its_end(path: Path) -> None:
    reader = following(path)
    whole = line(0)
    for at in range(len(whole)):
        assert read(reader, path) == []
        add(path, whole[at : at + 1])
    assert read(reader, path) == [0]
    assert reader.garbage_lines == 0


GARBAGE = [b"{\n", b"null\n", b"[1,2]\n", b"\x00\x01\xff\xfe\n", b'{"n":1}{"n":2}\n', b"}" * 300 + b"\n",
           b"[" * 5000 + b"\n", b'{"n":"\xff"}\n', b"\0" * 5000 + b"\n", b' {"n":\n',
           b'{"a":' * 5000 + b"\n"]  # fmt: skip


@pytest.mark.parametrize("garbage", GARBAGE, ids=lambda garbage: repr(garbage[:8]))
def test_garbage_is_counted_and_passed_over(path: Path, garbage: bytes) -> None:
    add(path, line(0) + garbage + line(1) + garbage + garbage + lines(range(2, 5), loss=float("nan")))
    reader = following(path)
    assert read(reader, path) == [0, 1, 2, 3, 4]
    assert reader.garbage_lines == 3
    assert read(reader, path) == []
    assert reader.garbage_lines == 3


def test_empty_lines_are_nothing(path: Path) -> None:
    add(path, b"\n" + line(0) + b"\n  \n" + line(1))
    reader = following(path)
    assert read(reader, path) == [0, 1]
    assert reader.garbage_lines == 0


def test_more_garbage_than_a_chunk_ends_no_reading(path: Path) -> None:
    add(path, line(0) + b"garbage\n" * 100 + line(1))
    reader = following(path)
    assert read(reader, path, max_bytes=50) == [0, 1]
    assert reader.garbage_lines == 100


def test_binary_rubbish_never_raises(path: Path) -> None:
    chance = random.Random(7)
    for _ in range(50):
        path.write_bytes(chance.randbytes(20_000) + b"\n" + line(1))
        assert read(following(path), path)[-1:] == [1]


def test_not_a_number_and_long_integers_come_back(path: Path) -> None:
    add(path, line(0, loss=float("inf")) + line(1, big=2**80) + line(2))
    records = following(path).read(path)
    assert [record["n"] for record in records] == [0, 1, 2]
    assert (records[0]["loss"], records[1]["big"]) == (float("inf"), 2**80)


@pytest.mark.parametrize("chunk", [1, 7, 100, 4096])
def test_a_line_longer_than_a_chunk(path: Path, chunk: int) -> None:
    add(path, line(0) + line(1, text="x" * 10_000) + line(2))
    assert read(following(path), path, max_bytes=chunk) == [0, 1, 2]


def test_a_line_without_end_is_passed_over(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "MAX_LINE_BYTES", 4096)
    reader = following(path)
    add(path, line(0) + b"x" * 9_999)
    assert read(reader, path, max_bytes=256) == [0]
    add(path, b'x{"n":7}\n' + line(1))
    assert read(reader, path, max_bytes=256) == [1]
    assert reader.garbage_lines == 1


def test_a_cursor_goes_through_json(path: Path) -> None:
    add(path, lines(range(10)))
    reader = following(path)
    read(reader, path)
    cursor = json.loads(json.dumps(reader.cursor()))
    add(path, lines(range(10, 15)))
    assert read(Tail(cursor), path) == list(range(10, 15))
    assert read(Tail({}), path) == []


def test_forgotten_files_are_not_read(path: Path) -> None:
    add(path, line(0))
    reader = following(path)
    assert list(reader.followed()) == [path]
    reader.forget(path)
    assert (read(reader, path), reader.has_news(path), reader.cursor()) == ([], False, {})


def test_news_are_what_was_not_read(path: Path) -> None:
    reader = following(path)
    assert not reader.has_news(path)
    add(path, lines(range(3)))
    assert reader.has_news(path)
    read(reader, path)
    assert not reader.has_news(path)
    add(path, line(3)[:10])
    assert reader.has_news(path)
    read(reader, path)
    assert not reader.has_news(path)


def test_what_comes_while_reading_is_news(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = following(path)
    add(path, line(0))
    pread = os.pread

    def meanwhile(fd: int, size: int, offset: int) -> bytes:
        block = pread(fd, size, offset)
        if not block:
            monkeypatch.setattr(os, "pread", pread)
            add(path, line(1))
        return block

    monkeypatch.setattr(os, "pread", meanwhile)
    assert read(reader, path) == [0]
    assert reader.has_news(path)
    assert read(reader, path) == [1]


def test_what_is_no_file_is_counted_and_keeps_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    add(tmp_path / "file", line(0))
    odd = [tmp_path / "pipe", tmp_path / "folder", tmp_path / "loop", tmp_path / "file" / "below"]
    reader = following(*odd)
    for count, path in enumerate(odd, start=1):
        assert reader.read(path) == []
        assert reader.errors == count
        assert reader.read(path) == []
        assert reader.errors == count, "it is one error, however often it is tried"


def test_an_error_that_comes_again_is_another(tmp_path: Path) -> None:
    path = tmp_path / "file"
    reader = following(path)
    for count in (1, 2):
        path.mkdir()
        assert reader.read(path) == []
        assert reader.errors == count
        path.rmdir()
        add(path, line(count))
        assert read(reader, path) == [count]
        path.unlink()


def test_a_missing_file_is_no_error(tmp_path: Path) -> None:
    reader = following(tmp_path / "none", tmp_path / "no" / "folder")
    assert not any(reader.read(path) for path in reader.followed())
    assert reader.errors == 0


def test_three_hundred_files_and_no_descriptor_left(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.jsonl" for number in range(300)]
    reader = following(*paths)
    before = open_descriptors()
    for turn in range(3):
        for number, path in enumerate(paths):
            add(path, lines(range(turn * 10, turn * 10 + number % 5)))
        for number, path in enumerate(paths):
            assert read(reader, path) == list(range(turn * 10, turn * 10 + number % 5))
    shutil.rmtree(tmp_path)
    assert not any(reader.read(path) for path in paths)
    assert open_descriptors() == before
