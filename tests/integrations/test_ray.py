import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray.train.torch", reason="ray is not installed: make trainers")

JOB = Path(__file__).parent / "ray_job.py"


def ray_environment(home):
    """Ray keeps the token of a cluster in the user's home."""
    here = {"HOME": str(home), "RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": os.pathsep.join(sys.path)}
    return {name: value for name, value in os.environ.items() if name != "TRAINVITALS_RUN_ID"} | here


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    return tmp_path_factory.mktemp("journal")


@pytest.fixture(scope="module")
def seen(journal, tmp_path_factory):
    done = subprocess.run([sys.executable, str(JOB), str(journal)], capture_output=True, text=True, timeout=240,
                          env=ray_environment(tmp_path_factory.mktemp("home")), check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def runs(journal, name):
    return [folder for folder in sorted((journal / "runs").iterdir())
            if folder.is_dir() and folder.name.startswith(f"{name}-")]  # fmt: skip


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_process_that_is_connected_to_no_cluster_has_no_metrics(seen):
    assert seen["alone"] == {}


def test_what_actors_hold_is_used_and_the_rest_available(seen):
    metrics = seen["used"]["before"]
    assert (metrics["ray_cpu_total"], metrics["ray_cpu_used"], metrics["ray_cpu_available"]) == (3, 1, 2)
    assert (metrics["ray_gpu_total"], metrics["ray_gpu_used"], metrics["ray_gpu_available"]) == (1, 1, 0)
    assert metrics["ray_nodes"] == 1
    assert metrics["ray_memory_bytes_total"] == metrics["ray_memory_bytes_available"] > 0


def test_an_object_in_the_store_is_seen(seen):
    before, after = seen["used"]["before"], seen["used"]["after"]
    assert before["ray_object_store_bytes_used"] < 50e6
    assert 100e6 <= after["ray_object_store_bytes_used"] < 200e6
    assert after["ray_object_store_bytes_total"] == before["ray_object_store_bytes_total"]


def test_a_watch_logs_the_cluster_into_the_steps_of_the_run_and_ends_with_it(seen, journal):
    folder = journal / "runs" / seen["watched"]["run"]
    (file,) = folder.glob("training_metrics_*.jsonl")
    told = [line for line in lines(file) if "ray_nodes" in line]
    assert len(told) >= 3
    assert {line["ray_cpu_total"] for line in told} == {3}
    assert {line["step"] for line in lines(file)} <= {0, 1, 2, 3}
    assert len([line for line in lines(file) if "step_duration_seconds" in line]) == 3
    assert seen["watched"]["ended"]


def test_the_workers_of_a_training_share_a_run_and_each_writes_its_own_file(seen, journal):
    for folder in runs(journal, "gemma"):
        ranks = {path.name.split(".")[1]: lines(path) for path in folder.glob("training_metrics_*.jsonl")}
        assert sorted(ranks) == ["rank0", "rank1"]
        assert [[line["loss"] for line in told] for told in ranks.values()] == [[2.0, 1.0]] * 2
        run = json.loads((folder / "run.json").read_text())
        assert (run["world_size"], run["status"], run["name"]) == (2, "finished", "gemma")
        processes = [json.loads(path.read_text()) for path in sorted(folder.glob("process.rank*.json"))]
        assert [process["local_rank"] for process in processes] == [0, 1]


def test_two_trainings_of_one_name_in_one_job_are_two_runs(seen, journal):
    assert len(runs(journal, "gemma")) == 2


def test_the_trials_of_a_search_are_runs_of_their_own(seen, journal):
    losses = [lines(next(folder.glob("training_metrics_*.jsonl")))[0]["loss"] for folder in runs(journal, "search")]
    assert sorted(losses) == [0.1, 0.2]


def test_what_an_actor_trains_bears_the_clusters_name_for_job_numbers_begin_anew(seen):
    assert seen["used"]["actor"] == f"actor-{seen['began']}-01000000"
