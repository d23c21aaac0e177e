"""A real Prometheus with configuration and rules as shipped, only faster, over the demo's node of 8 GPUs."""

import json
import re
import shutil
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.collector.support import serving
from tests.ports import free_port
from tests.prometheus.support import PROMETHEUS, rules, tool

SERIES_A_NODE = 1500
# What is there only when all else is.
LAST = ("run:waste:dollars_per_hour", "run:longest_pause:seconds", "run:straggler:ratio", "node_boot_time_seconds")


@contextmanager
def started(*words: str) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def faster(folder: Path, ports: dict[str, int]) -> None:
    """The shipped folder with seconds for its intervals, and these ports to scrape."""
    shutil.copytree(PROMETHEUS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for path in [folder / "prometheus.yml", *(folder / "rules").glob("*.yml")]:
        text = re.sub(r"(\w*interval): \w+", r"\1: 1s", path.read_text())
        path.write_text(re.sub(r"scrape_timeout: \w+", "scrape_timeout: 1s", text))
    for job, port in ports.items():
        entry = {"targets": [f"127.0.0.1:{port}"], "labels": {"instance": "workstation"}}
        (folder / "targets" / f"{job}.yml").write_text(yaml.safe_dump([entry]))


class Server:
    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1/"

    def get(self, path: str, **words: str) -> Any:
        url = f"{self._url}{path}?{urllib.parse.urlencode(words)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def query(self, expr: str) -> list[dict[str, Any]]:
        try:
            return list(self.get("query", query=expr)["result"])
        except OSError:
            return []


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("live")
    node, port = free_port(), free_port()
    with ExitStack() as running:
        demo = running.enter_context(serving(folder, "--node-price", "24", command="demo"))
        # Whoever waits for these pipes to be read would stand still.
        threading.Thread(target=demo.process.stdout.read, daemon=True).start()  # type: ignore[union-attr]
        faster(folder / "prometheus", {"trainvitals": int(demo.address.rpartition(":")[2]), "node": node})
        others = [
            running.enter_context(started(tool("node_exporter"), f"--web.listen-address=127.0.0.1:{node}")),
            running.enter_context(
                started(
                    tool("prometheus"),
                    f"--config.file={folder}/prometheus/prometheus.yml",
                    f"--storage.tsdb.path={folder}/data",
                    f"--web.listen-address=127.0.0.1:{port}",
                )
            ),
        ]
        here = Server(port)
        deadline = time.monotonic() + 240
        while missing := [name for name in LAST if not here.query(name)]:
            ended = [process.args for process in (demo.process, *others) if process.poll() is not None]
            assert not ended, f"ended by itself: {ended}"
            assert time.monotonic() < deadline, f"not recorded: {missing}; up: {here.query('up')}"
            time.sleep(0.2)
        yield here


def test_every_rule_can_be_evaluated(server: Server) -> None:
    found = [rule for group in server.get("rules")["groups"] for rule in group["rules"]]

    assert {(rule["name"], rule.get("lastError", "")) for rule in found if rule["health"] != "ok"} == set()


def test_a_node_of_8_gpus_stays_within_its_series(server: Server) -> None:
    count = int(server.query('count({instance="workstation"})')[0]["value"][1])

    assert 600 < count <= SERIES_A_NODE


# What the demo's GPUs and its node have nothing of: fans, profiling, other exporters' helpers, a second look at time, a
# disk of the collector's own; and what is there only after a run's second checkpoint, when it was resumed, while it
# evaluates or saves, where storage is shared, or while an agent finds what no rule here is named after.
ABSENT = {
    "gpu:fan_speed:ratio", "gpu:sm_active:ratio", "gpu:tensor_active:ratio", "gpu:dram_active:ratio",
    "gpu:nvidia_smi:index", "gpu:dcgm_xid:code", "gpu:dcgm_xid:shown", "gpu:xid_last:timestamp_seconds",
    "node:gpus_told:count", "run:checkpoint_interval:seconds", "host:filesystem:own_mount", "run:resuming",
    "run:phase_open:timestamp_seconds", "run:paused_until:timestamp_seconds", "run:rank_told_elsewhere:info",
    "finding:without_rule:info",
}  # fmt: skip


def test_everything_that_is_recorded_is_there(server: Server) -> None:
    there = {found["metric"]["__name__"] for found in server.query('group by (__name__) ({__name__=~".+:.+|gpu_.*"})')}
    wanted = {rule.name for rule in rules("thresholds", "normalize", "record")}

    assert wanted - there <= ABSENT


def test_each_gpu_and_each_node_is_there_once(server: Server) -> None:
    def number(expr: str) -> float:
        return float(server.query(expr)[0]["value"][1])

    assert number("count(gpu:temperature:celsius)") == 8
    assert number("count(node:gpu_power:watts)") == 1
    assert number("fleet:cost:dollars_per_hour") == 24
    assert number("sum(run:cost:dollars_per_hour)") == pytest.approx(24)
    assert 0 <= number("run:goodput:ratio") <= 1.2


def test_a_healthy_run_pages_nobody_but_for_the_servers_that_are_not_here(server: Server) -> None:
    paging = server.query('ALERTS{severity="page", alertstate="firing", alertname!~"Alertmanager.*|Prometheus.*"}')

    assert [found["metric"]["alertname"] for found in paging] == []
