"""What the application answers: metrics in each format, health, the snapshot and the page."""

import gzip
import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from starlette.applications import Starlette

from tests.collector.support import Served, serving, wait_for
from tests.collector.web.asking import LOCAL, ask
from trainvitals.agent.service import Agent
from trainvitals.catalog import SERIES
from trainvitals.journal import runs
from trainvitals.journal.run_files import RunFiles
from trainvitals.sources import simulated
from trainvitals.sources.host import HostSource
from trainvitals.sources.simulated import SimulatedSource
from trainvitals.web.app import make_app

OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"
NAME = "<script>alert(1)</script>" + "x" * 80


@pytest.fixture(scope="module")
def run(agent: Agent) -> Iterator[str]:
    """A run with a name that no page should trust, and values that JSON has no word for."""
    claimed = runs.claim(agent.root, NAME, facts={"gpus": [{"gpu": "0", "uuid": "GPU-0"}]}, environ={})
    files = RunFiles(claimed, NAME, framework="plain", planned_steps=9)
    for step, loss in enumerate((1.5, math.nan), 1):
        files.metrics.append({"step": step, "loss": loss, "epoch": math.inf, "gradient_norm": -math.inf,
                              "step_duration_seconds": 0.3, "my_metric": 7})  # fmt: skip
    wait_for(lambda: any(r.values.get("step") == 2.0 for r in agent.snapshot.of("rank")))
    yield claimed.run
    files.end("finished")


def test_metrics_as_text(app: Starlette) -> None:
    answer = ask(app, "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    families = {family.name: family for family in parse_text(answer.text)}
    assert {sample.labels["gpu"] for sample in families["gpu_utilization_percent"].samples} == {"0", "1"}
    assert "cpu_usage_percent" in families
    assert "# EOF" not in answer.text


def test_nothing_that_is_read_is_left_out(agent: Agent, app: Starlette, run: str) -> None:
    unnamed = {(reading.scope, field) for reading in agent.snapshot.readings
               for field in reading.values if field not in SERIES[reading.scope]}  # fmt: skip
    # Numbers of processes are no labels for series.
    assert unnamed == {("process", "memory_bytes")}
    assert 'trainvitals_source_up{source="host"} 1.0' in ask(app, "/metrics").text


def test_metrics_as_openmetrics(app: Starlette) -> None:
    answer = ask(app, "/metrics", {**LOCAL, "accept": OPENMETRICS})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    families = {family.name: family for family in parse_openmetrics(answer.text)}
    assert families["gpu_energy_joules"].type == "counter"
    assert answer.text.endswith("# EOF\n")


@pytest.mark.parametrize("accepted", ["gzip", "deflate, gzip", "GZIP;q=0.5", "gzip;q=1.0, identity;q=0"])
def test_metrics_are_packed_when_asked_for(app: Starlette, accepted: str) -> None:
    answer = ask(app, "/metrics", {**LOCAL, "accept-encoding": accepted})
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["content-length"] == str(len(answer.body))
    assert answer.headers["vary"] == "Accept, Accept-Encoding"
    assert list(parse_text(gzip.decompress(answer.body).decode()))


@pytest.mark.parametrize("accepted", ["", "identity", "deflate", "gzip;q=0", "gzip; q=0.0", "xgzip", "br"])
def test_and_not_when_not(app: Starlette, accepted: str) -> None:
    answer = ask(app, "/metrics", {**LOCAL, "accept-encoding": accepted})
    assert "content-encoding" not in answer.headers
    assert list(parse_text(answer.text))


def test_healthy(app: Starlette) -> None:
    answer = ask(app, "/healthz")
    assert (answer.status, answer.text) == (200, "ok\n")


def test_a_gpu_that_is_lost_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated, "FAULT_AFTER_SECONDS", 0.5)
    agent = Agent([SimulatedSource(3, "lost"), HostSource()], tmp_path, interval=0.1)
    app = make_app(agent)
    agent.start()
    try:
        wait_for(lambda: len(list(agent.snapshot.of("gpu"))) == 3)
        wait_for(lambda: ask(app, "/healthz").status == 503)
        assert ask(app, "/healthz").text.startswith("2 of 3 GPUs answer")
        [problem] = ask(app, "/api/v1/snapshot").json()["problems"]
        assert problem.startswith("2 of 3 GPUs answer")
    finally:
        agent.stop()


def test_a_stuck_sampler_is_told(agent: Agent, app: Starlette, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent._sampler, "is_stuck", lambda: True)
    answer = ask(app, "/healthz")
    assert (answer.status, "sampler is stuck" in answer.text) == (503, True)


def test_the_snapshot_before_the_first_reading(tmp_path: Path) -> None:
    agent = Agent([SimulatedSource(1)], tmp_path)
    seen = ask(make_app(agent), "/api/v1/snapshot").json()
    assert (seen["timestamp"], seen["gpus"], seen["runs"]) == (None, [], [])
    assert ask(make_app(agent), "/metrics").status == 200


def test_the_snapshot_of_gpus_and_host(agent: Agent, app: Starlette) -> None:
    answer = ask(app, "/api/v1/snapshot")
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    seen = answer.json()
    assert (seen["node"], seen["interval"], seen["problems"]) == (agent.host, 0.1, [])
    assert [gpu["gpu"] for gpu in seen["gpus"]] == [0, 1]
    first = seen["gpus"][0]
    assert first["name"] == "Simulated H100 80GB"
    assert first["uuid"].startswith("GPU-")
    assert first["memory_percent"] == pytest.approx(100 * first["memory_used_mb"] / first["memory_total_mb"], abs=0.01)
    assert first["throttle_active"] == []
    assert seen["host"]["memory_total_bytes"] > 2**20
    assert seen["sources"]["simulated"] == {**seen["sources"]["simulated"], "up": True, "devices": 2, "problem": ""}


def test_the_snapshot_of_a_run(app: Starlette, run: str) -> None:
    seen = next(told for told in ask(app, "/api/v1/snapshot").json()["runs"] if told["run"] == run)
    assert (seen["name"], seen["status"], seen["framework"], seen["world_size"]) == (NAME, "running", "plain", "1")
    assert seen["planned_steps"] == 9
    rank = seen["ranks"][0]
    assert (rank["rank"], rank["step"], rank["custom"]) == (0, 2, {"my_metric": 7})
    assert (rank["loss"], rank["epoch"], rank["gradient_norm"]) == ("NaN", "Infinity", "-Infinity")
    assert rank["nonfinite"] == {"loss": 1, "epoch": 2, "gradient_norm": 2}
    assert sum(rank["step_duration_seconds"]["counts"]) == 2
    assert rank["gpus"] == [{"gpu": "0", "uuid": "GPU-0"}]


def test_a_name_that_no_page_should_trust_arrives_as_it_is(app: Starlette, run: str) -> None:
    for accept in ("", OPENMETRICS):
        text = ask(app, "/metrics", {**LOCAL, "accept": accept}).text
        parse = parse_openmetrics if accept else parse_text
        info = next(family for family in parse(text) if family.name.startswith("training_run"))
        assert {sample.labels["run"] for sample in info.samples} == {run}


def test_the_page(app: Starlette) -> None:
    answer = ask(app, "/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    assert "TrainVitals" in answer.text


def test_huge_headers_are_refused_and_the_agent_lives_on(tmp_path: Path) -> None:
    with serving(tmp_path, "--simulate", "1") as agent:
        for size in (60_000, 10_000_000):
            _send_header(agent, size)
        assert "gpu_utilization_percent{" in agent.get("/metrics")
        assert json.loads(agent.get("/api/v1/snapshot"))["gpus"]


def _send_header(agent: Served, size: int) -> None:
    with agent.connect() as connection:
        try:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Long: "
                               + b"x" * size + b"\r\n\r\n")  # fmt: skip
            answer = connection.recv(64)
        except ConnectionError:
            return
    assert size < 65_536 or not answer.startswith(b"HTTP/1.1 200")
