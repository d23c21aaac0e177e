"""The agent hands runs on while they live; a target that hangs or is down concerns nobody else."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.collector.support import command_line, serving
from tests.ports import free_port
from tests.sinks.gate import gate
from tests.sinks.support import (
    Trainer,
    ended_run,
    environment,
    following,
    mlflow_points,
    mlflow_run,
    needed,
    tensorboard_events,
    tensorboard_points,
    wait_until,
    wandb_records,
    wandb_rows,
)


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        kept: list[socket.socket] = []
        threading.Thread(target=lambda: take_all(listening, kept), daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def take_all(listening: socket.socket, kept: list[socket.socket]) -> None:
    try:
        while True:
            kept.append(listening.accept()[0])
    except OSError:
        return


def test_one_target_that_hangs_stops_neither_the_other_nor_the_end(tmp_path: Path, silent: str) -> None:
    needed("tensorboard")
    needed("mlflow")
    trainer = Trainer(tmp_path)
    with serving(tmp_path, "--simulate", "1", "--sink", f"mlflow={silent}", "--sink", f"tensorboard={tmp_path}/tb",
                 env=environment(tmp_path)) as agent:  # fmt: skip
        trainer.step(5)
        wait_until(lambda: arrived(tmp_path) == trainer.expected())
        trainer.step(5)
        wait_until(lambda: arrived(tmp_path) == trainer.expected())
        began = time.monotonic()
        assert agent.stop() == 0
        assert time.monotonic() - began < 9
    trainer.end()


def test_readings_of_the_machine_end_with_the_run(tmp_path: Path) -> None:
    needed("tensorboard")
    trainer = Trainer(tmp_path)
    with serving(tmp_path, "--simulate", "1", "--interval", "0.1", "--sink", f"tensorboard={tmp_path}/tb",
                 env=environment(tmp_path)):  # fmt: skip
        trainer.step()
        wait_until(lambda: readings_until(tmp_path) > 0)
        trainer.end()
        ended = time.time()
        state = next((trainer.folder / "agent" / "sinks").glob("*.tensorboard-*.json"))
        wait_until(lambda: '"over":["finished"' in state.read_text().replace(" ", ""))
    assert ended - 3 < readings_until(tmp_path) <= ended


def readings_until(root: Path) -> float:
    """When the last one was."""
    return max((point.wall_time for point in readings(root / "tb" / "gemma")), default=0.0)


def readings(folder: Path, wanted: str = "") -> list[Any]:
    """All points of the machine's series, or of one."""
    if not folder.is_dir():
        return []
    events = tensorboard_events(folder)
    names = [name for name in events.Tags()["scalars"] if name.startswith(f"resources/{wanted}")]
    return [point for name in names for point in events.Scalars(name)]


def test_runs_that_were_not_asked_for_stay_where_they_are(tmp_path: Path) -> None:
    needed("tensorboard")
    ended_run(tmp_path, name="somebody-elses")
    trainer = Trainer(tmp_path)
    with serving(tmp_path, "--simulate", "1", "--sink", f"tensorboard={tmp_path}/tb", "--sink-runs", "gemma",
                 env=environment(tmp_path)):  # fmt: skip
        trainer.step(5)
        wait_until(lambda: arrived(tmp_path) == trainer.expected())
    assert [path.name for path in (tmp_path / "tb").iterdir()] == ["gemma"]
    trainer.end()


def arrived(root: Path) -> Any:
    try:
        return tensorboard_points(root / "tb", "gemma")
    except Exception:
        return None


def test_an_agent_without_sinks_starts_no_process_and_loads_nothing_of_them(tmp_path: Path) -> None:
    with serving(tmp_path, "--simulate", "1") as agent:
        children = Path(f"/proc/{agent.process.pid}/task/{agent.process.pid}/children").read_text()
        assert not children.split()


def test_a_run_that_ended_while_nobody_watched_arrives_with_its_end_and_without_a_word(tmp_path: Path) -> None:
    needed("mlflow")
    trainer = ended_run(tmp_path)
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    process = following(tmp_path, f"mlflow={uri}", stderr=subprocess.PIPE)
    try:
        wait_until(lambda: (tmp_path / "mlflow.db").exists() and ended_there(uri))
    finally:
        process.terminate()
        _, said = process.communicate(timeout=10)
    # MLflow tells of the tables that it makes.
    assert (process.returncode, said) == (0, "")
    assert mlflow_points(uri) == trainer.expected()


def ended_there(uri: str) -> bool:
    try:
        return bool(mlflow_run(uri)[1].info.status == "FINISHED")
    except AssertionError:
        return False


def test_a_run_that_ended_just_before_the_agent_gets_its_end(tmp_path: Path) -> None:
    needed("tensorboard")
    trainer = Trainer(tmp_path)
    trainer.step(5)
    process = following(tmp_path, f"tensorboard={tmp_path}/tb", stderr=subprocess.DEVNULL)
    wait_until(lambda: arrived(tmp_path) == trainer.expected())
    trainer.step(5)
    trainer.end("crashed", error="ValueError: no")
    process.terminate()
    assert process.wait(10) == 0
    assert arrived(tmp_path) == trainer.expected()
    told = tensorboard_events(tmp_path / "tb" / "gemma").Tensors("config")[-1].tensor_proto.string_val[0]
    assert b"| error | ValueError: no |" in told


def test_a_demo_hands_nothing_on(tmp_path: Path) -> None:
    needed("tensorboard")
    environ = {"TRAINVITALS_SINKS": f"tensorboard={tmp_path}/tb"}
    with serving(tmp_path, command="demo", env=environ) as agent:
        time.sleep(2)
        assert agent.stop() == 0
    assert not (tmp_path / "tb").exists()


def test_a_worker_ends_with_the_agent_that_was_killed(tmp_path: Path) -> None:
    needed("tensorboard")
    process = following(tmp_path, f"tensorboard={tmp_path}/tb", stderr=subprocess.DEVNULL)
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(10) == 0


@contextmanager
def mlflow_server(uri: str, root: Path) -> Iterator[int]:
    """Its port, once it answers."""
    port = free_port()
    words = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", uri, "--artifacts-destination", str(root),
             "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]  # fmt: skip
    environ = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                               cwd=root, env=environ)  # fmt: skip
    try:
        wait_until(lambda: answers(port), 180)
        yield port
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def test_a_server_that_was_down_gets_everything_when_it_is_up_and_again_after_it_fell(
    tmp_path: Path, mlflow_uri: str
) -> None:
    trainer = Trainer(tmp_path)
    with mlflow_server(mlflow_uri, tmp_path) as behind:
        port = free_port()
        uri = f"http://127.0.0.1:{port}"
        trainer.step(50)
        process = following(tmp_path, f"mlflow={uri}", stderr=subprocess.PIPE)
        try:
            assert process.stderr is not None
            for _ in range(2):
                assert "run gemma waits" in process.stderr.readline()
                with gate(port, behind):
                    wait_until(lambda: has(uri, trainer))
                    assert mlflow_points(uri) == trainer.expected()
                trainer.step(50)
        finally:
            process.kill()
            process.communicate()
            trainer.end()


def has(uri: str, trainer: Trainer) -> bool:
    try:
        return bool(mlflow_points(uri).keys() >= trainer.expected().keys())
    except Exception:
        return False


def test_monitor_hands_the_gpus_alone_to_wandb_and_tensorboard(tmp_path: Path) -> None:
    needed("wandb")
    needed("tensorboard")
    words = command_line("monitor", "--simulate", "2", "--no-console", "--dir", str(tmp_path), "--wandb-project", "P",
                         "--wandb-run-name", "N", "--sink", f"tensorboard={tmp_path}/tb")  # fmt: skip
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=environment(tmp_path))  # fmt: skip
    try:
        wait_until(lambda: len(readings(tmp_path / "tb" / "N", "gpu_1_temperature_c")) >= 2
                   and any("cpu_utilization_pct" in row for row in wandb_rows(tmp_path)))  # fmt: skip
    finally:
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=15)
    assert process.returncode == 0, err
    assert out.startswith("summary:")
    rows = wandb_rows(tmp_path)
    assert {f"gpu_{gpu}_{name}" for gpu in (0, 1) for name in ("gpu_utilization_pct", "power_usage_w")} <= set(rows[0])
    run = next(record.run for record in wandb_records(tmp_path) if record.WhichOneof("record_type") == "run")
    assert (run.project, run.display_name) == ("P", "N")
