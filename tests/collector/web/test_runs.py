"""The runs of a journal by the API: what is listed, what is drawn, and names that nobody should trust."""

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from starlette.applications import Starlette

import trainvitals as tv
from tests.collector.agent.written import FIRST, NOON, line, run_folder, steps
from tests.collector.journal.helpers import add
from tests.collector.web.asking import Answer, ask
from trainvitals.agent.service import Agent
from trainvitals.journal.index_file import IndexFile
from trainvitals.journal.record import timestamp_at
from trainvitals.web.app import make_app

SCRIPT = "<script>alert(1)</script>".replace("/", "_")


@pytest.fixture
def app(tmp_path: Path) -> Starlette:
    return make_app(Agent([], tmp_path, host="here"))


def told(app: Starlette, path: str) -> Any:
    answer = ask(app, f"/api/v1/runs{path}")
    assert answer.status == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    # No NaN, which no browser reads.
    return json.loads(answer.body, parse_constant=lambda word: pytest.fail(f"{word} in {path}"))


def finished(root: Path, folder: str, began: float, **more: Any) -> Path:
    told = {"start": timestamp_at(began), "end": timestamp_at(began + 60), "status": "finished", "world_size": 1}
    return run_folder(root, folder, {**told, **more})


def test_the_newest_first_and_how_many_more(tmp_path: Path, app: Starlette) -> None:
    for number in range(12):
        finished(tmp_path, f"run{number}", NOON + (number * 7 % 12) * 3600)
    listed = told(app, "?limit=5")
    assert [run["start"] for run in listed["runs"]] == [timestamp_at(NOON + hour * 3600) for hour in range(11, 6, -1)]
    assert listed["more"] == 7
    assert len(told(app, "")["runs"]) == 12


def test_what_is_told_of_a_run(tmp_path: Path, app: Starlette) -> None:
    folder = finished(tmp_path, "gemma", NOON, framework="plain", planned_steps=5000, name="Gemma 2")
    add(folder / FIRST, steps(1, 4999) + line(5000, NOON + 5000, loss=float("nan"), own=7))
    [run] = told(app, "")["runs"]
    assert run == {"run": "gemma", "name": "Gemma 2", "status": "finished", "live": False, "start": timestamp_at(NOON),
                   "end": timestamp_at(NOON + 60), "framework": "plain", "world_size": 1, "planned_steps": 5000,
                   "steps": 5000, "loss": "NaN", "ranks": [0], "fields": ["loss", "own"]}  # fmt: skip


def test_a_run_that_lives_and_one_that_was_killed(tmp_path: Path, app: Starlette) -> None:
    with tv.start("alive", dir=tmp_path) as run:
        run.log(step=1, loss=2.0)
        [listed] = told(app, "")["runs"]
        assert (listed["status"], listed["live"], listed["end"], listed["steps"]) == ("running", True, None, 1)
    [listed] = told(app, "")["runs"]
    assert (listed["status"], listed["live"]) == ("finished", False)


def test_a_folder_that_was_copied_here_without_its_processes(tmp_path: Path, app: Starlette) -> None:
    add(run_folder(tmp_path, "copied") / FIRST, steps(1, 10))
    [listed] = told(app, "")["runs"]
    assert (listed["status"], listed["live"], listed["steps"], listed["start"]) == ("unknown", False, 10, None)


def test_a_field_told_once_in_a_long_while_is_known_when_the_run_was_looked_at(tmp_path: Path, app: Starlette) -> None:
    folder = finished(tmp_path, "gemma", NOON)
    add(folder / FIRST, steps(1, 3000) + line(3001, NOON + 3001, val_loss=2.0) + steps(3002, 9000))
    agent: Agent = app.state.agent
    agent.indexing._is_writer = True
    assert told(app, "")["runs"][0]["fields"] == ["loss"]
    assert told(app, "/gemma/series")["names"] == ["loss", "val_loss"]
    assert told(app, "")["runs"][0]["fields"] == ["loss", "val_loss"]


def test_ranks_in_their_order(tmp_path: Path, app: Starlette) -> None:
    folder = finished(tmp_path, "gemma", NOON, world_size=16)
    for rank in range(16):
        add(folder / f"training_metrics_20250730_120000.rank{rank}.jsonl", steps(1, 10, loss=float(rank)))
    assert told(app, "")["runs"][0]["ranks"] == list(range(16))
    series = told(app, "/gemma/series?rank=11")
    assert (series["rank"], series["fields"]["loss"]["mean"][0]) == (11, 11.0)
    assert len(told(app, "/gemma/ranks")["ranks"]) == 16


def test_on_a_node_without_rank_0_the_lowest_that_is_there_is_told(tmp_path: Path, app: Starlette) -> None:
    folder = finished(tmp_path, "gemma", NOON, world_size=16)
    for rank in (9, 8):
        add(folder / f"training_metrics_20250730_120000.rank{rank}.jsonl", steps(1, 10, loss=float(rank)))
    series = told(app, "/gemma/series")
    assert (series["rank"], series["fields"]["loss"]["mean"][0]) == (8, 8.0)
    assert told(app, "/gemma/series?rank=9")["rank"] == 9
    assert told(app, "/gemma/series?rank=0")["x_values"] == []


def test_a_second_listing_reads_no_index_anew(tmp_path: Path, app: Starlette, monkeypatch: pytest.MonkeyPatch) -> None:
    app.state.agent.indexing._is_writer = True
    for number in range(50):
        add(finished(tmp_path, f"run{number}", NOON + number) / FIRST, steps(1, 3000))
        told(app, f"/run{number}/series")
    read: list[IndexFile] = []
    whole = IndexFile.read
    monkeypatch.setattr(IndexFile, "read", lambda file: (read.append(file), whole(file))[1])
    first = told(app, "")
    assert len(first["runs"]) == len(read) == 50
    assert told(app, "") == first
    assert len(read) == 50


def test_a_series_has_the_form_that_is_promised(tmp_path: Path, app: Starlette) -> None:
    folder = finished(tmp_path, "gemma", NOON)
    add(
        folder / FIRST,
        b"".join(line(step, NOON + step, loss=value) for step, value in enumerate((2.0, float("nan"), 1.0))),
    )
    assert told(app, "/gemma/series?fields=loss&x=elapsed") == {
        "run": "gemma", "rank": 0, "x": "elapsed", "x_values": [0, 1, 2], "steps": [0, 1, 2],
        "fields": {"loss": {"min": [2.0, None, 1.0], "max": [2.0, None, 1.0], "mean": [2.0, None, 1.0],
                            "nonfinite": [0, 1, 0]}},
        "raw": True, "lines": 3, "names": ["loss"], "missing_bytes": 0}  # fmt: skip


def test_several_fields_and_one_with_a_comma(tmp_path: Path, app: Starlette) -> None:
    add(finished(tmp_path, "gemma", NOON) / FIRST, line(1, NOON, **{"a": 1.0, "b": 2.0, "c,d": 3.0, "é&=": 4.0}))
    series = told(app, f"/gemma/series?fields=a,b&field=c,d&field={quote('é&=')}")
    assert {name: column["mean"] for name, column in series["fields"].items()} == {
        "a": [1.0], "b": [2.0], "c,d": [3.0], "é&=": [4.0]}  # fmt: skip


def test_a_range_of_times_in_words(tmp_path: Path, app: Starlette) -> None:
    add(finished(tmp_path, "gemma", NOON) / FIRST, steps(1, 100))
    series = told(app, "/gemma/series?x=time&from=2025-07-30T12:00:10Z&to=2025-07-30T12:00:12Z")
    assert series["steps"] == [11, 12, 13]


NAMES = [SCRIPT, "with space", "ünï", "a&b=c#d", "%2e%2e", "'\";--", "x" * 200, "日本", "a\nb", "runs"]
NO_NAMES = ["..", ".", "nothing", "../secret", "..%2fsecret", ".hidden", "link", "a\0b", "x" * 5000, "*"]


@pytest.mark.parametrize("what", ["series", "events", "ranks"])
@pytest.mark.parametrize("name", NAMES)
def test_a_run_of_any_name_is_found_by_it(tmp_path: Path, app: Starlette, name: str, what: str) -> None:
    add(finished(tmp_path, name, NOON) / FIRST, steps(1, 3))
    assert told(app, f"/{name}/{what}")["run"] == name
    assert [run["run"] for run in told(app, "")["runs"]] == [name]


@pytest.mark.parametrize("name", NO_NAMES)
@pytest.mark.parametrize("what", ["series", "events", "ranks"])
def test_no_name_leads_out_of_the_journal(tmp_path: Path, app: Starlette, name: str, what: str) -> None:
    add(run_folder(tmp_path, "../secret") / FIRST, steps(1, 3))
    add(run_folder(tmp_path, ".hidden") / FIRST, steps(1, 3))
    (tmp_path / "runs" / "link").symlink_to(tmp_path / "secret")
    answer = ask(app, f"/api/v1/runs/{name}/{what}")
    assert answer.status == 404 and b"loss" not in answer.body


@pytest.mark.parametrize("words", ["limit=0", "limit=1001", "limit=-1", "limit=x", "limit="])
def test_a_limit_that_cannot_be_used_is_named_with_its_fix(app: Starlette, words: str) -> None:
    refused(ask(app, f"/api/v1/runs?{words}"), "limit")


UNUSABLE = {
    "x": ["series?x=loss", "series?x=tokens"],
    "points": ["series?points=0", "series?points=4001"],
    "rank": ["series?rank=-1", "series?rank=1000000", "series?rank=0x1"],
    "from": ["series?from=a", "series?from=nan", "series?from=5&to=4", "series?x=time&from=now"],
    "to": ["series?to=inf", "series?to=1e300"],
    "fields": ["series?fields=" + ",".join(map(str, range(101)))],
    "limit": ["events?limit=0", "events?limit=10001"],
    "last": ["ranks?last=0", "ranks?last=1001"],
}


@pytest.mark.parametrize(("key", "words"), [(key, words) for key, several in UNUSABLE.items() for words in several])
def test_what_cannot_be_used_is_named_with_its_fix(tmp_path: Path, app: Starlette, words: str, key: str) -> None:
    add(finished(tmp_path, "gemma", NOON) / FIRST, steps(1, 3))
    refused(ask(app, f"/api/v1/runs/gemma/{words}"), key)


def refused(answer: Answer, key: str) -> None:
    error = answer.json()["error"]
    assert answer.status == 400 and error.startswith(f"{key}: ") and "cannot be used: " in error


def test_a_run_that_goes_between_two_questions(tmp_path: Path, app: Starlette) -> None:
    folder = finished(tmp_path, "gemma", NOON)
    add(folder / FIRST, steps(1, 3000))
    assert told(app, "/gemma/series")["lines"] == 3000
    shutil.rmtree(folder)
    for what in ("series", "events", "ranks"):
        assert ask(app, f"/api/v1/runs/gemma/{what}").status == 404
    assert told(app, "") == {"runs": [], "more": 0}


HOSTILE = [
    b"[]",
    b"\xff",
    b"{" * 5000,
    b'{"start":{},"end":[],"status":{},"name":[1],"world_size":NaN,"planned_steps":1e999}',
    b'{"name":"' + b"x" * 5000 + b'","start":"9999-99-99","world_size":"all","framework":{}}',
]


@pytest.mark.parametrize("content", HOSTILE)
def test_a_run_that_says_nonsense_of_itself_is_listed(tmp_path: Path, app: Starlette, content: bytes) -> None:
    folder = run_folder(tmp_path)
    (folder / "run.json").write_bytes(content)
    add(folder / FIRST, b"\xff\n" * 10 + b'{"step":1e999,"loss":1e999}\n{"step":' + b"9" * 3000 + b"}\n")
    (folder / "process.rank0.json").write_bytes(content)
    (folder / "events.rank0.jsonl").write_bytes(content + b"\n")
    [run] = told(app, "")["runs"]
    assert run["run"] == "gemma" and len(run["name"]) <= 200
    for what in ("series", "series?x=time", "events", "ranks"):
        assert told(app, f"/gemma/{what}")["run"] == "gemma"


def test_an_empty_journal_has_no_runs(app: Starlette) -> None:
    assert told(app, "") == {"runs": [], "more": 0}


def test_looking_at_an_old_run_makes_it_no_younger(tmp_path: Path, app: Starlette) -> None:
    """Its agent would show it as if it had just ended, and keep it for longer."""
    from trainvitals.agent.run_folder import last_change

    folder = run_folder(tmp_path)
    add(folder / FIRST, steps(1, 3000))
    for path in (folder / FIRST, folder):
        os.utime(path, (NOON, NOON))
    app.state.agent.indexing._is_writer = True
    told(app, "/gemma/series")
    assert list((folder / "agent").iterdir()) != []
    assert last_change(folder) == NOON < time.time()
