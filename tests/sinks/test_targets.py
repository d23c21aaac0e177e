"""What arrives where, read back by each target's own library."""

import math
from pathlib import Path

import pytest

from tests.sinks.support import (
    Trainer,
    ended_run,
    environment,
    mlflow_points,
    mlflow_run,
    needed,
    sync,
    tensorboard_events,
    tensorboard_points,
    wandb_points,
    wandb_records,
    wandb_rows,
)
from trainvitals.journal.append import Appender

CONFIG = {"lr": 0.1, "optimizer": {"name": "adam", "betas": [0.9, 0.99]}, "amp": True}
HISTOGRAM = {"edges": [0.0, 1.0, 2.0], "counts": [3, 4], "sum": 9.0, "sum_squares": 11.0, "min": 0.1, "max": 1.9}
GPU_SERIES = {"gpu_0_gpu_utilization_pct": 97.0, "gpu_0_memory_utilization_pct": 50.0, "gpu_0_memory_total_gb": 80.0,
              "gpu_0_temperature_c": 61.0, "gpu_0_power_usage_w": 300.0, "gpu_0_graphics_clock_mhz": 1980.0,
              "gpu_0_memory_clock_mhz": 2619.0}  # fmt: skip
HOST_SERIES = {"cpu_utilization_pct": 12.5, "system_memory_used_gb": 2.0, "system_memory_utilization_pct": 25.0}
ALLOCATOR = {"gpu_0_memory_allocated_gb": 2.0, "gpu_0_memory_reserved_gb": 3.0}


def with_node_lines(root: Path) -> Trainer:
    """A run on GPU 0 of a node whose agent wrote two lines of each kind; a GPU beside it is none of its."""
    trainer = Trainer(root, config=CONFIG, gpus=[{"uuid": "GPU-0"}])
    node = root / "gpu" / "node1"
    gpus = Appender(node, "gpu_metrics", suffix=".jsonl", max_bytes=1 << 20)
    for number in (0, 1):
        gpus.append({"gpu_index": number, "utilization_percent": 97.0 - number, "memory_percent": 50.0,
                     "memory_total_mb": 81920.0, "temperature_celsius": 61.0, "power_draw_watts": 300.0,
                     "uuid": f"GPU-{number}", "clock_hertz_graphics": 1.98e9,
                     "clock_hertz_memory": 2.619e9})  # fmt: skip
    host = Appender(node, "host_metrics", suffix=".jsonl", max_bytes=1 << 20)
    host.append({"cpu_usage_percent": 12.5, "memory_used_bytes": 2 * 2**30, "memory_total_bytes": 8 * 2**30})
    trainer.step(3, memory_allocated_mb=2048.0, memory_reserved_mb=3072.0)
    trainer.files.events.append({"event": "histograms", "step": 2, "histograms": {"gradients/fc": HISTOGRAM}})
    trainer.end("crashed", error="ValueError: no")
    return trainer


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRAINVITALS_HOSTNAME", "node1")
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    return tmp_path


def test_tensorboard_gets_training_resources_histograms_and_config(root: Path) -> None:
    needed("tensorboard")
    with_node_lines(root)
    assert sync(root, "gemma", f"tensorboard={root}/tb").returncode == 0
    events = tensorboard_events(root / "tb" / "gemma")
    assert [(point.step, point.value) for point in events.Scalars("training/loss")][1:] == [
        (2, 1.0), (3, pytest.approx(2 / 3))]  # fmt: skip
    for name, value in (GPU_SERIES | HOST_SERIES).items():
        assert [point.value for point in events.Scalars(f"resources/{name}")] == [pytest.approx(value)]
    assert not [name for name in events.Tags()["scalars"] if "gpu_1" in name]
    told = events.Histograms("gradients/fc")[0]
    assert (told.step, told.histogram_value.num, told.histogram_value.sum) == (2, 7, 9)
    assert (told.histogram_value.bucket_limit, told.histogram_value.bucket) == ([1, 2], [3, 4])
    assert b"| optimizer.name | adam |" in events.Tensors("config")[-1].tensor_proto.string_val[0]
    assert b"| status | crashed |" in events.Tensors("config")[-1].tensor_proto.string_val[0]


def test_tensorboard_knows_the_hyperparameters_and_the_end(root: Path) -> None:
    needed("tensorboard")
    from tensorboard.plugins.hparams import api_pb2
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    with_node_lines(root)
    assert sync(root, "gemma", f"tensorboard={root}/tb").returncode == 0
    content = tensorboard_events(root / "tb" / "gemma").PluginTagToContent("hparams")
    start = HParamsPluginData.FromString(content["_hparams_/session_start_info"]).session_start_info
    assert start.hparams["lr"].number_value == 0.1
    assert start.hparams["amp"].bool_value is True
    end = HParamsPluginData.FromString(content["_hparams_/session_end_info"]).session_end_info
    assert end.status == api_pb2.STATUS_FAILURE


def test_wandb_gets_its_own_names_for_the_gpus_the_config_and_the_exit_code(root: Path) -> None:
    needed("wandb")
    trainer = with_node_lines(root)
    assert sync(root, "gemma", "wandb=team/project").returncode == 0
    points, rows, records = wandb_points(root), wandb_rows(root), wandb_records(root)
    assert {point: points[point] for point in trainer.expected()} == dict(trainer.expected())
    resources = {name: value for row in rows if "elapsed_seconds" in row for name, value in row.items()}
    assert {name: resources[name] for name in GPU_SERIES | HOST_SERIES} == pytest.approx(GPU_SERIES | HOST_SERIES)
    assert not [name for row in rows for name in row if name.startswith("gpu_1")]
    assert {name: row[name] for row in rows for name in ALLOCATOR if name in row} == ALLOCATOR
    run = next(record.run for record in records if record.WhichOneof("record_type") == "run")
    assert (run.entity, run.project, run.display_name) == ("team", "project", "gemma")
    assert {item.key: item.value_json for item in run.config.update}["lr"] == "0.1"
    assert [record.exit.exit_code for record in records if record.WhichOneof("record_type") == "exit"] == [1]


def test_mlflow_gets_metrics_params_and_the_status(root: Path, mlflow_uri: str) -> None:
    needed("mlflow")
    trainer = with_node_lines(root)
    assert sync(root, "gemma", f"mlflow={mlflow_uri}").returncode == 0
    client, run = mlflow_run(mlflow_uri)
    points = mlflow_points(mlflow_uri)
    assert {point: points[point] for point in trainer.expected()} == dict(trainer.expected())
    for name, value in (GPU_SERIES | HOST_SERIES).items():
        assert run.data.metrics[f"system/{name}"] == pytest.approx(value)
    assert run.data.params == {"lr": "0.1", "optimizer.name": "adam", "optimizer.betas": "[0.9, 0.99]", "amp": "True"}
    assert (run.info.status, run.info.run_name, run.data.tags["error"]) == ("FAILED", "gemma", "ValueError: no")
    assert client.get_experiment(run.info.experiment_id).name == "gemma"


def test_mlflow_takes_a_folder_too(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needed("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    trainer = ended_run(root)
    for _ in range(2):
        assert sync(root, "gemma", f"mlflow={root}/mlruns").returncode == 0
    assert mlflow_points(f"{root}/mlruns") == trainer.expected()


def test_nan_and_infinity_arrive(root: Path, mlflow_uri: str) -> None:
    for library in ("tensorboard", "wandb", "mlflow"):
        needed(library)
    trainer = Trainer(root)
    for value in (math.nan, math.inf, -math.inf):
        trainer.files.metrics.append({"step": 1, repr(value): value})
    trainer.end()
    assert sync(root, "gemma", f"tensorboard={root}/tb", "wandb=p", f"mlflow={mlflow_uri}").returncode == 0
    events = tensorboard_events(root / "tb" / "gemma")
    assert math.isnan(events.Scalars("training/nan")[0].value)
    assert events.Scalars("training/-inf")[0].value == -math.inf
    row = wandb_rows(root)[0]
    assert math.isnan(float(row["nan"]))
    assert float(row["inf"]) == math.inf
    metrics = mlflow_run(mlflow_uri)[1].data.metrics
    assert math.isnan(metrics["nan"])
    # MLflow's databases hold no infinity: it keeps the largest number.
    assert metrics["inf"] == -metrics["-inf"] > 1e308


def test_other_ranks_have_their_number_before_the_name(root: Path) -> None:
    needed("tensorboard")
    ranks = [Trainer(root, rank=rank, world_size=2, run_id="pair") for rank in (0, 1)]
    for rank in ranks:
        rank.step(4)
    for rank in reversed(ranks):
        rank.end()
    assert sync(root, "pair", f"tensorboard={root}/tb").returncode == 0
    assert tensorboard_points(root / "tb", "pair") == ranks[0].expected() + ranks[1].expected("rank1/")


def test_a_resumed_run_goes_on_where_it_was(root: Path, mlflow_uri: str) -> None:
    needed("tensorboard")
    needed("mlflow")
    targets = (f"tensorboard={root}/tb", f"mlflow={mlflow_uri}")
    first = ended_run(root, 5)
    assert sync(root, "gemma", *targets).returncode == 0
    again = Trainer(root, run_id="gemma")
    again.steps = first.steps
    again.step(5)
    again.end()
    assert sync(root, "gemma", *targets).returncode == 0
    assert tensorboard_points(root / "tb", "gemma") == again.expected()
    assert mlflow_points(mlflow_uri) == again.expected()
    assert mlflow_run(mlflow_uri)[1].info.status == "FINISHED"
