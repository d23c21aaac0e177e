"""What comes in between an append: other threads, forks, signal handlers, Ctrl-C."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.collector.journal.helpers import numbers
from trainvitals.journal.append import Appender


def rotating(folder: Path, max_bytes: int = 1 << 20) -> Appender:
    return Appender(folder, "training_metrics", suffix=".jsonl", max_bytes=max_bytes)


def test_eight_threads_at_once(tmp_path: Path) -> None:
    appender = rotating(tmp_path, max_bytes=20_000)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda thread: [appender.append({"n": thread * 1000 + n}) for n in range(500)], range(8)))
    found = numbers(tmp_path)
    assert sorted(found) == sorted(thread * 1000 + n for thread in range(8) for n in range(500))
    for thread in range(8):
        assert [n for n in found if n // 1000 == thread] == [thread * 1000 + n for n in range(500)]
    assert (appender.counts.written, appender.counts.dropped) == (4000, 0)


def in_child(work: Any) -> int:
    """The exit status of a forked copy of this process that does `work`."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_child_writes_nothing_and_its_parent_goes_on(tmp_path: Path) -> None:
    appender = rotating(tmp_path)
    appender.append({"n": 0})

    def child() -> None:
        assert not appender.append({"n": 99})
        appender.close()
        assert not appender.append({"n": 99})

    assert in_child(child) == 0
    assert appender.append({"n": 1})
    assert numbers(tmp_path) == [0, 1]


def test_a_child_forked_while_a_thread_writes_does_not_hang(tmp_path: Path) -> None:
    appender = rotating(tmp_path)
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            appender.append({"n": 0})

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(20):
            assert in_child(lambda: appender.append({"n": 99})) == 0
    finally:
        done.set()
        thread.join()
    assert set(numbers(tmp_path)) == {0}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("short", [False, True])
def test_a_signal_handler_may_write_in_the_middle_of_a_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str, short: bool
) -> None:
    """The handler stands where Python may run one: just before the system call, or just after."""
    appender = rotating(tmp_path)
    appender.append({"n": 0})
    write = os.write

    def interrupted(fd: int, line: bytes) -> int:
        monkeypatch.setattr(os, "write", write)
        if when == "before":
            assert appender.append({"n": 2, "long": "x" * 50})
        count = write(fd, line[: len(line) // 2] if short else line)
        if when == "after":
            assert appender.append({"n": 2, "long": "x" * 50})
        return count

    monkeypatch.setattr(os, "write", interrupted)
    assert appender.append({"n": 1}) is not short
    assert numbers(tmp_path) == ([0, 2] if short else [0, 1, 2])
    assert appender.counts.dropped == short


def test_a_signal_handler_that_raises_loses_no_record_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    appender = rotating(tmp_path)
    write = os.write

    def interrupted(fd: int, line: bytes) -> int:
        monkeypatch.setattr(os, "write", write)
        write(fd, line)
        appender.append({"n": 1})
        appender.close()
        raise SystemExit

    monkeypatch.setattr(os, "write", interrupted)
    with pytest.raises(SystemExit):
        appender.append({"n": 0})
    assert numbers(tmp_path) == [0, 1]


@pytest.mark.parametrize("part", [0, 5, 10_000])
def test_a_keyboard_interrupt_in_the_middle_of_a_write_leaves_the_file_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    appender = rotating(tmp_path)
    appender.append({"n": 0})
    write = os.write

    def interrupted(fd: int, line: bytes) -> int:
        write(fd, line[:part])
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        appender.append({"n": 1, "text": "longer than the others"})
    monkeypatch.setattr(os, "write", lambda fd, line: write(fd, line[:7]))
    appender.append({"n": 2})
    monkeypatch.setattr(os, "write", write)
    assert appender.append({"n": 3})
    assert numbers(tmp_path) == ([0, 1, 3] if part > 1000 else [0, 3])


def test_real_signals_at_any_moment(tmp_path: Path) -> None:
    appender = rotating(tmp_path, max_bytes=50_000)
    signals = 0

    def handler(*_: object) -> None:
        nonlocal signals
        signals += 1
        appender.append({"n": -signals})

    previous = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
    try:
        written = 0
        while signals < 300:
            appender.append({"n": written})
            written += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    found = numbers(tmp_path)
    assert [n for n in found if n >= 0] == list(range(written))
    assert sorted(-n for n in found if n < 0) == list(range(1, signals + 1))
