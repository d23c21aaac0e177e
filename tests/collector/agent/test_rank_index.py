"""A rank's index: kept up as files grow, made anew where it does not fit them, in memory where it cannot be written."""

import os
import shutil
from pathlib import Path

import pytest

from tests.collector.agent.written import FIRST, NOON, SECOND, run_folder, steps
from tests.collector.journal.helpers import add, small_disk
from trainvitals.agent import rank_index
from trainvitals.agent.rank_index import RankIndex, View, told_names

NEVER, AT_ONCE = (lambda: False), (lambda: True)


def index_of(folder: Path, is_writer: bool = True, rank: int = 0) -> RankIndex:
    return RankIndex(folder, "here", rank, is_writer)


def brought_up(folder: Path, index: RankIndex | None = None) -> View:
    index = index or index_of(folder)
    assert index.advance(NEVER)
    return index.view()


def file_of(folder: Path) -> Path:
    return folder / "agent" / "here.index.rank0.jsonl"


def lines_in(view: View) -> int:
    assert view.missing == 0
    for before, block in zip(view.blocks, view.blocks[1:], strict=False):
        assert block.offset == (before.end if block.file == before.file else 0)
    return sum(block.lines for block in view.blocks)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = run_folder(tmp_path)
    add(folder / FIRST, steps(1, 3000))
    return folder


def test_every_line_is_told_of_once_as_a_file_grows(run: Path) -> None:
    index = index_of(run)
    for last in (3000, 3001, 3100, 3500):
        add(run / FIRST, steps(last + 1, last + 1) * (last > 3000))
        assert lines_in(brought_up(run, index)) == len((run / FIRST).read_bytes().splitlines())
    assert lines_in(index_of(run).view()) == lines_in(brought_up(run))


def test_the_next_agent_goes_on_where_the_last_one_was(run: Path) -> None:
    first = brought_up(run)
    written = file_of(run).read_bytes()
    add(run / FIRST, steps(3001, 6000))
    second = brought_up(run)
    assert file_of(run).read_bytes().startswith(written)
    assert second.blocks[: len(first.blocks) - 1] == first.blocks[:-1]
    assert lines_in(second) == 6000


def test_of_what_is_not_reached_in_time_the_bytes_are_told(run: Path) -> None:
    add(run / SECOND, steps(3001, 203_000, began=NOON + 3600))
    index = index_of(run)
    assert not index.advance(AT_ONCE)
    view = index.view()
    assert view.missing == (run / SECOND).stat().st_size > rank_index.TAIL_BYTES
    assert sum(block.lines for block in view.blocks) == 3000
    assert lines_in(brought_up(run, index)) == 203_000


def without_two_lines(content: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    return b"".join(lines[:3] + lines[5:])


HARM = {
    "deleted": lambda path: path.unlink(),
    "emptied": lambda path: path.write_bytes(b""),
    "torn": lambda path: path.write_bytes(path.read_bytes()[:-700]),
    "halved": lambda path: path.write_bytes(path.read_bytes()[: len(path.read_bytes()) // 2]),
    "a gap": lambda path: path.write_bytes(without_two_lines(path.read_bytes())),
    "other keys": lambda path: path.write_bytes(path.read_bytes().replace(b'"lines":', b'"lions":')),
    "garbage": lambda path: path.write_bytes(path.read_bytes() + b"\xff\xfe garbage\n"),
    "twice": lambda path: path.write_bytes(path.read_bytes() * 2),
    "a folder in its place": lambda path: (path.unlink(), path.mkdir()),
    "no folder": lambda path: shutil.rmtree(path.parent),
}


@pytest.mark.parametrize("harm", HARM.values(), ids=HARM)
def test_whatever_happens_to_the_file_no_line_is_lost_or_told_of_twice(run: Path, harm) -> None:
    used = index_of(run)
    whole = brought_up(run, used)
    harm(file_of(run))
    for index in (used, index_of(run)):
        assert lines_in(brought_up(run, index)) == 3000
        assert lines_in(brought_up(run, index)) == 3000
    assert brought_up(run).blocks[-1].end == whole.blocks[-1].end


def test_a_training_file_that_is_another_now_is_indexed_anew(run: Path) -> None:
    index = index_of(run)
    brought_up(run, index)
    (run / FIRST).write_bytes(steps(1, 500, loss=2.0))
    index.view()
    assert lines_in(brought_up(run, index)) == 500


def test_files_that_went_are_told_of_no_more_and_new_ones_are(run: Path) -> None:
    index = index_of(run)
    add(run / SECOND, steps(3001, 5000, began=NOON + 3600))
    assert lines_in(brought_up(run, index)) == 5000
    (run / FIRST).unlink()
    view = brought_up(run, index)
    assert {block.file for block in view.blocks} == {SECOND} and sum(block.lines for block in view.blocks) == 2000


def test_each_rank_has_an_index_of_its_own(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    for rank in (0, 1, 10):
        add(folder / f"training_metrics_20250730_120000.rank{rank}.jsonl", steps(1, 1000 + rank))
    for rank in (0, 1, 10, 2):
        assert lines_in(brought_up(folder, index_of(folder, rank=rank))) == (1000 + rank if rank != 2 else 0)


def test_garbage_between_the_lines_is_no_line(run: Path) -> None:
    add(run / FIRST, b"\xff\0\n\n[]\n" * 500 + steps(3001, 4000))
    assert lines_in(brought_up(run)) == 4000


def test_links_and_pipes_under_a_files_name_are_passed_over(run: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    add(precious, steps(1, 5000, loss=9.0))
    (run / SECOND).symlink_to(precious)
    os.mkfifo(run / "training_metrics_20250730_140000.jsonl")
    assert lines_in(brought_up(run)) == 3000


def test_who_may_not_write_holds_it_in_memory_and_leaves_no_trace(run: Path) -> None:
    reader = index_of(run, is_writer=False)
    assert lines_in(brought_up(run, reader)) == 3000
    add(run / FIRST, steps(3001, 6000))
    assert lines_in(brought_up(run, reader)) == 6000
    assert list((run / "agent").iterdir()) == []
    assert reader.unsaved_bytes > 0


def test_what_a_full_disk_did_not_take_is_written_when_there_is_room(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "8m") as disk:
        folder = run_folder(disk)
        add(folder / FIRST, steps(1, 20_000))
        filler = disk / "filler"
        with filler.open("wb", buffering=0) as file:
            while True:
                try:
                    file.write(b"x" * 4096)
                except OSError:
                    break
        index = index_of(folder)
        assert lines_in(brought_up(folder, index)) == 20_000
        assert index.unsaved_bytes > 0
        filler.unlink()
        add(folder / FIRST, steps(20_001, 21_000))
        assert lines_in(brought_up(folder, index)) == 21_000
        assert index.unsaved_bytes == 0
        assert lines_in(index_of(folder).view()) == 21_000


def test_what_memory_holds_is_bounded(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_index, "MAX_UNSAVED_BYTES", 2000)
    monkeypatch.setattr(rank_index, "TAIL_BYTES", 1000)
    reader = index_of(run, is_writer=False)
    assert reader.advance(NEVER)
    assert 2000 <= reader.unsaved_bytes < 4000
    assert reader.view().missing > 0


def test_a_run_that_is_gone_has_nothing(run: Path) -> None:
    index = index_of(run)
    brought_up(run, index)
    shutil.rmtree(run)
    assert index.advance(NEVER)
    assert index.view() == View([], 0)


def test_the_names_are_found_without_reading_all_of_it(run: Path) -> None:
    add(run / FIRST, steps(3001, 6000, val_loss=2.0))
    assert told_names(run, "here", 0) == set()
    brought_up(run)
    assert told_names(run, "here", 0) == {"loss", "val_loss"}
    file_of(run).write_bytes(file_of(run).read_bytes()[:-300])
    assert "loss" in told_names(run, "here", 0)


def test_names_that_are_remembered_are_those_of_the_file_as_it_is(run: Path) -> None:
    brought_up(run)
    assert told_names(run, "here", 0) == {"loss"}
    add(run / FIRST, steps(3001, 6000, val_loss=2.0))
    brought_up(run)
    assert told_names(run, "here", 0) == {"loss", "val_loss"}
    file_of(run).unlink()
    assert told_names(run, "here", 0) == set()
