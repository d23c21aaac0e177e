"""A Ray job as somebody would write it, on a cluster of its own: metrics, a watch, training by two workers, trials.

python ray_job.py JOURNAL  ->  what was seen, as one line of JSON
"""

import json
import sys
import tempfile
import time

import ray
import ray.train
import ray.tune
from ray.train.torch import TorchTrainer

import trainvitals as tv
from trainvitals.integrations.ray import cluster_metrics, watch_cluster


@ray.remote(num_cpus=1, num_gpus=1)
class Busy:
    def start(self, journal):
        return tv.start("actor", dir=journal).id


def train(config):
    run = tv.start("gemma", dir=config["journal"])
    for loss in (2.0, 1.0):
        with run.step():
            pass
        run.log(loss=loss)
    run.finish()
    ray.train.report({"loss": 1.0})


def search(config):
    run = tv.start("search", dir=config["journal"])
    run.log(loss=config["rate"])
    run.finish()


def fit(journal):
    settings = ray.train.RunConfig(name="gemma", storage_path=tempfile.mkdtemp())
    TorchTrainer(train, train_loop_config={"journal": journal}, run_config=settings,
                 scaling_config=ray.train.ScalingConfig(num_workers=2)).fit()  # fmt: skip


def watched(journal):
    run = tv.start("driver", dir=journal)
    watch = watch_cluster(run, interval=0.1)
    for _ in range(3):
        with run.step():
            time.sleep(0.3)
        run.log(loss=1.0)
    run.finish()
    return {"run": run.id, "ended": watch._ended.is_set()}


def metrics_with(name, least):
    """Ray tells what changed after a moment."""
    deadline = time.monotonic() + 20
    while (metrics := cluster_metrics())[name] < least and time.monotonic() < deadline:
        time.sleep(0.1)
    return metrics


def in_use(journal):
    busy = Busy.remote()
    seen = {"actor": ray.get(busy.start.remote(journal)), "before": metrics_with("ray_cpu_used", 1)}
    held = ray.put(b"x" * 100_000_000)
    seen["after"] = metrics_with("ray_object_store_bytes_used", 100e6)
    del held
    ray.kill(busy)
    return seen


def main(journal):
    seen = {"alone": cluster_metrics()}
    ray.init(num_cpus=3, num_gpus=1, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    try:
        seen["used"] = in_use(journal)
        seen["watched"] = watched(journal)
        seen["began"] = ray.get_runtime_context().get_session_name().removeprefix("session_")[:19]
        fit(journal)
        fit(journal)
        ray.tune.Tuner(search, param_space={"rate": ray.tune.grid_search([0.1, 0.2]), "journal": journal},
                       run_config=ray.tune.RunConfig(storage_path=tempfile.mkdtemp(), verbose=0)).fit()  # fmt: skip
    finally:
        ray.shutdown()
    print(json.dumps(seen))


if __name__ == "__main__":
    main(sys.argv[1])
