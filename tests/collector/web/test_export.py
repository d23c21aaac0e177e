"""Downloads, read back by whoever gets them: whole, or visibly broken off; and harmless to a spreadsheet."""

import csv
import http.client
import io
import json
import math
import shutil
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from pyarrow import parquet
from starlette.applications import Starlette

from tests.collector.agent.written import FIRST, NOON, SECOND, line, run_folder, steps
from tests.collector.journal.helpers import add
from tests.collector.support import Served, serving, wait_for
from tests.collector.web.asking import Answer, ask
from trainvitals.agent.export_forms import FORMS
from trainvitals.agent.export_rows import Range, run_parts, run_rows
from trainvitals.agent.service import Agent
from trainvitals.journal import layout
from trainvitals.journal.record import decode, encode, timestamp_at
from trainvitals.web.app import make_app

RANK1 = "training_metrics_20250730_120000.rank1.jsonl"


@pytest.fixture
def app(tmp_path: Path) -> Starlette:
    return make_app(Agent([], tmp_path, host="here"))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return run_folder(tmp_path)


def export(app: Starlette, form: str, words: str = "run=gemma") -> Answer:
    answer = ask(app, f"/api/v1/export?{words}&format={form}")
    assert answer.status == 200, answer.text
    return answer


def table(answer: Answer) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(answer.body.decode(), newline="")))


def test_a_csv_has_a_row_a_step_and_every_field(run: Path, app: Starlette) -> None:
    add(run / FIRST, line(1, NOON, loss=2.5, epoch=0.1) + line(1, NOON + 0.1, step_duration_seconds=0.5)
        + line(2, NOON + 1, loss=math.nan, later=-math.inf) + line(3, NOON + 2, loss=-1e-7, later=7))  # fmt: skip
    answer = export(app, "csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = table(answer)
    assert list(rows[0]) == ["timestamp", "rank", "step", "loss", "epoch", "step_duration_seconds", "later"]
    assert [(row["step"], row["loss"], row["step_duration_seconds"], row["later"]) for row in rows] == [
        ("1", "2.5", "0.5", ""), ("2", "NaN", "", "-Infinity"), ("3", "-1e-07", "", "7")]  # fmt: skip
    assert [math.isnan(float(row["loss"])) for row in rows] == [False, True, False]
    assert rows[1]["timestamp"] == timestamp_at(NOON + 1)


FORMULAS = ["=1+1", "+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", " =1", "=cmd|' /C calc'!A0", "\uff1d1+1", '="x"']


@pytest.mark.parametrize("text", FORMULAS)
def test_a_text_is_no_formula_to_a_spreadsheet_and_neither_is_a_name(run: Path, app: Starlette, text: str) -> None:
    add(run / FIRST, line(1, NOON, note=text, **{text: -5.0}))
    [row] = table(export(app, "csv"))
    assert row["note"] == f"'{text}"
    assert row[f"'{text}"] == "-5.0"


@pytest.mark.parametrize(
    "text", ["plain", "a=b", "", "'quoted'", 'say "hi", ok', "two\nlines", "<script>", "日本", "1e5"]
)
def test_any_other_text_is_as_it_was_told(run: Path, app: Starlette, text: str) -> None:
    add(run / FIRST, line(1, NOON, note=text))
    assert table(export(app, "csv"))[0]["note"] == text


def test_lists_and_truths_and_numbers_of_any_size(run: Path, app: Starlette) -> None:
    add(run / FIRST, line(1, NOON, shape=[1, 2], deep={"a": math.nan}, flag=True, none=None, big=10**30))
    [row] = table(export(app, "csv"))
    assert (row["shape"], row["flag"], row["none"], row["big"]) == ("[1, 2]", "true", "", str(10**30))
    [row] = json.loads(export(app, "json").body)["rows"]
    assert (row["shape"], row["deep"], row["flag"], row["none"], row["big"]) == (
        [1, 2],
        {"a": "NaN"},
        True,
        None,
        10**30,
    )


def test_json_is_strict_and_has_nan_as_text(run: Path, app: Starlette) -> None:
    add(run / FIRST, line(1, NOON, loss=math.nan) + line(2, NOON, loss=math.inf) + line(3, NOON, loss=1.5))
    answer = export(app, "json")
    assert answer.headers["content-type"] == "application/json"
    rows = json.loads(answer.body, parse_constant=pytest.fail)["rows"]
    assert [row["loss"] for row in rows] == ["NaN", "Infinity", 1.5]


def test_json_lines_are_those_of_the_journal(run: Path, app: Starlette) -> None:
    content = line(1, NOON, loss=math.nan) + line(1, NOON, lr=1.0) + line(2, NOON, loss=-math.inf, big=10**25, text="ü")
    add(run / FIRST, content)
    got = [decode(each) for each in export(app, "jsonl").body.splitlines()]
    there = [{"rank": 0, **decode(each)} for each in content.splitlines()]
    assert [{name: str(value) for name, value in each.items()} for each in got] == [
        {name: str(value) for name, value in each.items()} for each in there]  # fmt: skip


def read_parquet(answer: Answer) -> Any:
    return parquet.read_table(io.BytesIO(answer.body))


def test_parquet_keeps_the_kinds_of_values(run: Path, app: Starlette) -> None:
    add(run / FIRST, line(1, NOON, loss=math.nan, text="=1", flag=True, mixed=1, big=10**25)
        + line(2, NOON + 1, loss=-math.inf, mixed=2.5, shape=[1])
        + line(3, NOON + 2, loss=0.5, flag=False))  # fmt: skip
    read = read_parquet(export(app, "parquet"))
    assert {name: str(kind) for name, kind in zip(read.schema.names, read.schema.types, strict=True)} == {
        "timestamp": "timestamp[ms, tz=UTC]", "rank": "int64", "step": "int64", "loss": "double", "text": "string",
        "flag": "bool", "mixed": "double", "big": "string", "shape": "string"}  # fmt: skip
    rows = read.to_pylist()
    assert math.isnan(rows[0]["loss"]) and rows[1]["loss"] == -math.inf and rows[2]["loss"] == 0.5
    assert (rows[0]["text"], rows[0]["big"], rows[1]["text"], rows[1]["shape"]) == ("=1", str(10**25), None, "[1]")
    assert [row["timestamp"].timestamp() for row in rows] == [NOON, NOON + 1, NOON + 2]


def test_parquet_of_many_rows_and_of_none(run: Path, app: Starlette) -> None:
    assert read_parquet(export(app, "parquet")).num_rows == 0
    add(run / FIRST, steps(1, 130_000))
    read = read_parquet(export(app, "parquet"))
    assert read.column("step").to_pylist() == list(range(1, 130_001))


def test_without_what_parquet_needs_it_says_what_to_install(
    run: Path, app: Starlette, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    answer = ask(app, "/api/v1/export?run=gemma&format=parquet")
    assert answer.status == 501
    assert "pip install pyarrow" in answer.json()["error"]


@pytest.mark.parametrize("form", ["csv", "json", "jsonl"])
def test_a_run_without_a_line_is_an_empty_file(run: Path, app: Starlette, form: str) -> None:
    empty = {"csv": b"\r\n", "json": b'{"rows":[\n]}\n', "jsonl": b""}
    assert export(app, form).body == empty[form]


def test_lines_of_one_step_that_tell_the_same_stay_apart(run: Path, app: Starlette) -> None:
    add(
        run / FIRST,
        line(1, NOON, loss=1.0) + line(1, NOON, loss=2.0) + line(1, NOON, lr=3.0) + line(None, NOON, loss=4.0),
    )
    assert [(row["loss"], row["lr"]) for row in table(export(app, "csv"))] == [("1.0", ""), ("2.0", "3.0"), ("4.0", "")]


def test_all_ranks_or_one_and_all_files_of_each(run: Path, app: Starlette) -> None:
    add(run / FIRST, steps(1, 3))
    add(run / SECOND, steps(3, 5, began=NOON + 3600))
    add(run / RANK1, steps(1, 2))
    assert [(row["rank"], row["step"]) for row in table(export(app, "csv"))] == [
        ("0", "1"), ("0", "2"), ("0", "3"), ("0", "3"), ("0", "4"), ("0", "5"), ("1", "1"), ("1", "2")]  # fmt: skip
    assert [row["rank"] for row in table(export(app, "csv", "run=gemma&rank=1"))] == ["1", "1"]
    assert table(export(app, "csv", "run=gemma&rank=7")) == []


@pytest.mark.parametrize(("words", "first", "last"), [
    ("from=10&to=12", 10, 12), ("from=99", 99, 100), ("to=2&x=step", 1, 2),
    ("x=time&from=2025-07-30T12:00:05Z&to=2025-07-30T12:00:07Z", 6, 8),
    (f"x=time&from={NOON + 98}", 99, 100)])  # fmt: skip
def test_a_range_of_steps_or_of_times(run: Path, app: Starlette, words: str, first: int, last: int) -> None:
    add(run / FIRST, steps(1, 100) + b'{"loss":9.0}\n')
    rows = table(export(app, "csv", f"run=gemma&{words}"))
    assert [int(row["step"]) for row in rows] == list(range(first, last + 1))


def node_lines(root: Path) -> None:
    folder = layout.gpu_folder(root, "here")
    folder.mkdir(parents=True)
    for second in range(3):
        head = {"timestamp": timestamp_at(NOON + second)}
        for gpu in (0, 1):
            told = {"gpu_index": gpu, "utilization_percent": 50.0 + second, "throttle_active": []}
            add(
                folder / "gpu_metrics_20250730_120000.jsonl",
                encode({**head, **(told if second != 1 else {"gpu_index": gpu})}),
            )
        add(folder / "host_metrics_20250730_120000.jsonl", encode({**head, "cpu_usage_percent": 5.0 * second}))


def test_gpus_and_host_over_a_time(tmp_path: Path, app: Starlette) -> None:
    node_lines(tmp_path)
    when = f"from={NOON}&to={NOON + 60}"
    rows = table(export(app, "csv", f"gpus=all&{when}"))
    assert [(row["gpu_index"], row["utilization_percent"]) for row in rows[:4]] == [
        ("0", "50.0"), ("1", "50.0"), ("0", "50.0"), ("1", "50.0")]  # fmt: skip
    assert {row["gpu_index"] for row in table(export(app, "csv", f"gpus=1&{when}"))} == {"1"}
    assert [row["cpu_usage_percent"] for row in table(export(app, "csv", f"host=1&{when}"))] == ["0.0", "5.0", "10.0"]
    both = table(export(app, "csv", f"gpus=0&host=1&{when}"))
    assert [row["gpu_index"] for row in both] == ["0", "0", "0", "", "", ""]
    assert len(table(export(app, "csv", f"gpus=all&host=1&from={NOON + 1}&to={NOON + 1}"))) == 3


REFUSED = {
    "run=nothing": 404, "run=..": 404, "run=../secret": 404, "": 400, "gpus=x": 400, "gpus=0&from=9&to=1": 400,
    "run=gemma&format=xls": 400, "run=gemma&x=tokens": 400, "run=gemma&rank=-1": 400, "run=gemma&from=a": 400,
    "gpus=all&from=0&to=99999999": 400, "host=0": 400}  # fmt: skip


@pytest.mark.parametrize(("words", "status"), REFUSED.items())
def test_what_cannot_be_exported_is_told(run: Path, app: Starlette, words: str, status: int) -> None:
    answer = ask(app, f"/api/v1/export?{words}")
    assert answer.status == status
    assert ": " in answer.json()["error"]


def test_too_many_fields_are_no_columns_but_lines_all_the_same(
    run: Path, app: Starlette, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainvitals.agent.export_forms.MAX_COLUMNS", 50)
    add(run / FIRST, line(1, NOON, **{f"n{number}": 1.0 for number in range(60)}))
    answer = ask(app, "/api/v1/export?run=gemma&format=csv")
    assert (answer.status, answer.json()["error"].startswith("format: ")) == (400, True)
    assert len(json.loads(export(app, "json").body)["rows"][0]) == 63


NAMES = ["<script>", 'a"b;c', "ünï 日本", "a\r\nset-cookie: x=1", "x" * 200, "-rf", "100%"]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_has_a_name_that_harms_nobody(tmp_path: Path, app: Starlette, name: str) -> None:
    add(run_folder(tmp_path, name) / FIRST, steps(1, 2))
    told = export(app, "csv", f"run={quote(name)}").headers["content-disposition"]
    plain = told.split('"')[1]
    assert plain.startswith("trainvitals-") and plain.endswith(".csv") and len(plain) < 110
    assert plain.isascii() and plain.isprintable() and not set(plain) & set('\\/:*?"<>|; %')
    assert told.isascii() and told.isprintable()


def test_a_question_for_the_head_makes_no_file(run: Path, app: Starlette) -> None:
    add(run / FIRST, steps(1, 100))
    answer = ask(app, "/api/v1/export?run=gemma", method="HEAD")
    assert (answer.status, answer.body) == (200, b"")
    assert not app.state.exports.locked()


def peak_of(form: str, run: Path) -> int:
    parts = run_parts(run, None)
    tracemalloc.start()
    try:
        for _ in FORMS[form][1](lambda: run_rows(parts, Range())):
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("form", ["csv", "json", "jsonl"])
def test_a_run_four_times_as_long_takes_no_more_memory(run: Path, form: str) -> None:
    add(run / FIRST, steps(1, 8000, **{f"n{number}": 0.125 for number in range(10)}))
    short = peak_of(form, run)
    add(run / SECOND, steps(8001, 32_000, **{f"n{number}": 0.125 for number in range(10)}))
    assert peak_of(form, run) < 1.3 * short


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("journal")
    with serving(folder, "--simulate", "1") as agent:
        yield agent


def long_run(root: Path, name: str) -> Path:
    folder = run_folder(root, name)
    for hour in range(4):
        content = steps(1, 40_000, **{f"n{number}": 0.123456789 for number in range(8)})
        add(folder / f"training_metrics_20250730_{hour:02}0000.jsonl", content)
    return folder


def begun(served: Served, words: str) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    connection = http.client.HTTPConnection(urlsplit(served.address).netloc, timeout=30)
    connection.request("GET", f"/api/v1/export?{words}")
    answer = connection.getresponse()
    assert answer.status == 200 and answer.read(1000)
    return connection, answer


@pytest.mark.parametrize("form", ["jsonl", "json"])
def test_a_run_that_vanishes_breaks_the_download_off(served: Served, form: str) -> None:
    folder = long_run(served.folder, f"vanishing-{form}")
    connection, answer = begun(served, f"run={folder.name}&format={form}")
    shutil.rmtree(folder)
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        answer.read()
    connection.close()
    assert served.snapshot()["gpus"]


def test_readers_that_leave_make_room_for_others_and_a_third_is_told_to_wait(served: Served) -> None:
    folder = long_run(served.folder, "slow-readers")
    words = f"run={folder.name}&format=jsonl"
    reading = [begun(served, words) for _ in range(2)]
    third = http.client.HTTPConnection(urlsplit(served.address).netloc, timeout=30)
    third.request("GET", f"/api/v1/export?{words}")
    answer = third.getresponse()
    assert answer.status == 503 and b"under way" in answer.read()
    # Whoever else asks is answered meanwhile.
    assert served.snapshot()["gpus"]
    for connection, _ in reading:
        connection.close()

    def is_served() -> bool:
        third.request("GET", f"/api/v1/export?{words}&to=5")
        again = third.getresponse()
        lines = again.read().splitlines()
        return again.status == 200 and len(lines) == 20

    wait_for(is_served, 30)
    third.close()
