"""Starting a run: its name, its folder, going on with it, and what is said of it."""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import trainvitals as tv
from tests.run.support import environment, lines, python, run_folders, run_json, started, stop
from trainvitals.run.off import OffRun


@pytest.fixture(autouse=True)
def _ended() -> Iterator[None]:
    yield
    while run := tv.current():
        run.finish()


@dataclass
class Settings:
    lr: float = 0.1
    api_key: str = "secret"


CONFIGS: list[tuple[Any, dict[str, Any]]] = [
    ({"lr": 0.1, "optimizer": {"name": "adam", "hf_token": "secret"}},
     {"lr": 0.1, "optimizer": {"name": "adam", "hf_token": "(hidden)"}}),
    (Settings(), {"lr": 0.1, "api_key": "(hidden)"}),
    (argparse.Namespace(lr=0.1, _private=1), {"lr": 0.1}),
    (None, {}),
]  # fmt: skip


@pytest.mark.parametrize(("config", "expected"), CONFIGS, ids=range(4))
def test_a_configuration_is_kept_however_it_is_given(tmp_path: Path, config: Any, expected: dict[str, Any]) -> None:
    run = tv.start("x", config, dir=tmp_path, tags=["a"], planned_steps=10, framework="torch")
    run.describe({"layers": 2}, tags=["a", "b"])
    run.describe(framework="keras")
    run.finish()
    told = run_json(run_folders(tmp_path)[0])
    assert told["config"] == expected | {"layers": 2}
    assert (told["tags"], told["planned_steps"], told["framework"]) == (["a", "b"], 10, "keras")


@pytest.mark.parametrize("odd", [{"tags": None}, {"tags": "one"}, {"config": {"a": object(), 1: {2: float("nan")}}},
                                 {"rank": "0"}, {"world_size": 1.0}, {"planned_steps": 1e3}], ids=range(6))  # fmt: skip
def test_what_can_be_understood_is_kept_without_a_word(
    tmp_path: Path, odd: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    run = tv.start("x", dir=tmp_path, **odd)
    run.log(loss=1)
    run.finish()
    assert [line["loss"] for line in lines(run_folders(tmp_path)[0])] == [1] and not caplog.records


class Unspeakable:
    __slots__ = ()

    def __repr__(self) -> str:
        raise ValueError("nothing to say")


WHOLE = "give a whole number, 0 or more"
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"rank": "first"}, f"rank: 'first' cannot be used: {WHOLE}"),
    ({"rank": -1}, f"rank: '-1' cannot be used: {WHOLE}"),
    ({"local_rank": float("inf")}, f"local_rank: 'inf' cannot be used: {WHOLE}"),
    ({"world_size": 0}, "world_size: '0' cannot be used: give a whole number, 1 or more"),
    ({"planned_steps": "many"}, "planned_steps: 'many' cannot be used: give a number"),
    ({"tags": 5}, "tags: '5' cannot be used: give a list of words"),
    ({"config": 5}, "config: '5' cannot be used: give a dictionary, a dataclass or an object with attributes"),
    ({"config": Unspeakable()}, "config: '<Unspeakable instance at "),
    ({"config": [0.5] * 3_000_000}, "config: '[0.5, 0.5, 0.5, 0.5, 0.5, 0.5, ...]' cannot be used"),
]


@pytest.mark.parametrize(("wrong", "said"), WRONG, ids=range(len(WRONG)))
def test_an_argument_that_cannot_be_used_is_named_and_does_not_cost_the_run(
    tmp_path: Path, wrong: dict[str, Any], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    run = tv.start("x", dir=tmp_path, **wrong)
    run.log(loss=1)
    run.finish()
    assert [line["loss"] for line in lines(run_folders(tmp_path)[0])] == [1]
    (warning,) = caplog.messages
    assert warning.startswith(f"tv.start: {said}")


NOWHERE = [
    (5, "tv.start: dir: '5' cannot be used: give the path of a folder; nothing is recorded"),
    ("a\0b", "tv.start: dir: 'a\\x00b' cannot be used: give the path of a folder; nothing is recorded"),
    ("/proc/none", "dir: '/proc/none' cannot be written (No such file or directory): give another folder"),
]


@pytest.mark.parametrize(("folder", "said"), NOWHERE, ids=range(3))
def test_a_run_that_cannot_be_kept_is_one_warning_that_names_the_folder(
    folder: Any, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    run = tv.start("x", dir=folder)
    for _ in range(3):
        with run.step():
            run.log(loss=1)
    run.finish()
    (warning,) = caplog.messages
    assert said in warning


def test_an_argument_that_there_is_not_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="lerning_rate"):
        tv.start("x", dir=tmp_path, lerning_rate=1)  # type: ignore[call-arg]


def test_a_journal_that_cannot_be_opened_is_not_tried_all_the_time(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    run = tv.start("x", dir=tmp_path / "file")
    run.describe({"a": 1})
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.15


def test_names_are_taken_one_after_the_other_and_two_runs_at_once_are_two(tmp_path: Path) -> None:
    first, second = tv.start("x", dir=tmp_path), tv.start("x", dir=tmp_path)
    assert (first.id, second.id, tv.current()) == ("x", "x-2", second)
    for number in range(3):
        first.log(loss=number)
        second.log(loss=-number)
    second.finish()
    assert tv.current() is first
    first.finish()
    assert [[line["loss"] for line in lines(run)] for run in run_folders(tmp_path)] == [[0, 1, 2], [0, -1, -2]]
    assert not tv.current() and isinstance(tv.current(), OffRun)


def test_a_run_that_is_resumed_goes_on_under_its_own_name(tmp_path: Path) -> None:
    with tv.start("x", {"lr": 1}, dir=tmp_path) as run:
        for _ in range(5):
            with run.step():
                pass
            run.log(loss=1)
    began = run_json(run_folders(tmp_path)[0])["start"]
    time.sleep(0.002)
    with tv.start("x", {"layers": 2}, dir=tmp_path, resume=True) as run:
        assert (run.id, run.number) == ("x", 5)
        with run.step():
            pass
        run.log(loss=2)
    (folder,) = run_folders(tmp_path)
    told = run_json(folder)
    assert (told["start"], told["config"], told["status"]) == (began, {"lr": 1, "layers": 2}, "finished")
    assert len(told["resumed"]) == 1 and told["resumed"][0] > began
    assert sorted(line["step"] for line in lines(folder)) == [1, 2, 3, 4, 5, 6]


def test_a_resumed_run_that_counts_from_its_checkpoint_counts_as_it_does(tmp_path: Path) -> None:
    for steps in (range(487), range(400, 410)):
        with tv.start("x", dir=tmp_path, run_id="x", resume=True) as run:
            for step in steps:
                with run.step():
                    pass
                run.log(loss=step, step=step)
    (folder,) = run_folders(tmp_path)
    again = [line["step"] for line in lines(folder)][487:]
    assert again == list(range(400, 410))


def test_a_run_whose_id_is_taken_is_off(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    other = started("import trainvitals as tv; run = tv.start('x', run_id='mine'); print(run.id, flush=True); input()",
                    journal=tmp_path)  # fmt: skip
    assert other.stdout is not None and other.stdout.readline() == "mine\n"
    run = tv.start("x", dir=tmp_path, run_id="mine")
    run.log(loss=1)
    assert not run and run.status == "off" and len(caplog.records) == 1
    stop(other)
    assert tv.start("x", dir=tmp_path, run_id="mine").status == "running"


def test_the_journal_is_found_the_same_way_by_trainer_and_agent(tmp_path: Path) -> None:
    done = python("import trainvitals as tv; run = tv.start('x'); print(run.folder)", journal=tmp_path / "a")
    assert done.stdout == f"{tmp_path}/a/runs/x\n"


SPAWNS = """
import multiprocessing
import trainvitals as tv

run = tv.start("script")

def work(number):
    with tv.start("worker") as mine:
        mine.log(square=number * number)
    return bool(run), mine.id

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(work, [3]))
"""


def test_a_worker_that_imports_the_script_anew_starts_no_second_run_but_may_have_its_own(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SPAWNS)
    done = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True, timeout=60,
                          check=False, env=environment(tmp_path / "journal"))  # fmt: skip
    assert (done.stdout, done.stderr) == ("[(False, 'worker')]\n", "")
    assert [run.name for run in run_folders(tmp_path / "journal")] == ["script", "worker"]


NOTEBOOK = """
import code, json, sys
import trainvitals as tv
console = code.InteractiveConsole()
sys.ps1 = ">>> "
cell = '''
import trainvitals as tv
run = tv.start("cell"{more})
with run.step():
    pass
run.log(loss=1.0)
'''.replace("{more}", sys.argv[1])
for _ in range(3):
    console.runsource(cell, symbol="exec")
console.runsource("broken(", symbol="exec")
console.runsource("1 / 0")
console.runsource("run.log(loss=2.0)")
print(tv.current().id)
"""


@pytest.mark.parametrize("more", ["", ", run_id='cell', resume=True"])
def test_a_cell_that_is_run_again_ends_the_run_before(tmp_path: Path, more: str) -> None:
    done = python(NOTEBOOK, more, journal=tmp_path)
    folders = run_folders(tmp_path)
    assert [run_json(run)["status"] for run in folders] == ["finished"] * (1 if more else 3)
    assert done.stdout == ("cell\n" if more else "cell-3\n") and "not recorded" not in done.stderr
    assert [line["loss"] for line in lines(folders[-1])][-1] == 2.0


def test_a_run_that_is_off_has_all_that_a_run_has() -> None:
    """Whoever calls a run need not ask first."""
    public = {name for name in dir(tv.Run) if not name.startswith("_")}
    internal = {"record_to", "opened", "refused", "keep", "keep_agent", "crash", "note_signal", "end_at_exit", "wait",
                "forget"}  # fmt: skip
    assert public - internal <= set(dir(OffRun))
    off = OffRun()
    assert list(off.data([1])) == [1] and off.profile_inference(None, None) == {} and not off
    off.watch(None).remove()
    with off, off.step(3), off.phase("x"):
        off.begin_step(1)
        off.end_step(2)
        off.log({"a": 1}, b=2, step=3)
        off.add_seconds(a=1.0)
