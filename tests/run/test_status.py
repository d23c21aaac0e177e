"""A run's status as its reader sees it: what the run said itself, and what the agent saw, are one."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.collector.support import wait_for
from tests.run.support import environment, events, lines, losses, run_folders, run_json, started, stop
from trainvitals.agent.runs import Runs
from trainvitals.journal import layout
from trainvitals.journal.record import decode

RUN = """
import sys, time
import trainvitals as tv
run = tv.start("x", resume=True)
with run.step():
    pass
run.log(loss=1.0)
print("running", flush=True)
exec(sys.argv[1])
"""
ENDS = {"pass": "finished", "1 / 0": "crashed", "time.sleep(60)": "killed"}


@contextmanager
def reader(journal: Path) -> Iterator[Runs]:
    reading = Runs(journal, layout.host_name())
    reading.start()
    try:
        yield reading
    finally:
        reading.stop()


def status(reading: Runs) -> str:
    states = reading.states()
    return states[0].status if states else ""


def test_every_reader_shows_one_status_of_a_run_that_is_killed_resumed_and_ends(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    with reader(tmp_path) as reading:
        for rest in ("time.sleep(60)", "1 / 0", "time.sleep(60)", "pass"):
            process = started(RUN, rest, journal=tmp_path)
            assert process.stdout is not None and process.stdout.readline() == "running\n"
            if ENDS[rest] == "killed":
                wait_for(lambda: status(reading) == "running")
                stop(process)
            process.communicate(timeout=20)
            wait_for(lambda expected=ENDS[rest]: status(reading) == expected)
    (run,) = run_folders(tmp_path)
    killed = [decode(line) for path in (run / "agent").iterdir() for line in path.read_bytes().splitlines()]
    assert [(line["status"], line["rank"]) for line in killed] == [("killed", 0)] * 2
    assert [line["step"] for line in lines(run)] == [1, 2, 3, 4] and run_json(run)["status"] == "finished"
    assert [end["status"] for end in events(run, "end")] == ["crashed", "finished"]


ENDS_ITSELF = """
import os, signal
def last(number, frame):
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
signal.signal(signal.SIGTERM, last)
with run.step():
    print("ready", flush=True)
time.sleep(60)
"""


def test_a_handler_that_lets_the_signal_end_the_program_after_all_was_preempted_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    with reader(tmp_path) as reading:
        process = started(RUN, ENDS_ITSELF, journal=tmp_path)
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["running\n", "ready\n"]
        wait_for(lambda: status(reading) == "running")
        stop(process, signal.SIGTERM)
        assert process.returncode == -signal.SIGTERM
        wait_for(lambda: status(reading) != "running")
        assert status(reading) == "preempted" and events(run_folders(tmp_path)[0], "end") == []
    assert os.listdir(run_folders(tmp_path)[0] / "agent") == []


RANK = """
import os, sys
import torch, torch.distributed as dist
import trainvitals as tv
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=int(os.environ["RANK"]), world_size=2)
rank = dist.get_rank()
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
run = tv.start("ddp", {"lr": 0.1}, framework="torch")
run.watch(model, every=2)
assert (run.rank, run.world_size) == (rank, 2)
for number in range(1, 21):
    with run.step():
        with run.phase("forward"):
            loss = model(torch.full((8, 4), float(number))).square().mean() * 1e-4
        loss.backward()
    run.log(loss=loss)
    if number == 15 and rank == 1 and sys.argv[2] == "crash":
        raise ValueError("a bad batch")
weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
print(run.id, float(weights.sum()), flush=True)
run.finish()
"""


def launch(tmp_path: Path, what: str) -> list["subprocess.Popen[str]"]:
    """Two ranks, as torchrun starts them."""
    pytest.importorskip("torch", reason="torch is not installed: make trainers")
    common = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "job7", "GLOO_SOCKET_IFNAME": "lo"}
    return [
        subprocess.Popen([sys.executable, "-c", RANK, str(tmp_path / "group"), what], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True,
                         env=environment(tmp_path / "journal", RANK=str(rank), LOCAL_RANK=str(rank), **common))
        for rank in range(2)
    ]  # fmt: skip


def test_two_ranks_of_a_launch_write_one_run_each_its_own_files(tmp_path: Path) -> None:
    ended = [process.communicate(timeout=60) for process in launch(tmp_path, "well")]
    assert [errors for _, errors in ended] == ["", ""] and ended[0][0] == ended[1][0]
    (run,) = run_folders(tmp_path / "journal")
    assert run.name == "ddp-job7" and run_json(run)["world_size"] == 2 and run_json(run)["status"] == "finished"
    for rank in range(2):
        written = lines(run, f"training_metrics_*.rank{rank}.jsonl")
        assert {line["step"] for line in written if "loss" in line} == set(range(1, 21))
        assert [line["status"] for line in lines(run, f"events.rank{rank}.jsonl") if line["event"] == "end"] == [
            "finished"
        ]
    assert {path.name for path in run.glob("process.*")} == {"process.rank0.json", "process.rank1.json"}
    assert len(losses(run)) == 20


def test_a_rank_that_crashes_is_why_the_run_did_though_the_launcher_ended_the_others(tmp_path: Path) -> None:
    first, second = launch(tmp_path, "crash")
    assert "ValueError: a bad batch" in second.communicate(timeout=60)[1]
    first.send_signal(signal.SIGTERM)  # it waits for the other's gradients, and says so once gloo gives up
    first.communicate(timeout=60)
    (run,) = run_folders(tmp_path / "journal")
    assert run_json(run)["status"] in ("preempted", "crashed") and first.returncode != 0
    with reader(tmp_path / "journal") as reading:
        wait_for(lambda: status(reading) not in ("", "running"))
        assert status(reading) == "crashed"
        if run_json(run)["status"] == "preempted":
            assert reading.states()[0].info["error"] == "ValueError: a bad batch"
    assert os.listdir(run / "agent") == []
