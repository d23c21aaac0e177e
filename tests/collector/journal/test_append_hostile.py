"""What another user may have put where the agent writes: links and pipes, which nothing is written into."""

import os
from pathlib import Path

import pytest

from tests.collector.journal.helpers import numbers
from trainvitals.journal.append import Appender


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "victim" / "node.jsonl"
    path.parent.mkdir()
    path.write_bytes(b"somebody else's, without a newline at its end")
    return path


def assert_dropped(appender: Appender) -> None:
    assert not appender.append({"n": 0})
    assert (appender.counts.written, appender.counts.dropped) == (0, 1)


def test_a_link_under_the_files_name_is_not_followed(tmp_path: Path, victim: Path) -> None:
    before = victim.read_bytes()
    folder = tmp_path / "agent"
    folder.mkdir()
    (folder / "node.jsonl").symlink_to(victim)
    assert_dropped(Appender(folder, "node.jsonl"))
    assert victim.read_bytes() == before


def test_a_link_in_place_of_the_folder_is_not_followed(tmp_path: Path, victim: Path) -> None:
    before = victim.read_bytes()
    (tmp_path / "agent").symlink_to(victim.parent)
    assert_dropped(Appender(tmp_path / "agent", "node.jsonl"))
    assert_dropped(Appender(tmp_path / "agent", "training_metrics", suffix=".jsonl", max_bytes=100))
    assert victim.read_bytes() == before
    assert os.listdir(victim.parent) == ["node.jsonl"]


def test_a_pipe_is_neither_waited_for_nor_written_into(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "node.jsonl")
    reader = os.open(tmp_path / "node.jsonl", os.O_RDONLY | os.O_NONBLOCK)
    before = len(os.listdir("/proc/self/fd"))
    assert_dropped(Appender(tmp_path, "node.jsonl"))
    assert os.read(reader, 100) == b""
    assert len(os.listdir("/proc/self/fd")) == before
    os.close(reader)


def test_the_journal_itself_may_lie_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "root").symlink_to(tmp_path / "disk")
    assert Appender(tmp_path / "root" / "runs" / "one", "events.jsonl").append({"n": 1})
    assert numbers(tmp_path / "disk" / "runs" / "one") == [1]
