"""Whole lines by where they lie, in folders that anybody may have filled."""

import os
from pathlib import Path

import pytest

from tests.collector.journal.helpers import add, lines
from trainvitals.journal.lines import Group, groups, opened, part, records

FILE = "training_metrics_20250730_123456.jsonl"


def read(folder: Path, start: int = 0, most: int = 3, end: int | None = None, **more: int) -> list[Group]:
    with opened(folder, FILE) as fd:
        return list(groups(fd, start, most, end, **more))


def told(groups: list[Group]) -> list[int]:
    return [record["n"] for group in groups for record in records(group.lines)]


def test_groups_lie_one_behind_the_other_and_a_line_that_is_being_written_is_none(tmp_path: Path) -> None:
    content = lines(range(8))
    add(tmp_path / FILE, content + b'{"n":8,"unfin')
    found = read(tmp_path)
    assert [len(group.lines) for group in found] == [3, 3, 2]
    assert [group.offset for group in found] == [0, *(group.end for group in found[:-1])]
    assert found[-1].end == len(content)
    assert told(found) == list(range(8))
    assert b"".join(content[group.offset : group.end] for group in found) == content


def test_from_a_place_to_a_place(tmp_path: Path) -> None:
    content = lines(range(9))
    add(tmp_path / FILE, content)
    size = len(lines([0]))
    assert told(read(tmp_path, 2 * size, end=5 * size)) == [2, 3, 4]
    assert told(read(tmp_path, 2 * size, end=5 * size + 3)) == [2, 3, 4]
    assert read(tmp_path, len(content)) == read(tmp_path, len(content) + 99) == []


def test_lines_longer_than_what_is_read_at_once_and_groups_by_size(tmp_path: Path) -> None:
    content = lines(range(4), text="x" * 400_000)
    add(tmp_path / FILE, content)
    assert told(read(tmp_path)) == [0, 1, 2, 3]
    assert [len(group.lines) for group in read(tmp_path, most=100, max_bytes=1)] == [1, 1, 1, 1]


@pytest.mark.parametrize("ending", [b"\n", b""])
def test_a_line_that_is_too_long_is_passed_over_and_what_follows_is_not(tmp_path: Path, ending: bytes) -> None:
    add(tmp_path / FILE, lines([0]) + b"x" * 900_000 + ending + (lines([1, 2]) if ending else b""))
    found = read(tmp_path, longest=500_000)
    assert told(found) == ([0, 1, 2] if ending else [0])
    # It is not read again and again.
    assert found[-1].end == (tmp_path / FILE).stat().st_size


def test_what_is_no_record_is_left_out(tmp_path: Path) -> None:
    garbage = b'\xff\0\n[1]\n7\n"text"\nnull\n\n' + b"[" * 9999 + b"\n"
    add(tmp_path / FILE, lines([0]) + garbage + b'{"n":1,"loss":NaN}\n {"n":123456789012345678901234567890}\n')
    first, second, third = [record for group in read(tmp_path, most=99) for record in records(group.lines)]
    assert (first["n"], second["n"], third["n"]) == (0, 1, 123456789012345678901234567890)
    assert second["loss"] != second["loss"]


def test_links_pipes_and_folders_in_a_files_place_are_not_read_nor_waited_for(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    add(precious, lines([7]))
    for number, make in enumerate((lambda path: path.symlink_to(precious), os.mkfifo, Path.mkdir)):
        folder = tmp_path / f"run{number}"
        folder.mkdir()
        make(folder / FILE)
        with pytest.raises(OSError, match=r"regular file|symbolic links"):
            read(folder)
        assert part(folder / FILE, 0, 1000) == []


def test_nor_is_a_link_in_the_folders_place(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    add(tmp_path / "real" / FILE, lines([7]))
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(OSError, match="Not a directory"):
        read(tmp_path / "link")


def test_the_records_at_the_end_of_a_file(tmp_path: Path) -> None:
    add(tmp_path / FILE, lines(range(100)))
    size = len(lines([99]))
    assert [record["n"] for record in part(tmp_path / FILE, -2 * size - 5, 1 << 20)] == [98, 99]
    assert [record["n"] for record in part(tmp_path / FILE, 0, size + 5)] == [0]
    assert len(part(tmp_path / FILE, -(1 << 20), 1 << 20)) == 100
