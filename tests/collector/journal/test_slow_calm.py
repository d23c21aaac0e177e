"""Storage that was slow once is written to directly again when it has long been quick."""

import os
import threading
from pathlib import Path

import pytest

from tests.collector.journal.helpers import numbers
from tests.collector.support import wait_for
from trainvitals.journal import append, slow
from trainvitals.journal.append import Appender


def write_slowly(appender: Appender, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as once:
        once.setattr(append, "SLOW_WRITE_SECONDS", -1.0)
        assert appender.append({"n": number})


def test_after_a_calm_writes_are_direct_again_and_the_next_calm_lasts_twice_as_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow, "CALM_SECONDS", 0.2)
    appender = Appender(tmp_path, "training_metrics", suffix=".jsonl", max_bytes=1 << 20)
    write_slowly(appender, 0, monkeypatch)
    queue = appender._queue
    assert queue is not None and appender.is_queued
    assert appender.append({"n": 1})
    wait_for(lambda: not appender.is_queued)
    monkeypatch.setattr(queue, "put", None)  # whatever calls it fails
    assert appender.append({"n": 2})
    write_slowly(appender, 3, monkeypatch)
    assert appender.is_queued and appender._queue is queue
    assert queue._calm_seconds == 0.4
    wait_for(lambda: not appender.is_queued)
    appender.close()
    assert numbers(tmp_path) == [0, 1, 2, 3]


def test_network_storage_is_never_written_to_directly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow, "is_slow", lambda folder: True)
    monkeypatch.setattr(slow, "CALM_SECONDS", 0.0)
    appender = Appender(tmp_path, "training_metrics", suffix=".jsonl", max_bytes=1 << 20)
    assert appender.append({"n": 0})
    appender.close()
    assert numbers(tmp_path) == [0]
    assert appender.is_queued


def test_a_write_that_hangs_holds_no_other_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    appender = Appender(tmp_path, "training_metrics", suffix=".jsonl", max_bytes=1 << 20)
    assert appender.append({"n": 0})
    monkeypatch.setattr(append, "SLOW_WRITE_SECONDS", 0.02)
    hangs, go = threading.Event(), threading.Event()
    write = os.write

    def hanging(fd: int, lines: bytes) -> int:
        hangs.set()
        assert go.wait(60)
        return write(fd, lines)

    monkeypatch.setattr(os, "write", hanging)
    stuck = threading.Thread(target=appender.append, args=({"n": 1},))
    stuck.start()
    assert hangs.wait(10)
    others = [threading.Thread(target=appender.append, args=({"n": number},)) for number in range(2, 6)]
    for other in others:
        other.start()
    for other in others:
        other.join(10)
    assert not any(other.is_alive() for other in others) and stuck.is_alive()
    go.set()
    stuck.join(10)
    appender.close()
    assert sorted(numbers(tmp_path)) == list(range(6))
    assert appender.counts.dropped == 0
