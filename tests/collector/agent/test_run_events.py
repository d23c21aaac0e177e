"""What happened in a run, from what its ranks and the agents wrote of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.collector.agent.written import FIRST, NOON, run_folder, steps
from tests.collector.journal.helpers import add
from trainvitals.agent.rank_index import RankIndex
from trainvitals.agent.run_events import MAX_TEXT, events
from trainvitals.journal.record import encode, timestamp_at

Json = dict[str, Any]


def tell(folder: Path, name: str, *told: Json) -> None:
    for at, record in enumerate(told):
        add(folder / name, encode({"timestamp": timestamp_at(NOON + record.pop("at", at)), **record}))


def found(folder: Path, limit: int = 1000) -> list[Json]:
    def blocks() -> Any:
        index = RankIndex(folder, "here", 0)
        index.advance(lambda: False)
        return index.view().blocks

    return list(events(folder, blocks, limit)["events"])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return run_folder(tmp_path)


def test_each_kind_of_event(run: Path) -> None:
    tell(run, "events.rank0.jsonl",
         {"event": "checkpoint", "step": 10, "path": "/data/10.pt"},
         {"event": "note", "step": 11, "text": "lower lr", "more": 7},
         {"event": "alert", "step": 12, "name": "MyRule", "severity": "ticket", "message": "loss is odd"},
         {"event": "signal", "step": 13, "signal": "SIGTERM"},
         {"event": "histograms", "step": 14, "histograms": {}},
         {"event": "end", "status": "crashed", "error": "ValueError: x"})  # fmt: skip
    assert [(one["kind"], one["step"], one["text"]) for one in found(run)] == [
        ("checkpoint", 10, "/data/10.pt"), ("note", 11, "lower lr"), ("alert", 12, "loss is odd"),
        ("note", 13, "told to end by SIGTERM"), ("end", None, "crashed: ValueError: x")]  # fmt: skip
    alert = found(run)[2]
    assert (alert["severity"], alert["name"], alert["rank"]) == ("ticket", "MyRule", 0)
    assert alert["timestamp"] == timestamp_at(NOON + 2)


def test_a_phase_is_one_event_that_knows_how_long_it_took(run: Path) -> None:
    tell(run, "events.rank0.jsonl",
         {"event": "phase", "step": 5, "phase": "evaluation", "open": True, "at": 0},
         {"event": "phase", "step": 5, "phase": "checkpoint", "open": True, "at": 10},
         {"event": "phase", "step": 5, "phase": "checkpoint", "open": False, "at": 12},
         {"event": "phase", "step": 5, "phase": "evaluation", "open": False, "at": 30},
         {"event": "phase", "step": 9, "phase": "evaluation", "open": True, "at": 40})  # fmt: skip
    assert [(one["text"], one["step"], one.get("seconds")) for one in found(run)] == [
        ("evaluation", 5, 30), ("checkpoint", 5, 2), ("evaluation", 9, None)]  # fmt: skip


def test_what_all_ranks_tell_alike_is_told_once_and_what_one_tells_by_its_rank(run: Path) -> None:
    for rank in range(16):
        tell(run, f"events.rank{rank}.jsonl",
             {"event": "phase", "step": 5, "phase": "checkpoint", "open": True},
             {"event": "note", "step": 6, "text": "hello"},
             {"event": "end", "status": "crashed" if rank == 7 else "preempted"})  # fmt: skip
    told = found(run)
    assert [(one["kind"], one["rank"]) for one in told if one["kind"] != "note"] == [
        ("phase", 0),
        ("end", 0),
        ("end", 7),
    ]
    assert sorted(one["rank"] for one in told if one["kind"] == "note") == list(range(16))


def test_findings_from_their_opening_to_their_close_and_no_mark_for_what_follows_from_them(run: Path) -> None:
    stalled = {"event": "finding", "kind": "TrainingStalled", "severity": "ticket", "what": "no step", "step": 8,
               "opened": timestamp_at(NOON + 5), "rank": "1"}  # fmt: skip
    follows = {"event": "finding", "kind": "TrainingCheckpointOverdue", "state": "open", "cause": "TrainingStalled"}
    worse = {**stalled, "severity": "page"}
    tell(run, "agent/gpu1.jsonl", {**stalled, "state": "open", "at": 6}, {**follows, "at": 7},
         {**worse, "state": "update", "at": 8}, {**worse, "state": "close", "at": 9})  # fmt: skip
    assert found(run) == [{
        "timestamp": timestamp_at(NOON + 5), "step": 8, "kind": "finding", "name": "TrainingStalled", "text": "no step",
        "rank": 1, "severity": "page", "closed": timestamp_at(NOON + 9)}]  # fmt: skip


def test_restarts_and_kills_have_the_step_that_was_reached(tmp_path: Path) -> None:
    run = run_folder(tmp_path, told={"resumed": [timestamp_at(NOON + 4000), "nonsense", None]})
    add(run / FIRST, steps(1, 1000))
    tell(run, "agent/gpu1.jsonl", {"event": "status", "status": "killed", "rank": 3, "at": 1500})
    assert [(one["kind"], one["step"], one.get("rank")) for one in found(run)] == [
        ("killed", 1000, 3),
        ("restart", 1000, None),
    ]


def test_the_newest_are_told_and_how_many_more_there_are(run: Path) -> None:
    tell(run, "events.rank0.jsonl", *({"event": "checkpoint", "step": step} for step in range(50)))
    told = events(run, lambda: (), 10)
    assert [one["step"] for one in told["events"]] == list(range(40, 50))
    assert told["more"] == 40


def test_the_index_is_no_report_of_an_agent(run: Path) -> None:
    add(run / FIRST, steps(1, 3000))
    tell(run, "events.rank0.jsonl", {"event": "end", "status": "finished", "at": 5000})
    assert [one["step"] for one in found(run)] == [3000]
    assert (run / "agent" / "here.index.rank0.jsonl").exists()
    assert len(found(run)) == 1


HOSTILE = [b"\xff\n", b"[]\n", b'{"event":{}}\n', b'{"event":"note","timestamp":7,"text":"x"}\n',
           b'{"event":"note","timestamp":"2025-07-30T12:00:00Z","text":{"a":1},"step":NaN}\n',
           b'{"event":"end","timestamp":"2025-07-30T12:00:00Z","status":["x"],"error":1e999}\n',
           b'{"event":"phase","timestamp":"2025-07-30T12:00:00Z","phase":[],"open":"yes"}\n',
           b'{"event":"finding","timestamp":"2025-07-30T12:00:00Z","kind":[],"rank":"-1","what":NaN}\n',
           b'{"event":"checkpoint","timestamp":"2025-07-30T12:00:00Z","path":"\\ud800"}\n',
           b'{"event":"note","timestamp":"2025-07-30T12:00:00Z","text":"' + b"<script>" * 10_000 + b'"}\n']  # fmt: skip


def test_whatever_stands_in_the_files_it_is_told_as_text_or_not_at_all(run: Path) -> None:
    for name in ("events.rank0.jsonl", "agent/gpu1.jsonl"):
        add(run / name, b"".join(HOSTILE))
    told = found(run)
    assert told
    json.dumps(told, allow_nan=False).encode()
    assert all(isinstance(one["text"], str) and len(one["text"]) <= MAX_TEXT for one in told)


def test_links_and_pipes_are_not_followed(run: Path, tmp_path: Path) -> None:
    import os

    add(tmp_path / "precious", encode({"timestamp": timestamp_at(NOON), "event": "note", "text": "secret"}))
    (run / "events.rank0.jsonl").symlink_to(tmp_path / "precious")
    (run / "agent" / "gpu1.jsonl").symlink_to(tmp_path / "precious")
    os.mkfifo(run / "events.rank1.jsonl")
    assert found(run) == []


def test_of_files_that_are_too_long_the_end_is_read(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainvitals.agent.run_events.MAX_FILE_BYTES", 1000)
    tell(run, "events.rank0.jsonl", *({"event": "checkpoint", "step": step} for step in range(500)))
    told = [one["step"] for one in found(run)]
    assert told[-1] == 499 and 0 < len(told) < 20
