"""A Ray cluster: its nodes, processors, GPUs, memory and object store; in all, in use and free.

cluster_metrics()  ->  {"ray_nodes": 2.0, "ray_cpu_total": 64.0, "ray_cpu_used": 12.0, "ray_cpu_available": 52.0, …}

As a program it is how an agent asks: `python -m trainvitals.integrations.ray auto 5` prints a line every 5 seconds.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

import ray

from trainvitals.ending import at_end_of_input

# As Ray calls what it counts -> as it is called here. Memory is in bytes.
RESOURCES = {"CPU": "cpu", "GPU": "gpu", "memory": "memory_bytes", "object_store_memory": "object_store_bytes"}


def cluster_resources() -> dict[str, Any]:
    """What Ray says of the cluster that this process is connected to. What is wholly in use Ray leaves out of what is
    available."""
    total, available = ray.cluster_resources(), ray.available_resources()
    return {
        "nodes": sum(1 for node in ray.nodes() if node["Alive"]),
        "total": {name: float(total[name]) for name in RESOURCES if name in total},
        "available": {name: float(available.get(name, 0.0)) for name in RESOURCES if name in total},
    }


def cluster_metrics() -> dict[str, float]:
    """Nothing while this process is connected to no cluster; a resource that the cluster has none of is absent."""
    if not ray.is_initialized():
        return {}
    found = cluster_resources()
    metrics = {"ray_nodes": float(found["nodes"])}
    for resource, name in RESOURCES.items():
        if resource in found["total"]:
            metrics |= _of_resource(name, found["total"][resource], found["available"][resource])
    return metrics


def _of_resource(name: str, total: float, available: float) -> dict[str, float]:
    return {f"ray_{name}_total": total, f"ray_{name}_used": total - available, f"ray_{name}_available": available}


class ClusterWatch:
    """Logs the cluster's metrics into a run, by a thread that may wait for Ray as long as it likes."""

    def __init__(self, run: Any, interval: float) -> None:
        self._run, self._interval = run, interval
        self._ended = threading.Event()
        threading.Thread(target=self._watch, name="trainvitals-ray", daemon=True).start()

    def remove(self) -> None:
        self._ended.set()

    def _watch(self) -> None:
        while not self._ended.is_set():
            try:
                metrics = cluster_metrics()
                if metrics and not self._ended.is_set():
                    self._run.log(metrics, step=self._run.number)
            except Exception as error:
                self._run.failed(error)
            self._ended.wait(self._interval)


def watch_cluster(run: Any, interval: float = 10.0) -> ClusterWatch | None:
    """For the process that drives the training, until the run ends or `remove()`."""
    if not run or run.rank != 0:
        return None
    watch = ClusterWatch(run, interval)
    run.keep(watch)
    return watch


def main(address: str, interval: float) -> None:
    """Until whoever started it is gone: they hold the other end of our input."""
    at_end_of_input(lambda: os._exit(0))
    ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    while True:
        _say(cluster_resources() | {"time": time.time()})
        time.sleep(interval)


def _say(found: Mapping[str, Any]) -> None:
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
