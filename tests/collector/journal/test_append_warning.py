"""What is told of a failure is told with no lock held: a handler of the log may write records itself."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.collector.support import wait_for
from trainvitals.journal import append
from trainvitals.journal.append import Appender


class Forwarding(logging.Handler):
    """Makes a record of each line of the log, while it holds its own lock as every handler does."""

    def __init__(self, appender: Appender) -> None:
        super().__init__()
        self.appender = appender
        self.told: list[str] = []
        self.is_inside = threading.Event()
        self.may_go_on = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(record.getMessage())
        self.is_inside.set()
        self.may_go_on.wait(10)
        self.appender.append({"log": len(self.told)})


@contextmanager
def forwarding(appender: Appender) -> Iterator[Forwarding]:
    root, handler = logging.getLogger(), Forwarding(appender)
    root.addHandler(handler)
    try:
        yield handler
    finally:
        handler.may_go_on.set()
        root.removeHandler(handler)


def assert_both_end(handler: Forwarding, appender: Appender) -> None:
    """One thread is within the log's handler, and will write; the other writes, fails, and has to tell of it."""
    other = threading.Thread(target=logging.getLogger("user").warning, args=("hello",), daemon=True)
    other.start()
    assert handler.is_inside.wait(10)
    training = threading.Thread(target=appender.append, args=({"n": 1},), daemon=True)
    training.start()
    training.join(0.1)
    handler.may_go_on.set()
    for thread in (other, training):
        thread.join(10)
        assert not thread.is_alive()


def test_a_log_handler_that_writes_records_meets_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    appender = Appender(tmp_path / "file", "events.jsonl")
    with forwarding(appender) as handler:
        assert_both_end(handler, appender)
    assert sum("records are dropped" in text for text in handler.told) == 1
    assert appender.counts.dropped == 3


def test_a_log_handler_that_writes_records_meets_a_slow_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(append, "SLOW_WRITE_SECONDS", -1.0)
    appender = Appender(tmp_path, "events.jsonl")
    with forwarding(appender) as handler:
        assert_both_end(handler, appender)
        appender.close()
        wait_for(lambda: any("took over 20 ms" in text for text in handler.told), seconds=10)
        wait_for(lambda: (tmp_path / "events.jsonl").read_bytes().count(b"\n") == 3, seconds=10)


def test_what_comes_while_our_lock_is_held_is_told_later(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As it is where a signal handler comes into a write."""
    appender = Appender(tmp_path / "file" / "folder", "events.jsonl")
    (tmp_path / "file").touch()
    with appender._lock:
        assert not appender.append({"n": 1})
        told_within = len(caplog.records)
    assert not appender.append({"n": 2})
    assert (told_within, len(caplog.records)) == (0, 1)
