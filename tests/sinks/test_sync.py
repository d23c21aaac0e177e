"""`trainvitals sync`: what it says, what it refuses, and journals that nobody would wish for."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.collector.support import command_line, run
from tests.sinks.support import (
    Trainer,
    ended_run,
    environment,
    following,
    mlflow_run,
    needed,
    sync,
    tensorboard_events,
    tensorboard_points,
    wait_until,
    wandb_points,
)
from trainvitals.errors import install_words
from trainvitals.journal import retention


def test_several_targets_at_once_each_with_its_count_and_a_second_time_nothing_new(tmp_path: Path) -> None:
    needed("tensorboard")
    needed("wandb")
    trainer = ended_run(tmp_path)
    for _ in range(2):
        done = sync(tmp_path, "gemma", f"tensorboard={tmp_path}/tb", "wandb=p")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines() == [f"tensorboard={tmp_path}/tb: run gemma, 20 points",
                                            "wandb=p: run gemma, 20 points"]  # fmt: skip
    assert tensorboard_points(tmp_path / "tb", "gemma") == wandb_points(tmp_path) == trainer.expected()


def test_a_run_is_found_by_the_path_of_its_folder_too(tmp_path: Path) -> None:
    needed("tensorboard")
    trainer = ended_run(tmp_path / "journal")
    done = sync(tmp_path / "elsewhere", str(trainer.folder), f"tensorboard={tmp_path}/tb")
    assert done.returncode == 0, done.stderr
    assert tensorboard_points(tmp_path / "tb", "gemma") == trainer.expected()


def test_a_run_that_lives_is_handed_on_as_far_as_it_is(tmp_path: Path) -> None:
    needed("tensorboard")
    trainer = Trainer(tmp_path)
    for _ in range(2):
        trainer.step(3)
        done = sync(tmp_path, "gemma", f"tensorboard={tmp_path}/tb")
        assert done.stdout.startswith("run gemma lives: ")
        assert tensorboard_points(tmp_path / "tb", "gemma") == trainer.expected()
    trainer.end()


def test_an_event_file_that_was_removed_is_written_again(tmp_path: Path) -> None:
    needed("tensorboard")
    trainer = ended_run(tmp_path)
    for _ in range(2):
        assert sync(tmp_path, "gemma", f"tensorboard={tmp_path}/tb").returncode == 0
        assert tensorboard_points(tmp_path / "tb", "gemma") == trainer.expected()
        for path in (tmp_path / "tb" / "gemma").iterdir():
            path.unlink()


@pytest.mark.parametrize(("words", "said"), [
    (("sync", "gemma"), "trainvitals: --to: '' cannot be used: name a target"),
    (("sync", "gemma", "--to", "aim=x"), "trainvitals: --to: 'aim=x' cannot be used: give tensorboard=DIR, wandb="),
    (("serve", "--sink", "wandb"), "trainvitals: --sink: 'wandb' cannot be used: give tensorboard=DIR, wandb="),
    (("sync",), "trainvitals sync: the following arguments are required: RUN"),
])  # fmt: skip
def test_what_is_no_target_is_refused_in_one_line(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = run(*words, "--dir", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1


def test_a_variable_with_a_bad_target_is_named(tmp_path: Path) -> None:
    done = run("serve", "--dir", str(tmp_path), env={"TRAINVITALS_SINKS": "wandb=p,mlfow=x"})
    assert done.stderr.startswith("trainvitals: TRAINVITALS_SINKS: 'wandb=p,mlfow=x' cannot be used: ")


def test_a_run_that_is_not_there_is_answered_with_the_nearest_or_the_last(tmp_path: Path) -> None:
    needed("tensorboard")
    target = f"tensorboard={tmp_path}/tb"
    no_run = f"trainvitals: there is no run '{{}}' in {tmp_path}: "
    assert sync(tmp_path, "gema", target).stderr.startswith(no_run.format("gema") + "it holds none")
    ended_run(tmp_path)
    near, far = sync(tmp_path, "gema", target), sync(tmp_path, "nosuch", target)
    assert (near.returncode, near.stdout) == (2, "")
    assert near.stderr.startswith(no_run.format("gema") + "the nearest are gemma, or name")
    assert far.stderr.startswith(no_run.format("nosuch") + "the last ones are gemma, or name")


@pytest.mark.parametrize("kind", ["tensorboard", "wandb", "mlflow"])
def test_a_library_that_is_missing_is_named_with_its_extra(kind: str, tmp_path: Path) -> None:
    """A folder of that name beside us, as W&B makes one, is no library."""
    (tmp_path / kind).mkdir()
    script = f"import sys; sys.modules[{kind!r}] = None; sys.path.insert(0, {str(tmp_path)!r})\n" \
             "from trainvitals import cli; sys.exit(cli.main())"  # fmt: skip
    words = [sys.executable, "-c", script, "serve", "--dir", str(tmp_path), "--sink", f"{kind}=x"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 2
    assert done.stderr.endswith(f"{kind} is not installed: {install_words(kind)}\n")


@pytest.mark.parametrize("kind", ["tensorboard", "wandb", "mlflow"])
def test_a_library_that_cannot_be_imported_is_named_with_what_it_lacks(kind: str, tmp_path: Path) -> None:
    ended_run(tmp_path)
    broken = tmp_path / "broken" / kind
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("import what_it_lacks\n")
    found = os.pathsep.join([str(broken.parent), os.environ.get("PYTHONPATH", "")])
    done = sync(tmp_path, "gemma", f"{kind}={tmp_path}/x", environ={"PYTHONPATH": found})
    assert done.returncode == 1
    assert "No module named 'what_it_lacks'" in done.stderr
    assert done.stderr.endswith(install_words(kind) + "\n")
    assert done.stderr.count("\n") == 1


def test_a_target_that_is_served_by_another_is_left_alone(tmp_path: Path) -> None:
    needed("tensorboard")
    trainer = Trainer(tmp_path)
    trainer.step()
    target = f"tensorboard={tmp_path}/tb"
    process = following(tmp_path, target, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: list(trainer.folder.glob("agent/sinks/*.json")))
        done = sync(tmp_path, "gemma", target)
        assert done.returncode == 1
        assert "another process hands this run on" in done.stderr
    finally:
        process.kill()
        process.communicate()
        trainer.end()


def test_a_server_that_is_not_there_is_an_error_that_says_how_to_go_on(tmp_path: Path) -> None:
    needed("mlflow")
    ended_run(tmp_path)
    done = sync(tmp_path, "gemma", "mlflow=http://me:secret@127.0.0.1:9")
    assert done.returncode == 1
    assert "the same command goes on from there" in done.stderr
    assert "secret" not in done.stderr


def test_long_work_has_a_bar_on_a_terminal(tmp_path: Path) -> None:
    needed("tensorboard")
    ended_run(tmp_path, 3000)
    ours, theirs = pty.openpty()
    words = command_line("sync", "gemma", "--dir", str(tmp_path), "--to", f"tensorboard={tmp_path}/tb")
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=theirs, env=environment(tmp_path))
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 4096):
            shown += part
    except OSError:
        pass  # the terminal's other end is closed
    assert process.wait(30) == 0
    assert b"tensorboard [" in shown
    assert b"points" in shown


def test_a_hostile_journal_arrives_as_far_as_it_is_numbers(tmp_path: Path, mlflow_uri: str) -> None:
    for library in ("tensorboard", "wandb", "mlflow"):
        needed(library)
    trainer = Trainer(tmp_path, config={"deep": {"er": None}, "long": "x" * 100_000, "_x": 1, "a/../b": 2})
    log = trainer.files.metrics.append
    log({"step": 1, "text": "x" * 2**20, "loss": 1.0})
    log({"step": 2, **{f"name {number}%": float(number) for number in range(2500)}})
    log({"step": 2**70, "huge": 10**400, "../../etc": 1.0, "": 2.0, "_step": 5, "a*b": 1.0})
    log({"step": "three", "list": [1], "none": None, "true": True, "nested": {"a": 1}, "word": 4})
    trainer.files.events.append({"event": "histograms", "step": 1, "histograms": {"parameters/x": {"edges": [1]}}})
    trainer.end()
    path = next(trainer.folder.glob("training_metrics_*"))
    with path.open("ab") as file:
        file.write(b"\xff\xfe garbage\n[1]\n" + json.dumps({"step": 7, "late": 1}).encode() + b'\n{"step": 8, "lo')
    done = sync(tmp_path, "gemma", f"tensorboard={tmp_path}/tb", "wandb=p", f"mlflow={mlflow_uri}")
    assert done.returncode == 0, done.stderr
    points = tensorboard_points(tmp_path / "tb", "gemma")
    assert len(points) == 1 + 2500 + 4 + 1 + 1
    assert points["late", 7] == points["name 2499%", 2] == points["word", 0] == 1
    assert tensorboard_events(tmp_path / "tb" / "gemma").Scalars("training/huge")[0].value == float("inf")
    metrics = mlflow_run(mlflow_uri)[1].data.metrics
    assert (metrics["name 2499_"], metrics["etc"], metrics["late"]) == (2499.0, 1.0, 1.0)
    assert wandb_points(tmp_path)["name 2499%", 2] == 1


def test_what_is_kept_of_a_target_goes_with_the_run(tmp_path: Path) -> None:
    needed("tensorboard")
    trainer = ended_run(tmp_path)
    assert sync(tmp_path, "gemma", f"tensorboard={tmp_path}/tb").returncode == 0
    later = (trainer.folder / "agent" / "sinks").stat().st_mtime + 86400
    retention.sweep_runs(tmp_path, later, cap=0)
    assert not trainer.folder.exists()
