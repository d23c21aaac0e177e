"""A GPU falls off the bus: how long until a webhook hears of it, through the shipped Prometheus and Alertmanager, and
through a pair set up as most begin with.

Both scrape the same stand-ins for nodes, which tell what a real agent told before and after it lost a GPU.
"""

import json
import random
import shutil
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from bench.rows import Row, Section, median, quantile
from bench.stage import ROOT, Stage, wait_until
from tests.alerting.program import TOOLS, program
from tests.ports import free_port
from trainvitals.alerting.writing import write

P50_GOAL, P99_GOAL = 20.0, 45.0
SPREAD_SECONDS, BOUND_SECONDS = 60, 180.0
ALERT = "GpuMissing"
PLAIN_RULES = {"groups": [{"name": "plain", "rules": [{"alert": ALERT, "expr": "gpu_count < 8"}]}]}
Heard = dict[str, float]


def measure(stage: Stage) -> Section:
    nodes = [f"node{number}" for number in range(stage.few_or(4, 60))]
    whole, broken = _told(stage)
    with stage.scene(), Nodes(nodes, whole, broken) as fleet, hearing() as ours, hearing() as plain:
        _shipped(stage, fleet, ours)
        _plain(stage, fleet, plain)
        wait_until(lambda: fleet.scrapes > 8 * len(nodes), "every node is scraped", 90)
        fleet.break_within(stage.few_or(5, SPREAD_SECONDS))
        wait_until(lambda: len(ours.heard) == len(plain.heard) == len(nodes), "all are heard of", BOUND_SECONDS, 0.5)
    return Section("From a lost GPU to a message", _rows(fleet, ours, plain), [NOTE])


NOTE = (
    f"As many nodes as there are samples, each told by what a real agent said of 8 GPUs and then of 7; they break at "
    f"random times within {SPREAD_SECONDS} s. The other pair scrapes and evaluates every 15 s and groups for 30 s, "
    "by alert and node."
)


def _rows(fleet: "Nodes", ours: "Hearing", plain: "Hearing") -> list[Row]:
    mine, others = ([each.heard[node] - broke for node, broke in fleet.breaks.items()] for each in (ours, plain))
    name, samples = "Prometheus and Alertmanager by their defaults", f"{len(mine)} GPUs lost"
    half, most = median(mine), quantile(mine, 0.99)
    return [Row("GPU lost to webhook, p50", half, median(others), name, "s", f"≤ {P50_GOAL:g} s",
                half <= P50_GOAL, samples),
            Row("GPU lost to webhook, p99", most, quantile(others, 0.99), name, "s", f"≤ {P99_GOAL:g} s",
                most <= P99_GOAL, f"longest {max(mine):.1f} s")]  # fmt: skip


def _told(stage: Stage) -> tuple[bytes, bytes]:
    """What an agent tells of its GPUs before and after one is lost."""
    with stage.scene():
        agent = stage.agent("before-a-loss")
        wait_until(lambda: b"gpu_expected_count 8" in agent.scraper().get(), "8 GPUs are seen")
        whole = agent.scraper().get()
        stage.scenario.write("gpus 7")
        wait_until(lambda: b"gpu_count 7" in agent.scraper().get(), "a GPU is missed")
        broken = agent.scraper().get()
    stage.scenario.write("gpus 8")
    return whole, broken


class Nodes:
    """Each is a path on one server, and breaks at its time."""

    def __init__(self, names: list[str], whole: bytes, broken: bytes) -> None:
        self.breaks = dict.fromkeys(names, float("inf"))
        self.scrapes = 0

        class Handler(Quiet):
            def do_GET(handler) -> None:  # noqa: N805
                self.scrapes += 1
                name = handler.path.strip("/")
                handler.answer(broken if time.time() >= self.breaks[name] else whole)

        self._server = _started(Handler)

    def targets(self) -> list[dict[str, Any]]:
        address = f"127.0.0.1:{self._server.server_port}"
        return [{"targets": [address], "labels": {"instance": name, "__metrics_path__": f"/{name}"}}
                for name in self.breaks]  # fmt: skip

    def break_within(self, seconds: float) -> None:
        chance = random.Random(7)
        self.breaks = {name: time.time() + chance.uniform(0, seconds) for name in self.breaks}

    def __enter__(self) -> "Nodes":
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class Quiet(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/plain; version=0.0.4")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Hearing:
    """A webhook, and when it first heard of each node."""

    def __init__(self) -> None:
        self.heard: Heard = {}

        class Handler(Quiet):
            def do_POST(handler) -> None:  # noqa: N805
                told = json.loads(handler.rfile.read(int(handler.headers["content-length"])))
                for alert in told["alerts"]:
                    if alert["labels"]["alertname"] == ALERT:
                        self.heard.setdefault(alert["labels"]["instance"], time.time())
                handler.answer(b"")

        self.server = _started(Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"


@contextmanager
def hearing() -> Iterator[Hearing]:
    one = Hearing()
    try:
        yield one
    finally:
        one.server.shutdown()
        one.server.server_close()


def _started(handler: type[BaseHTTPRequestHandler]) -> ThreadingHTTPServer:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    return server


def _shipped(stage: Stage, fleet: Nodes, ears: Hearing) -> None:
    folder = stage.folder / "shipped"
    shutil.copytree(ROOT / "prometheus", folder / "prometheus")
    (folder / "prometheus" / "targets" / "trainvitals.yml").write_text(yaml.safe_dump(fleet.targets()))
    write(folder, {"WEBHOOK_URL": ears.url})
    config = yaml.safe_load((folder / "prometheus" / "prometheus.yml").read_text())
    _start(stage, folder, config)


def _plain(stage: Stage, fleet: Nodes, ears: Hearing) -> None:
    folder = stage.folder / "plain"
    (folder / "prometheus").mkdir(parents=True)
    (folder / "prometheus" / "rules.yml").write_text(yaml.safe_dump(PLAIN_RULES))
    route = {"receiver": "hook", "group_by": ["alertname", "instance"], "group_wait": "30s"}
    hook = {"name": "hook", "webhook_configs": [{"url": ears.url}]}
    (folder / "alertmanager.yml").write_text(yaml.safe_dump({"route": route, "receivers": [hook]}))
    _start(stage, folder, {
        "global": {"scrape_interval": "15s", "evaluation_interval": "15s"}, "rule_files": ["rules.yml"],
        "alerting": {"alertmanagers": [{}]},
        "scrape_configs": [{"job_name": "trainvitals", "static_configs": fleet.targets()}]})  # fmt: skip


def _start(stage: Stage, folder: Path, config: Mapping[str, Any]) -> None:
    """Alertmanager and Prometheus, the latter with its configuration sending to the former."""
    alertmanager, prometheus = (f"127.0.0.1:{free_port()}" for _ in range(2))
    config["alerting"]["alertmanagers"][0]["static_configs"] = [{"targets": [alertmanager]}]
    path = folder / "prometheus" / "prometheus.yml"
    path.write_text(yaml.safe_dump(dict(config)))
    command, where = program(tool("alertmanager"), folder)
    stage.start(f"{folder.name}-alertmanager", str(command), f"--config.file={folder}/alertmanager.yml",
                f"--storage.path={folder}/alerts", "--cluster.listen-address=",
                f"--web.listen-address={alertmanager}", where=where)  # fmt: skip
    stage.start(f"{folder.name}-prometheus", str(tool("prometheus")), f"--config.file={path}",
                f"--storage.tsdb.path={folder}/data", f"--web.listen-address={prometheus}")  # fmt: skip
    for address in (alertmanager, prometheus):
        wait_until(lambda address=address: _is_ready(address), f"{folder.name}: {address} is ready")


def _is_ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/-/ready", timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def tool(name: str) -> Path:
    found = shutil.which(name) or shutil.which(name, path=TOOLS / "bin")
    if not found:
        subprocess.run([ROOT / "scripts" / "fetch-tools", "prometheus"], check=True, timeout=600)
        found = TOOLS / "bin" / name
    return Path(found)
