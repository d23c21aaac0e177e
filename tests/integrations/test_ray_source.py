"""The agent's side: a real cluster is asked by a process of its own."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.collector.support import serving, wait_for

pytest.importorskip("ray", reason="ray is not installed: make trainers")

from tests.integrations.test_ray import ray_environment
from trainvitals.errors import SourceError
from trainvitals.sources import ray as ray_source

CLUSTER = """
import ray
context = ray.init(num_cpus=3, num_gpus=2, include_dashboard=False, logging_level="ERROR")
print("at", ray.get_runtime_context().gcs_address, flush=True)
input()
ray.shutdown()
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def cluster(home):
    process = subprocess.Popen([sys.executable, "-c", CLUSTER], env=ray_environment(home), text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
    yield next(line.split()[1] for line in process.stdout if line.startswith("at "))
    process.communicate("\n", timeout=60)


@pytest.fixture
def client(home, monkeypatch):
    """Ray itself finds the token that it made for the cluster in this home."""
    for name, value in ray_environment(home).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")


@pytest.fixture
def source(cluster, client, monkeypatch):
    monkeypatch.setattr(ray_source, "ASK_SECONDS", 0.2)
    source = ray_source.RaySource(cluster)
    yield source
    source.close()


def read(source):
    (device,) = source.discover()
    return device.read("fast")


def answers(source):
    try:
        read(source)
    except SourceError:
        return False
    return True


def test_a_cluster_is_read_without_ray_in_the_agent(source):
    readings = {reading.label("resource"): reading.values for reading in wait_for(lambda: read(source), 60)}
    assert readings[""] == {"nodes": 1.0}
    assert readings["CPU"] == {"used": 0.0, "available": 3.0}
    assert readings["GPU"] == {"used": 0.0, "available": 2.0}
    assert readings["object_store_memory"]["available"] > 0
    assert read(source)[0].timestamp > time.time() - 10
    wait_for(lambda: read(source)[0].timestamp > time.time() - 1)


def test_an_agent_serves_the_clusters_metrics(cluster, client, tmp_path):
    with serving(tmp_path, "--simulate", "1", "--ray-address", cluster) as served:
        wait_for(lambda: "ray_cluster_nodes 1.0" in served.get("/metrics"), 60)
        text = served.get("/metrics")
        assert 'ray_cluster_resource_used{resource="GPU"} 0.0' in text
        assert 'ray_cluster_resource_available{resource="CPU"} 3.0' in text
        assert 'trainvitals_source_up{source="ray"} 1.0' in text


def test_a_ray_that_hangs_keeps_no_reader_waiting_and_what_it_said_is_not_shown_as_now(source, monkeypatch):
    wait_for(lambda: read(source), 60)
    monkeypatch.setattr(ray_source, "STALE_SECONDS", 1.0)
    asking = source._cluster._process
    os.kill(asking.pid, signal.SIGSTOP)
    time.sleep(1.2)
    began = time.monotonic()
    with pytest.raises(SourceError, match="no cluster answers at"):
        read(source)
    assert time.monotonic() - began < 1
    os.kill(asking.pid, signal.SIGCONT)
    wait_for(lambda: answers(source), 10)


def test_the_process_that_asks_ends_with_who_started_it(source):
    wait_for(lambda: read(source), 60)
    asking = source._cluster._process
    asking.stdin.close()
    assert asking.wait(10) == 0


def test_where_no_cluster_answers_the_error_says_where_and_what_mends_it(client, monkeypatch):
    monkeypatch.setattr(ray_source, "STALE_SECONDS", 5.0)
    source = ray_source.RaySource("127.0.0.1:1")
    with pytest.raises(SourceError, match=r"no cluster answers at '127.0.0.1:1' \(.+\); start one with `ray start"):
        read(source)
    source.close()


def test_a_cluster_that_wants_its_token_is_told_as_such(cluster, client, monkeypatch):
    monkeypatch.setattr(ray_source, "STALE_SECONDS", 5.0)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    source = ray_source.RaySource(cluster)
    with pytest.raises(SourceError, match="run the agent as the user that started Ray, with RAY_AUTH_MODE=token"):
        read(source)
    source.close()


def test_without_the_package_the_error_names_it(monkeypatch):
    monkeypatch.setattr(ray_source.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SourceError, match="not installed beside trainvitals; `pip install ray`"):
        ray_source.RaySource("auto").discover()
