"""What each key does, pressed on the stage."""

import json
import os
import re
from pathlib import Path

import pytest

from tests.tui.support import NOON, Stage, dashboard, finding, gpu, rank, run, staged, told
from trainvitals.tui import help_page
from trainvitals.tui.app import Top
from trainvitals.tui.saving import save

TWO = [run("alpha", 4), run("beta", 4, ranks=[rank(number, 10) for number in range(4)],
                            start_timestamp_seconds=NOON - 60)]  # fmt: skip


def chosen(stage: Stage) -> tuple[str, str]:
    """The GPU with the mark, and the run."""
    text = stage.text()
    marks = re.findall(r"^▶ +(\d+) ", text, re.MULTILINE)
    runs = re.findall(r"^─ Run (\S+) ", text, re.MULTILINE)
    assert len(marks) == len(runs) == 1 and f"GPU {marks[0]} busy" in text and f"Processes on GPU {marks[0]}" in text
    return marks[0], runs[0]


@staged
async def test_arrows_and_space_go_round_through_gpus_and_runs() -> None:
    async with dashboard() as stage:
        await stage.show(told(4, TWO))
        assert chosen(stage) == ("0", "beta"), "the run that began last comes first"
        await stage.press("down", "space", "right")
        assert chosen(stage) == ("2", "alpha")
        await stage.press("down", "down", "left")
        assert chosen(stage) == ("0", "beta")
        await stage.press("up")
        assert chosen(stage) == ("3", "beta")
        assert "4714 ada" in stage.text() and "10 of 20,000" not in stage.text()


@staged
async def test_what_was_chosen_stays_chosen_while_others_come_and_go() -> None:
    async with dashboard() as stage:
        await stage.show(told(4, TWO))
        await stage.press("down", "down", "right")
        newest = run("gamma", 1, start_timestamp_seconds=NOON - 1)
        await stage.show(told([gpu(2), gpu(3)], [newest, *TWO], NOON + 1))
        assert chosen(stage) == ("2", "alpha")


@staged
async def test_gpus_and_run_that_were_asked_for() -> None:
    async with dashboard(gpus=(2, 3), run="alpha") as stage:
        await stage.show(told(4, TWO))
        assert chosen(stage) == ("2", "alpha")
        assert not re.search(r"^▶? +[01]  ", stage.text(), re.MULTILINE)
        await stage.press("right", "down", "down")
        assert chosen(stage) == ("2", "alpha")
        await stage.show(told([gpu(0), gpu(1)], at=NOON + 1))
        assert "no answer" in stage.text()
    async with dashboard(gpus=(9,), run="omega") as stage:
        await stage.show(told(4, TWO))
        assert "No GPU 9 answers; these do: 0, 1, 2, 3" in stage.text() and "No run omega here." in stage.text()


@staged
async def test_a_pause_stands_still_and_misses_nothing() -> None:
    async with dashboard() as stage:
        await stage.show(told([gpu(0)]))
        await stage.press("p")
        before = stage.text()
        assert "PAUSED at 12:00:00" in before
        for tick in range(1, 30):
            await stage.show(told([gpu(0, utilization_percent=11.0)], at=NOON + tick))
        stage.clock[0] += 60
        await stage.tick()
        assert stage.text() == before
        await stage.press("down", "question_mark", "x")
        assert "PAUSED at 12:00:00" in stage.text() and "11%" not in stage.text()
        await stage.press("p")
        assert "PAUSED" not in stage.text()
        await stage.show(told([gpu(0, utilization_percent=11.0)], at=NOON + 90))
        assert "11%" in stage.text() and len(stage.app.view.history.frames) == 31


def test_every_key_stands_in_the_help_and_in_the_docs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "top.md").read_text(encoding="utf-8")
    helped = " ".join(f"{keys} {words}" for keys, words in help_page.KEYS)
    bound = {key for binding in Top.BINDINGS for key in str(binding.key).split(",")}  # type: ignore[union-attr]
    names = {"question_mark": "?", "slash": "/", "f1": "F1", "escape": "Esc", "down": "↓", "up": "↑", "left": "←",
             "right": "→", "ctrl+c": "Ctrl-C", "ctrl+z": "Ctrl-Z"}  # fmt: skip
    in_words = {"↓": "down", "↑": "up", "←": "left", "→": "right"}
    # A terminal's own way to quit.
    for key in (names.get(key, key) for key in bound - {"ctrl+q"}):
        assert re.search(rf"(?<!\w){re.escape(key)}(?!\w)", helped), key
        assert re.search(rf"(?<!\w){re.escape(in_words.get(key, key))}(?!\w)", page), key


def widest(stage: Stage) -> int:
    return max(len(re.findall("[\u2801-\u28ff]", line)) for line in stage.text().splitlines())


@staged
async def test_reset_empties_the_graphs() -> None:
    async with dashboard() as stage:
        for tick in range(6):
            await stage.show(told([gpu(0)], at=NOON + tick))
        assert widest(stage) > 3
        await stage.press("r")
        await stage.show(told([gpu(0)], at=NOON + 6))
        assert widest(stage) == 3, "a point in each of the three graphs"
        assert "The history begins anew." in stage.text()
        stage.clock[0] += 30
        await stage.show(told([gpu(0)], at=NOON + 36))
        await stage.tick()
        assert "The history begins anew." not in stage.text()


@staged
async def test_a_filter_leaves_what_fits_it() -> None:
    async with dashboard() as stage:
        others = run(
            "beta", 2, ranks=[rank(number) | {"gpus": [{"gpu": str(number), "uuid": ""}]} for number in (4, 5)]
        )
        found = [finding("TrainingStalled", "page", "no step for 6 min", "run beta"),
                 finding("GpuThermalMargin", "ticket", "GPU 1 is hot", "GPU 1")]  # fmt: skip
        alerts = {"firing_count": 2, "firing": found, "resolved": []}
        await stage.show(told(8, [run("alpha", 4), others], alerts=alerts))
        await stage.press("slash", *"bEta")
        assert "/bEta_" in stage.text().splitlines()[-1]
        rows = re.findall(r"^▶? +(\d)  ", stage.text(), re.MULTILINE)
        assert rows == ["4", "5"] and "Run beta" in stage.text() and "GPU 1 is hot" not in stage.text()
        await stage.press("q", "p", "backspace", "backspace", "enter", "p")
        assert "PAUSED" in stage.text(), "after Enter a key is a key again"
        assert stage.text().splitlines()[-1].startswith("/bEta q quit")
        await stage.press("slash", *"zzz")
        assert "No GPU fits /bEtazzz" in stage.text() and "No run /bEtazzz here." in stage.text()
        await stage.press("escape")
        assert len(re.findall(r"^▶? +(\d)  ", stage.text(), re.MULTILINE)) >= 7 and stage.app.view.filter == ""


@staged
async def test_help_names_every_key_and_any_key_goes_back() -> None:
    async with dashboard() as stage:
        await stage.show(told(8))
        await stage.press("question_mark")
        text = stage.text()
        assert all(key in text for key in ("q, Ctrl-C", "↑ ↓, space", "j and k", "← →", "/ ", "p ", "r ", "s ",
                                          "?, h, F1", "Ctrl-Z"))  # fmt: skip
        assert max(map(len, text.splitlines())) <= 80 and len(text.splitlines()) <= 24
        assert all(words in text for words in help_page.LIMITS), "no line is cut"
        assert "utilisation" not in text
        await stage.press("s")
        assert "utilisation" in stage.text() and not stage.app.saved, "the key that goes back does nothing else"


@staged
async def test_save_says_where_and_writes_what_was_seen(tmp_path: Path) -> None:
    async with dashboard(folder=tmp_path / "new") as stage:
        await stage.show(told(2, [run("gemma", 1, ranks=[rank(0, loss="NaN")])]))
        await stage.show(told(2, [run("gemma", 1)], NOON + 1))
        for _ in range(2):
            await saved(stage)
        files = sorted((tmp_path / "new").iterdir())
        assert len(files) == 2 and all(re.fullmatch(r"trainvitals-\d{8}-\d{6}(-2)?\.jsonl", one.name) for one in files)
        assert all(any(str(one) in said for one in files) for said in stage.app.saved)
        assert "Saved 7 lines to" in stage.text()
        lines = [json.loads(line) for line in files[0].read_text().splitlines()]
        assert [line.get("gpu_index", line.get("run")) for line in lines[:6]] == [0, 1, "gemma"] * 2
        assert lines[0]["timestamp"] == "2025-07-30T12:00:00.000Z" and lines[0]["utilization_percent"] == 90.0
        assert lines[2]["loss"] != lines[2]["loss"] and lines[5]["loss"] == 1.8234
        assert lines[6]["snapshot"]["gpus"][1]["processes"][0]["pid"] == "4712"


async def saved(stage: Stage) -> None:
    before = len(stage.app.saved)
    await stage.press("s")
    while len(stage.app.saved) == before:
        await stage.pilot.pause(0.01)


@staged
async def test_what_cannot_be_saved_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    async with dashboard((120, 24), folder=tmp_path / "file") as stage:
        await stage.press("s")
        await saved(stage)
        assert "Not saved: nothing has been seen yet." in stage.text()
        await stage.show(told(1))
        await saved(stage)
        assert "Not saved: " in stage.text() and "--save-dir" in stage.app.saved[-1]


def test_no_file_is_written_over_or_left_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.strftime", lambda _: "trainvitals-20250730-120000")
    (tmp_path / "trainvitals-20250730-120000.jsonl").write_text("mine")
    (tmp_path / "trainvitals-20250730-120000-2.jsonl").symlink_to(tmp_path / "elsewhere")
    assert save(tmp_path, [b"{}\n"]).endswith("120000-3.jsonl")
    assert (tmp_path / "trainvitals-20250730-120000.jsonl").read_text() == "mine"
    assert not (tmp_path / "elsewhere").exists()
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    real = os.open
    monkeypatch.setattr("os.open", lambda path, *more: (os.close(real(path, *more)), real(full, os.O_WRONLY))[1])
    there = set(tmp_path.iterdir())
    assert save(tmp_path, [b"{}\n"]).startswith(f"Not saved: {tmp_path}: No space left on device")
    assert set(tmp_path.iterdir()) == there
