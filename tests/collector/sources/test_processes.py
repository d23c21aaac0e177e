"""Who holds a GPU: by /proc, and without what may be secret."""

import os
import pwd
from pathlib import Path

import psutil
import pytest

from trainvitals.model import Reading, Snapshot
from trainvitals.sources import processes
from trainvitals.sources.processes import MOST_PROCESSES, command, process_readings, who
from trainvitals.web.views import gpus_view

GPU = (("gpu", "0"), ("uuid", "GPU-0"))


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))
    return tmp_path


def process(proc: Path, pid: int, *words: str, comm: str = "x") -> None:
    (proc / str(pid)).mkdir()
    (proc / str(pid) / "cmdline").write_bytes("".join(f"{word}\0" for word in words).encode("utf-8", "surrogateescape"))
    (proc / str(pid) / "comm").write_text(comm + "\n")


def test_user_and_command(proc: Path) -> None:
    process(proc, 7, "/usr/bin/python3", "-u", "train.py", "--api-key", "hush")
    assert who(7) == (pwd.getpwuid(os.getuid()).pw_name, "python3 train.py")
    process(proc, 8, comm="kworker/0")
    assert who(8)[1] == "kworker/0"
    assert who(9) == ("", "")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["python", "/home/ada/train.py", "--lr", "1"], "python train.py"),
        (["/opt/bin/python3.11", "-X", "dev", "-W", "error", "-O", "a/b.py"], "python3.11 b.py"),
        (["python", "-m", "torch.distributed.run", "--rdzv", "hush"], "python -m torch.distributed.run"),
        (["python", "-c", "password='hush'"], "python -c"),
        (["python"], "python"),
        (["ray::train_worker(hush) --token hush"], "ray::train_worker(hush)"),
        (["/usr/bin/vllm", "serve", "--api-key", "hush"], "vllm"),
        (["bash", "-c", "KEY=hush train"], "bash"),
        ([], ""),
        (["", ""], ""),
        (["x" * 500], "x" * 80),
    ],
)
def test_of_the_arguments_only_the_script_is_told(words: list[str], told: str) -> None:
    assert command(words) == told


def test_in_a_container_a_number_stands_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_sees_host", lambda: False)
    assert who(os.getpid()) == ("", "")
    monkeypatch.setattr(processes, "_sees_host", lambda: True)
    assert who(os.getpid())[0] == pwd.getpwuid(os.getuid()).pw_name


def test_many_processes_are_counted_all_and_told_of_some(proc: Path) -> None:
    sums, *each = process_readings(GPU, [(number, number * 2**20) for number in range(1, 200)], 1.0)
    assert sums.values["compute_processes"] == 199.0 and len(each) == MOST_PROCESSES
    assert each[0].label("pid") == "199"
    assert process_readings(GPU, [], 1.0) == [
        Reading("gpu", GPU, {"compute_processes": 0.0, "compute_processes_memory_bytes": 0}, 1.0)]  # fmt: skip


def test_processes_stand_with_their_gpu_in_what_page_and_terminal_read(proc: Path) -> None:
    process(proc, 7, "python", "train.py")
    other = (("gpu", "1"), ("uuid", "GPU-1"))
    readings = [*process_readings(GPU, [(7, 2**20), (9, None)], 1.0), Reading("gpu", other, {}, 1.0)]
    first, second = gpus_view(Snapshot(1.0, tuple(readings)))
    user = pwd.getpwuid(os.getuid()).pw_name
    assert first["processes"] == [{"pid": "7", "user": user, "command": "python train.py", "memory_bytes": 2.0**20},
                                  {"pid": "9", "user": "", "command": ""}]  # fmt: skip
    assert "processes" not in second
