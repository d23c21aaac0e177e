"""`trainvitals demo`: the course it takes, and that nothing of it stays."""

import itertools
import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.collector.support import Served, complaints, serving, wait_for
from trainvitals import demo
from trainvitals.demo import CYCLE_SECONDS, PHASES, RANKS, Trainer, phase_at, scenario_at
from trainvitals.journal.runs import process_files, read_process
from trainvitals.journal.tail import Tail
from trainvitals.sources.simulated import COURSES, SimulatedSource


@pytest.fixture
def temp(tmp_path: Path) -> dict[str, str]:
    """Where a demo's journal goes, so that what it leaves is seen."""
    return {"TMPDIR": str(tmp_path)}


def trainer_of(agent: Served) -> psutil.Process:
    return wait_for(lambda: psutil.Process(agent.process.pid).children())[0]


def is_gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_the_course_goes_through_every_phase_and_begins_again() -> None:
    told = [phase_at(second + 0.5).name for second in range(int(2 * CYCLE_SECONDS))]
    names = [name for name, _ in itertools.groupby(told)]
    assert names == 2 * [phase.name for phase in PHASES]
    assert {"healthy", "data-starved", "throttled", "NaN", "hang"} <= set(names)
    ends = list(itertools.accumulate(phase.seconds for phase in PHASES))
    assert [phase_at(end).name for end in [0, *ends]] == [*(phase.name for phase in PHASES), PHASES[0].name]
    assert all(scenario_at(second) in COURSES for second in range(int(CYCLE_SECONDS)))


def test_a_cycle_is_written_as_a_run_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole cycle in no time: sleeping moves the clock. A run id of the job around it is none of the demo's."""
    monkeypatch.setenv("TRAINVITALS_RUN_ID", "somebody-elses")
    now = [1000.0]
    monkeypatch.setattr(demo.time, "time", lambda: now[0])
    monkeypatch.setattr(demo.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    trainer = Trainer(tmp_path, began=now[0], parent=os.getppid(), seed=5, names=["here"])
    trainer.run_cycle()
    assert now[0] - 1000.0 == pytest.approx(CYCLE_SECONDS, abs=2)
    (folder,) = [path for path in (tmp_path / "runs").iterdir() if path.is_dir()]
    assert folder.name == "demo-gpt"
    assert len(process_files(folder)) == RANKS
    records = [_records(path) for path in sorted(folder.glob("training_metrics_*.jsonl"))]
    assert len(records) == RANKS
    steps = [record["step"] for record in records[0]]
    assert steps == list(range(1, len(steps) + 1))
    assert any(math.isnan(record["loss"]) for record in records[0])
    starved = [record["data_wait_seconds"] / record["step_duration_seconds"] for record in records[0]]
    assert min(starved) < 0.05
    assert max(starved) > 0.4
    slow, quick = ([record["forward_seconds"] for record in records[rank]] for rank in (demo.SLOW_RANK, 0))
    assert max(slow) > 1.4 * max(quick)
    assert _records(folder / "events.rank0.jsonl")[-1]["status"] == "crashed"
    with_checkpoint = {
        record["step"]: record["checkpoint_seconds"] for record in records[0] if "checkpoint_seconds" in record
    }
    assert set(with_checkpoint) == set(range(100, len(steps) + 1, 100))
    told = {read_process(path)["rank"]: read_process(path)["gpus"] for path in process_files(folder)}  # type: ignore[index]
    gpus = SimulatedSource(RANKS, seed=5).discover()
    assert told == {gpu.index: [{"gpu": str(gpu.index), "uuid": gpu.key}] for gpu in gpus}
    trainer.run_cycle()
    assert (tmp_path / "runs" / "demo-gpt-2").is_dir()


def test_a_run_over_two_nodes_is_written_where_its_ranks_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(demo.time, "time", lambda: now[0])
    monkeypatch.setattr(demo.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    Trainer(tmp_path, began=now[0], parent=os.getppid(), seed=5, names=["one", "two"]).run_cycle()
    told = [read_process(path) or {} for name in ("one", "two")
            for path in process_files(tmp_path / name / "runs" / "demo-gpt")]  # fmt: skip
    assert [(rank["rank"], rank["host"], rank["world_size"]) for rank in told] == [
        (rank, "one" if rank < 4 else "two", 8) for rank in range(RANKS)]  # fmt: skip
    assert len({rank["gpus"][0]["uuid"] for rank in told}) == RANKS
    assert told[demo.SLOW_RANK]["gpus"][0]["gpu"] == "2"
    assert (tmp_path / "one" / "runs" / "demo-gpt" / "run.json").exists()
    assert not (tmp_path / "two" / "runs" / "demo-gpt" / "run.json").exists()


def test_one_gpu_s_fault_is_the_last_node_s_and_the_load_is_everyone_s() -> None:
    at = {phase.scenario: end - 1 for phase, end in zip(
        PHASES, itertools.accumulate(phase.seconds for phase in PHASES), strict=True)}  # fmt: skip
    first, last = (demo.gpus(node, 2, seed=0).discover()[0]._schedule for node in (0, 1))
    for scenario, second in at.items():
        assert last(second) == scenario
        assert first(second) == (scenario if scenario in ("healthy", "starved", "hang") else "healthy")


def test_two_nodes_have_a_page_and_findings_each_and_leave_nothing(
    temp: dict[str, str], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    port = _two_free_ports()
    rules = tmp_path_factory.mktemp("rules") / "alerts.yml"
    rules.write_text("- {name: Steps, when: step > 0, severity: info}\n")
    words = ("--nodes", "2", "--port", str(port), "--rules", str(rules))
    with serving(tmp_path, *words, command="demo", env=temp) as agent:
        run = wait_for(lambda: _whole_run(agent, ranks=4))
        assert [rank["rank"] for rank in run["ranks"]] == [0, 1, 2, 3]
        other = Served(agent.process, f"http://127.0.0.1:{port + 1}", agent.folder)
        run = wait_for(lambda: _whole_run(other, ranks=4))
        assert [rank["rank"] for rank in run["ranks"]] == [4, 5, 6, 7]
        assert (run["run"], run["world_size"]) == ("demo-gpt", "8")
        assert [node.snapshot()["node"] for node in (agent, other)][1] == "demo-2"
        for node in (agent, other):
            wait_for(lambda node=node: '"Steps"' in node.get("/api/v1/findings?state=open"))
        trainer = trainer_of(agent)
        agent.process.terminate()
        assert agent.process.wait(timeout=10) == 0
        assert is_gone(trainer)
        assert list(tmp_path.iterdir()) == []


def _two_free_ports() -> int:
    while True:
        with socket.socket() as one, socket.socket() as other, suppress(OSError):
            one.bind(("127.0.0.1", 0))
            other.bind(("127.0.0.1", one.getsockname()[1] + 1))
            return int(one.getsockname()[1])


def test_every_phase_but_the_first_is_announced_as_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    now, told = [1000.0], []

    def sleep(seconds: float) -> None:
        now[0] += seconds
        if now[0] > 1000 + 2 * CYCLE_SECONDS:
            raise EOFError

    monkeypatch.setattr(demo.time, "time", lambda: now[0])
    monkeypatch.setattr(demo.time, "sleep", sleep)
    with pytest.raises(EOFError):
        demo.announce(lambda text: told.append((now[0] - 1000, text)))
    assert [text.split(":")[1].strip() for _, text in told] == [
        f"{phase.name} for {phase.seconds:g} s" for phase in (2 * PHASES + PHASES[:1])[1:]]  # fmt: skip
    assert all(phase_at(at).name in text for at, text in told)
    assert "phase: data-starved for 30 s: data wait rises, GPU utilisation falls" in told[0]


def test_the_readme_names_every_phase() -> None:
    readme = (Path(__file__).parents[3] / "README.md").read_text()
    assert all(f"| {phase.name} | {phase.seconds:g} s | {phase.told.partition(';')[0]}" in readme for phase in PHASES)


def _records(path: Path) -> list[dict]:
    tail = Tail()
    tail.follow(path)
    return list(itertools.chain.from_iterable(iter(lambda: tail.read(path), [])))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_comes_up_and_leaves_nothing(temp: dict[str, str], tmp_path: Path, number: int) -> None:
    with serving(tmp_path, "--seed", "3", command="demo", env=temp) as agent:
        run = wait_for(lambda: _whole_run(agent))
        assert (run["run"], run["status"], run["world_size"]) == ("demo-gpt", "running", "8")
        assert len(agent.snapshot()["gpus"]) == 8
        uuids = {str(gpu["gpu"]): gpu["uuid"] for gpu in agent.snapshot()["gpus"]}
        assert {gpu["gpu"]: gpu["uuid"] for rank in run["ranks"] for gpu in rank["gpus"]} == uuids
        assert "training_gpu_info{" in agent.get("/metrics")
        trainer = trainer_of(agent)
        assert list(tmp_path.glob("trainvitals-demo-*"))
        began = time.monotonic()
        agent.process.send_signal(number)
        assert agent.process.wait(timeout=10) == 0
        assert time.monotonic() - began < 2
        assert is_gone(trainer)
        assert list(tmp_path.iterdir()) == []
        assert complaints(agent.process) == []


def _whole_run(agent: Served, ranks: int = RANKS) -> dict:
    runs = agent.snapshot()["runs"]
    return runs[0] if runs and len(runs[0]["ranks"]) == ranks and runs[0]["ranks"][-1].get("step") else {}


def test_killed_it_takes_the_trainer_and_the_journal_along(temp: dict[str, str], tmp_path: Path) -> None:
    with serving(tmp_path, command="demo", env=temp) as agent:
        trainer = trainer_of(agent)
        wait_for(lambda: _whole_run(agent))
        agent.process.kill()
        agent.process.wait(timeout=10)
        wait_for(lambda: is_gone(trainer))
        wait_for(lambda: list(tmp_path.iterdir()) == [])


@pytest.mark.parametrize("flags", [("--host", "203.0.113.1"), ("--web-config", "WEB")])
def test_it_leaves_nothing_when_it_cannot_begin(tmp_path: Path, flags: tuple[str, str]) -> None:
    web = tmp_path / "web.yml"
    web.write_text("nonsense: 1\n")
    temp = tmp_path / "temp"
    temp.mkdir()
    words = [
        sys.executable,
        "-m",
        "trainvitals.cli",
        "demo",
        "--port",
        "0",
        flags[0],
        flags[1].replace("WEB", str(web)),
    ]
    answer = subprocess.run(words, capture_output=True, text=True, timeout=20, check=False,
                            env={**os.environ, "TMPDIR": str(temp)})  # fmt: skip
    assert answer.returncode == 2
    assert answer.stderr.count("\n") == 1
    assert list(temp.iterdir()) == []
    assert not [process for process in _trainers() if str(temp) in " ".join(process.info["cmdline"] or [])]


def _trainers() -> Iterator[psutil.Process]:
    return psutil.process_iter(["cmdline"])


def test_a_signal_at_any_time_leaves_nothing(tmp_path: Path) -> None:
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    for delay in (0.2, 0.3, 0.4, 0.6):
        process = subprocess.Popen([sys.executable, "-m", "trainvitals.cli", "demo", "--port", "0"], env=env,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)  # fmt: skip
        time.sleep(delay)
        process.terminate()
        _, err = process.communicate(timeout=10)
        assert process.returncode in (0, -signal.SIGTERM)
        assert "Traceback" not in err
    wait_for(lambda: list(tmp_path.iterdir()) == [])
