"""Storage that makes a writer wait: known from the mount table, or by its first slow write; then nobody waits."""

import logging
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from tests.collector.journal.helpers import numbers
from tests.collector.support import wait_for
from trainvitals.journal import append, runs, slow
from trainvitals.journal.append import Appender
from trainvitals.journal.run_files import RunFiles

TABLE = r"""
21 1 254:0 / / rw,relatime - ext4 /dev/vda rw
22 21 0:20 / /proc rw - proc proc rw
30 21 0:40 / /home rw shared:1 - nfs4 server:/home rw,vers=4.2
31 30 0:41 / /home/local rw master:1 propagate_from:2 - xfs /dev/vdb rw
32 21 0:42 / /mnt/a\040b\134c rw - cifs //server/share rw
33 21 0:43 / /mnt/sshfs rw - fuse.sshfs host:/ rw
34 21 0:44 / /hidden/deep rw - nfs server:/ rw
35 21 0:45 / /hidden rw - tmpfs tmpfs rw
36 21 0:46 / /twice rw - nfs server:/ rw
37 36 0:47 / /twice rw - ext4 /dev/vdc rw
38 21 0:48 / /übung rw - lustre mgs@tcp:/ rw
39 21 0:49 / /fused rw - fuseblk /dev/sdz rw
40 21 0:50 / /over rw - overlay overlay rw
garbage
"""


def is_slow(tmp_path: Path, path: str, table: str = TABLE) -> bool:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(table)
    return slow.is_slow(Path(path), str(mounts))


@pytest.mark.parametrize(
    ("path", "expected"),
    [("/", False), ("/var/lib/x", False), ("/home", True), ("/home/me/deep/down", True), ("/homes", False),
     ("/home/local/x", False), ("/mnt/a b\\c/x", True), ("/mnt/a b", False), ("/mnt/sshfs/x", True),
     ("/hidden/deep/x", False), ("/hidden", False), ("/twice/x", False), ("/übung/x", True), ("/fused", True),
     ("/over/x", False), ("/home/local/../x", True)],
)  # fmt: skip
def test_the_mount_that_a_path_lies_on_decides(tmp_path: Path, path: str, expected: bool) -> None:
    assert is_slow(tmp_path, path) is expected


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "lustre", "gpfs", "beegfs", "fuse",
                                  "fuse.gcsfuse", "fuse.s3fs", "glusterfs", "virtiofs"])  # fmt: skip
def test_a_root_on_the_network_is_slow(tmp_path: Path, kind: str) -> None:
    assert is_slow(tmp_path, "/var", f"1 1 0:1 / / rw - {kind} x rw\n")
    assert not is_slow(tmp_path, "/var", f"1 0 0:1 / / rw - {kind} x rw\n2 1 0:2 / / rw - ext4 /dev/vda rw\n")


@pytest.mark.parametrize("table", ["", "\n\n", "1 2 3", "a b c d e", " - ", "1 1 0:1 / /a rw - nfs x rw", "\0" * 40])
def test_a_table_that_says_nothing_is_no_reason_to_queue(tmp_path: Path, table: str) -> None:
    assert not is_slow(tmp_path, "/a", table)


def test_a_link_to_slow_storage_is_followed(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 0 0:1 / / rw - ext4 x rw\n2 1 0:2 / {tmp_path}/nfs rw - nfs x rw\n")
    (tmp_path / "nfs").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nfs")
    assert slow.is_slow(tmp_path / "link" / "run", str(mounts))


def test_without_a_table_nothing_is_slow(tmp_path: Path) -> None:
    assert not slow.is_slow(tmp_path, str(tmp_path / "none"))
    assert isinstance(slow.is_slow(tmp_path), bool)


class Hang:
    """A write that does not come back until it is let go."""

    def __init__(self) -> None:
        self.go, self.reached = threading.Event(), threading.Event()
        self.blocks: list[bytes] = []

    def __call__(self, block: bytes) -> None:
        self.reached.set()
        assert self.go.wait(30)
        self.blocks.append(block)


@pytest.fixture
def hang() -> Iterator[Hang]:
    made = Hang()
    yield made
    made.go.set()


def test_a_write_that_hangs_keeps_no_caller(hang: Hang) -> None:
    queue = slow.Queue(hang)
    queue.put(b"first\n")
    assert hang.reached.wait(10)
    taken = sum(queue.put(b"x\n") for _ in range(slow.MAX_LINES + 500))
    assert taken == slow.MAX_LINES
    assert not queue.put(b"x\n")
    hang.go.set()
    wait_for(lambda: sum(block.count(b"\n") for block in hang.blocks) == slow.MAX_LINES + 1)
    assert queue.put(b"again\n")
    wait_for(lambda: hang.blocks[-1] == b"again\n")


def test_the_queue_is_bounded_in_bytes_too(hang: Hang) -> None:
    queue = slow.Queue(hang)
    line = b"x" * (1 << 20)
    assert sum(queue.put(line) for _ in range(50)) == slow.MAX_BYTES // len(line)
    assert not queue.put(line)
    hang.go.set()
    wait_for(lambda: queue.put(line))


def test_closing_waits_for_what_is_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []

    def slowly(block: bytes) -> None:
        time.sleep(0.05)
        written.append(block)

    queue = slow.Queue(slowly)
    for number in range(100):
        queue.put(b"%d\n" % number)
        if number == 50:
            wait_for(lambda: written)
    queue.close()
    assert b"".join(written) == b"".join(b"%d\n" % number for number in range(100))


def test_closing_gives_up_where_the_storage_does_not_answer(hang: Hang, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow, "FLUSH_SECONDS", 0.2)
    queue = slow.Queue(hang)
    queue.put(b"x\n")
    began = time.monotonic()
    queue.close()
    assert 0.2 <= time.monotonic() - began < 10
    assert not hang.blocks


class Yielding(bytes):
    """A line that gives way to the other threads in the middle of being counted."""

    def __len__(self) -> int:
        time.sleep(0.0001)
        return super().__len__()


def test_threads_that_put_at_once_leave_the_count_right(hang: Hang) -> None:
    queue = slow.Queue(hang)
    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(lambda _: all(queue.put(Yielding(b"1234\n")) for _ in range(50)), range(8)))
    assert queue._bytes == 8 * 50 * 5
    hang.go.set()
    wait_for(lambda: queue._bytes == 0)
    assert sum(map(len, hang.blocks)) == 8 * 50 * 5


def test_a_process_that_can_start_no_thread_keeps_its_records(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    written: list[bytes] = []
    queue = slow.Queue(written.append)
    with monkeypatch.context() as broken:
        broken.setattr(threading.Thread, "start", refused)
        assert queue.put(b"one\n")
    assert queue.put(b"two\n")
    wait_for(lambda: b"".join(written) == b"one\ntwo\n")


def rotating(folder: Path) -> Appender:
    return Appender(folder, "training_metrics", suffix=".jsonl", max_bytes=1 << 20)


def test_on_slow_storage_records_go_through_the_queue_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(slow, "is_slow", lambda folder: True)
    threads = set()
    write = os.write

    def told(fd: int, lines: bytes) -> int:
        threads.add(threading.current_thread())
        return write(fd, lines)

    monkeypatch.setattr(os, "write", told)
    with caplog.at_level(logging.WARNING):
        appender = rotating(tmp_path)
        assert all(appender.append({"n": number}) for number in range(500))
        appender.close()
    assert numbers(tmp_path) == list(range(500))
    assert (appender.counts.written, appender.counts.dropped) == (500, 0)
    assert threading.main_thread() not in threads
    assert [record.message.count("network storage") for record in caplog.records] == [1]


def test_one_slow_write_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    appender = rotating(tmp_path)
    assert appender.append({"n": 0})
    assert appender._queue is None
    with caplog.at_level(logging.WARNING), monkeypatch.context() as once:
        once.setattr(append, "SLOW_WRITE_SECONDS", -1.0)
        assert appender.append({"n": 1})
    assert appender._queue is not None
    assert all(appender.append({"n": number}) for number in range(2, 100))
    appender.close()
    assert numbers(tmp_path) == list(range(100))
    assert [record.message.count("over 20 ms") for record in caplog.records] == [1]


def test_storage_that_hangs_blocks_no_training_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow, "is_slow", lambda folder: True)
    monkeypatch.setattr(slow, "FLUSH_SECONDS", 0.3)
    monkeypatch.setattr(slow, "MAX_LINES", 100)
    go = threading.Event()
    write = os.write

    def hanging(fd: int, lines: bytes) -> int:
        assert go.wait(60)
        return write(fd, lines)

    monkeypatch.setattr(os, "write", hanging)
    appender = rotating(tmp_path)
    try:
        began = time.monotonic()
        taken = [n for n in range(1000) if appender.append({"n": n})]
        appender.close()
        assert time.monotonic() - began < 20
        assert 100 <= len(taken) <= 300
        assert appender.counts.dropped == 1000 - len(taken)
    finally:
        go.set()
    wait_for(lambda: appender.counts.written == len(taken))
    assert numbers(tmp_path) == taken


def test_a_forked_child_of_a_queueing_writer_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow, "is_slow", lambda folder: True)
    appender = rotating(tmp_path)
    appender.append({"n": 0})
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            appender.append({"n": 99})
            appender.close()
        os._exit(0)
    os.waitpid(child, 0)
    appender.append({"n": 1})
    appender.close()
    assert numbers(tmp_path) == [0, 1]


def test_files_that_are_closed_together_share_one_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow, "is_slow", lambda folder: True)
    go = threading.Event()
    monkeypatch.setattr(os, "write", lambda fd, lines: go.wait(60) and len(lines))
    appenders = [rotating(tmp_path / str(number)) for number in range(6)]
    try:
        assert all(appender.append({"n": 0}) for appender in appenders)
        began = time.monotonic()
        for appender in appenders:
            appender.close(began + 0.5)
        assert 0.5 <= time.monotonic() - began < 1.5
    finally:
        go.set()


def test_the_end_of_a_run_waits_once_for_all_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float | None] = []
    files = RunFiles(runs.claim(tmp_path, "train", environ={}), "train")
    monkeypatch.setattr(append.Appender, "close", lambda self, deadline=None: given.append(deadline))
    files.end("finished")
    assert len(given) == 2
    assert given[0] == given[1] is not None
