"""Appending: one write a record, files that rotate, and what may happen to a descriptor or a file."""

import logging
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.collector.journal.helpers import numbers, open_descriptors, whole_lines
from tests.collector.support import wait_for
from trainvitals.journal import append as module
from trainvitals.journal.append import Appender
from trainvitals.journal.record import seconds


class Clock:
    """Stands in for the module's `time`: the wall clock as a test sets it, and as much waiting as it asks for."""

    def __init__(self, now: float = 1_753_878_896.0) -> None:
        self.now, self.passed = now, 0.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return time.monotonic() + self.passed


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


def rotating(folder: Path, max_bytes: int = 1 << 20) -> Appender:
    return Appender(folder, "training_metrics", suffix=".jsonl", max_bytes=max_bytes)


def test_a_record_is_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    write = os.write

    def counted(fd: int, line: bytes) -> int:
        written.append(line)
        return write(fd, line)

    monkeypatch.setattr(os, "write", counted)
    appender = rotating(tmp_path)
    for number in range(20):
        assert appender.append({"n": number, "text": "x" * 100_000})
    assert len(written) == 20
    assert all(line.count(b"\n") == 1 and line.endswith(b"\n") for line in written)
    assert b"".join(written) == b"".join(path.read_bytes() for path in sorted(tmp_path.iterdir()))


def test_the_line_opens_with_the_time_unless_the_record_brings_its_own(tmp_path: Path) -> None:
    appender = Appender(tmp_path, "events.jsonl")
    before = time.time()
    appender.append({"n": 0})
    appender.append({"n": 1, "timestamp": "2025-07-30T12:34:56.789Z"})
    first, second = whole_lines(tmp_path / "events.jsonl")
    assert list(first) == list(second) == ["timestamp", "n"]
    assert before - 0.001 <= (seconds(first["timestamp"]) or 0) <= time.time()
    assert second["timestamp"] == "2025-07-30T12:34:56.789Z"


def test_a_file_of_a_fixed_name_is_gone_on_with(tmp_path: Path) -> None:
    for number in range(3):
        appender = Appender(tmp_path / "deep" / "down", "events.jsonl")
        assert appender.append({"n": number})
        appender.close()
    assert numbers(tmp_path / "deep" / "down") == [0, 1, 2]


@pytest.mark.parametrize("torn", [b'{"n":9', b'{"n":9}', b"\0" * 100, b"x" * 200_000])
def test_a_line_that_a_crash_cut_off_is_taken_away_first(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"n":0}\n' + torn)
    assert Appender(tmp_path, "events.jsonl").append({"n": 1})
    assert numbers(tmp_path) == [0, 1]


def test_what_cannot_be_encoded_is_dropped_counted_and_never_raised(tmp_path: Path) -> None:
    class Failing(Mapping[str, Any]):
        def __getitem__(self, key: str) -> Any:
            raise RuntimeError(key)

        def __iter__(self) -> Iterator[str]:
            return iter("ab")

        def __len__(self) -> int:
            return 2

    appender = rotating(tmp_path)
    endless: list[Any] = []
    endless.append(endless)
    assert not appender.append({"n": endless})
    assert not appender.append(Failing())
    assert not appender.append(12)  # type: ignore[arg-type]
    assert appender.append({"n": 3})
    assert (appender.counts.written, appender.counts.dropped) == (1, 3)
    assert numbers(tmp_path) == [3]


def test_a_full_file_is_followed_by_the_next(tmp_path: Path) -> None:
    appender = rotating(tmp_path, max_bytes=1000)
    for number in range(100):
        assert appender.append({"n": number, "fill": "x" * 50})
    files = sorted(tmp_path.iterdir())
    longest = max(len(line) for path in files for line in path.read_bytes().splitlines(keepends=True))
    assert all(1000 <= path.stat().st_size < 1000 + longest for path in files[:-1])
    assert numbers(tmp_path) == list(range(100))
    assert len(files) > 5
    assert all(path.name.startswith("training_metrics_20") for path in files)


def test_a_line_longer_than_a_file_may_be_gets_one(tmp_path: Path) -> None:
    appender = rotating(tmp_path, max_bytes=100)
    for number in range(3):
        assert appender.append({"n": number, "fill": "x" * 500})
    assert [len(whole_lines(path)) for path in sorted(tmp_path.iterdir())] == [1, 1, 1]


def test_a_new_day_has_a_new_file(tmp_path: Path, clock: Clock) -> None:
    appender = rotating(tmp_path)
    appender.append({"n": 0})
    clock.now += 86400
    clock.passed += 1.5
    appender.append({"n": 1})
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "training_metrics_20250730_123456.jsonl", "training_metrics_20250731_123456.jsonl"]  # fmt: skip
    assert numbers(tmp_path) == [0, 1]


def test_a_file_of_a_fixed_name_stays_whatever_the_day(tmp_path: Path, clock: Clock) -> None:
    appender = Appender(tmp_path, "events.jsonl")
    for number in range(3):
        appender.append({"n": number})
        clock.now += 86400
        clock.passed += 1.5
    assert numbers(tmp_path) == [0, 1, 2]


def test_writers_that_start_in_one_second_have_a_file_each(tmp_path: Path, clock: Clock) -> None:
    appenders = [rotating(tmp_path) for _ in range(3)]
    for number in range(30):
        appenders[number % 3].append({"n": number})
    assert len({appender.path for appender in appenders}) == 3
    assert sorted(numbers(tmp_path)) == list(range(30))
    assert all(len(whole_lines(path)) == 10 for path in tmp_path.iterdir())


def test_a_descriptor_that_was_closed_and_given_away_is_never_written_to(tmp_path: Path, clock: Clock) -> None:
    """A trainer that turns itself into a daemon closes all it has."""
    appender = rotating(tmp_path / "journal")
    appender.append({"n": 0})
    stranger = os.open(tmp_path / "stranger", os.O_WRONLY | os.O_CREAT)
    os.dup2(stranger, appender._fd)
    clock.passed += 1.5
    assert appender.append({"n": 1})
    assert numbers(tmp_path / "journal") == [0, 1]
    assert (tmp_path / "stranger").read_bytes() == b""
    os.closerange(stranger, stranger + 1)


def test_a_descriptor_that_was_closed_is_opened_again(tmp_path: Path) -> None:
    appender = Appender(tmp_path, "events.jsonl")
    appender.append({"n": 0})
    os.close(appender._fd)
    wait_for(lambda: appender.append({"n": 1}))
    assert numbers(tmp_path) == [0, 1]


def test_closing_gives_the_descriptor_back_and_appending_takes_a_new_one(tmp_path: Path) -> None:
    before = open_descriptors()
    appenders = [Appender(tmp_path, f"{number}.jsonl") for number in range(10)]
    for appender in appenders:
        appender.append({"n": 0})
        appender.close()
        appender.close()
    assert open_descriptors() == before
    assert appenders[0].append({"n": 1})
    assert [record["n"] for record in whole_lines(tmp_path / "0.jsonl")] == [0, 1]
    appenders[0].close()


def test_a_file_that_somebody_emptied_is_filled_from_its_start(tmp_path: Path, clock: Clock) -> None:
    appender = Appender(tmp_path, "events.jsonl")
    for number in range(5):
        appender.append({"n": number})
    os.truncate(tmp_path / "events.jsonl", 0)
    clock.passed += 1.5
    assert appender.append({"n": 5})
    assert numbers(tmp_path) == [5]


def test_a_failure_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "journal").write_text("a file where the folder should be")
    appender = rotating(tmp_path / "journal")
    with caplog.at_level(logging.WARNING):
        assert not any(appender.append({"n": number}) for number in range(50))
    assert appender.counts.dropped == 50
    assert len(caplog.records) == 1
    assert "records are dropped" in caplog.text
    assert str(tmp_path / "journal") in caplog.text
