"""Indexes kept by an agent: of runs as they go on, of old ones when they are asked for, and never in anybody's way."""

import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import trainvitals as tv
from tests.collector.agent.fakes import FakeGpu, FakeSource
from tests.collector.agent.written import FIRST, NOON, run_folder, steps
from tests.collector.journal.helpers import add
from tests.collector.support import wait_for
from trainvitals.agent import indexing
from trainvitals.agent.indexing import Busy, Indexing
from trainvitals.agent.rank_index import RankIndex
from trainvitals.agent.run_state import RunState
from trainvitals.agent.service import Agent
from trainvitals.journal.run_files import RunFiles
from trainvitals.journal.runs import Rank, claim


def lines_in(root: Path, run: str, host: str, rank: int = 0) -> int:
    """What its file tells of, as another reader sees it."""
    return sum(block.lines for block in RankIndex(root / "runs" / run, host, rank, False)._load({FIRST: 1 << 40}))


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    monkeypatch.setattr(indexing, "ROUND_SECONDS", 0.1)
    agent = Agent([FakeSource([FakeGpu(0)])], tmp_path, interval=0.1, host="here")
    agent.start()
    try:
        yield agent
    finally:
        agent.stop()


def old_run(root: Path, lines: bytes) -> Path:
    """One that ended long ago."""
    folder = run_folder(root, "old")
    add(folder / FIRST, lines)
    for path in (folder / FIRST, folder):
        os.utime(path, (NOON, NOON))
    return folder


def test_a_run_that_lives_is_indexed_as_it_goes_on(agent: Agent) -> None:
    with tv.start("gemma", dir=agent.root) as run:
        for number in range(3000):
            run.log(step=number, loss=1.0)
    index = agent.root / "runs" / "gemma" / "agent" / "here.index.rank0.jsonl"
    told = RankIndex(index.parent.parent, "here", 0, False)
    wait_for(lambda: index.exists() and sum(block.lines for block in told.view().blocks) == 3000)
    wait_for(lambda: len(index.read_bytes().splitlines()) > 10)


def test_an_old_run_is_indexed_when_it_is_asked_for_and_not_before(agent: Agent) -> None:
    folder = old_run(agent.root, steps(1, 5000))
    wait_for(lambda: "old" in {reading.label("run") for reading in agent.runs.past.readings})
    agent.indexing._round()
    assert list((folder / "agent").iterdir()) == []
    view = agent.indexing.view("old", 0)
    assert (sum(block.lines for block in view.blocks), view.missing) == (5000, 0)
    wait_for(lambda: lines_in(agent.root, "old", "here") > 4500)


def test_what_takes_longer_than_somebody_waits_goes_on_without_him(agent: Agent) -> None:
    old_run(agent.root, steps(1, 300_000))
    assert agent.indexing.view("old", 0, seconds=0.0).missing > 0
    wait_for(lambda: agent.indexing.view("old", 0, seconds=0.0).missing == 0, 60)


def test_an_agent_that_has_not_the_journal_writes_nothing_into_it(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    add(folder / FIRST, steps(1, 5000))
    view = Agent([], tmp_path, host="here").indexing.view("gemma", 0)
    assert sum(block.lines for block in view.blocks) == 5000
    assert list((folder / "agent").iterdir()) == []


def ranks(root: Path, count: int) -> list[tuple[Rank, RunFiles]]:
    claimed = [claim(root, "many", rank=rank, world_size=count, run_id="many") for rank in range(count)]
    return [(rank, RunFiles(rank, "many")) for rank in claimed]


def test_each_rank_that_is_read_here_has_an_index(agent: Agent) -> None:
    files = ranks(agent.root, 3)
    for number in range(1000):
        for _, one in files:
            one.metrics.append({"step": number, "loss": 1.0})
    folder = agent.root / "runs" / "many" / "agent"
    wait_for(lambda: {f"here.index.rank{rank}.jsonl" for rank in range(3)} <= {path.name for path in folder.iterdir()})
    for _, one in files:
        one.end("finished")


def indexes(root: Path, *states: RunState) -> Indexing:
    made = Indexing(root, "here", lambda: states)
    made._is_writer = True
    return made


def test_where_one_disk_hangs_the_others_are_answered(tmp_path: Path) -> None:
    for name in ("hangs", "well"):
        add(run_folder(tmp_path, name) / FIRST, steps(1, 1000))
    made = indexes(tmp_path)
    made.view("hangs", 0)
    with made._index(("hangs", 0)).lock:
        with pytest.raises(Busy, match=r"run: 'hangs' cannot be read now: .*disk does not answer"):
            made.view("hangs", 0, seconds=0.1)
        assert made.view("well", 0).missing == 0
        done = threading.Thread(target=made._round, daemon=True)
        done.start()
        done.join(10)
        assert not done.is_alive()


def test_what_nobody_asked_for_lately_is_forgotten_and_a_live_run_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("old", "live"):
        add(run_folder(tmp_path, name) / FIRST, steps(1, 1000))
    live = RunState("live")
    live.rank(0)
    made = indexes(tmp_path, live)
    for name in ("old", "live"):
        made.view(name, 0)
    made._round()
    assert made._indexes.keys() == {("old", 0), ("live", 0)}
    monkeypatch.setattr(indexing, "FORGET_SECONDS", 0.0)
    made._round()
    assert made._indexes.keys() == {("live", 0)}


def test_what_memory_alone_holds_goes_first_where_it_is_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Indexing(tmp_path, "here", lambda: ())
    for name in ("first", "second", "third"):
        add(run_folder(tmp_path, name) / FIRST, steps(1, 1000))
        made.view(name, 0)
    monkeypatch.setattr(indexing, "MAX_UNSAVED_BYTES", made._index(("third", 0)).unsaved_bytes)
    made._round()
    assert made._indexes.keys() == {("third", 0)}


def test_a_run_that_is_deleted_and_one_of_its_name_that_comes_after_it(agent: Agent) -> None:
    folder = run_folder(agent.root, "again")
    add(folder / FIRST, steps(1, 5000))
    assert agent.indexing.view("again", 0).missing == 0
    shutil.rmtree(folder)
    assert agent.indexing.view("again", 0).blocks == []
    assert not folder.exists()
    add(run_folder(agent.root, "again") / FIRST, steps(1, 700))
    assert sum(block.lines for block in agent.indexing.view("again", 0).blocks) == 700


def test_while_a_long_run_is_indexed_ticks_go_on_and_it_ends_in_time(agent: Agent) -> None:
    old_run(agent.root, steps(1, 100_000, **{f"n{number}": 1.5 for number in range(20)}))
    agent.indexing.view("old", 0, seconds=0.0)
    before = agent.snapshot.timestamp
    wait_for(lambda: agent.snapshot.timestamp > before + 0.5)
    began = time.monotonic()
    agent.stop()
    assert time.monotonic() - began < 5
