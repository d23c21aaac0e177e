"""Without any rules, against a real Prometheus that reads `trainvitals demo`: the claim of docs/dashboards.md."""

import json
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.grafana.support import MAY_BE_EMPTY, NEED_RULES, WITHOUT_RULES, board, choices, events, queries
from tests.ports import free_port

CONFIG = """
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: somebodys-own-name
    static_configs: [{{targets: ["127.0.0.1:{port}"], labels: {{instance: node-a}}}}]
"""
CHOSEN = {"job": "somebodys-own-name", "instance": "node-a", "run": "demo-gpt", "__rate_interval": "5s"}


def ended(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    port = free_port()
    words = [sys.executable, "-m", "trainvitals", "demo", "--port", str(port), "--interval", "1"]
    with (tmp_path_factory.mktemp("demo") / "log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log)
        yield port
        ended(process)


@pytest.fixture(scope="module")
def prometheus(demo, tmp_path_factory):
    if shutil.which("prometheus") is None:
        pytest.skip("prometheus is not installed")
    folder: Path = tmp_path_factory.mktemp("prometheus")
    (folder / "prometheus.yml").write_text(CONFIG.format(port=demo))
    address = f"127.0.0.1:{free_port()}"
    words = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address={address}"]  # fmt: skip
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log)
        yield f"http://{address}"
        ended(process)


def answers(address: str, expr: str) -> list:
    """What it returns now; [] too while Prometheus is still starting. A wrong query is an error at once."""
    try:
        with urllib.request.urlopen(f"{address}/api/v1/query?{urlencode({'query': expr})}", timeout=10) as answer:
            return json.load(answer)["data"]["result"]
    except urllib.error.HTTPError as error:
        if error.code == 503:
            return []
        raise AssertionError(f"{expr}: {error.read().decode()}") from error
    except urllib.error.URLError:
        return []


def unanswered(address: str, asked: list, seconds: float) -> list:
    """What has returned nothing yet when the time is over: a rate takes two scrapes, a checkpoint some more."""
    deadline = time.monotonic() + seconds
    while (left := [each for each in asked if not answers(address, each.expr)]) and time.monotonic() < deadline:
        asked = left
        time.sleep(0.5)
    return [(each.panel, each.expr) for each in left]


@pytest.mark.parametrize("uid", WITHOUT_RULES)
def test_every_query_returns_data_without_rules(prometheus, uid):
    asked = queries(board(uid), CHOSEN) + events(board(uid), CHOSEN) + choices(board(uid), CHOSEN)
    asked = [each for each in asked if (uid, each.panel) not in MAY_BE_EMPTY | NEED_RULES]
    assert len(asked) > 10
    assert unanswered(prometheus, asked, seconds=60) == []


def test_another_job_or_node_shows_nothing(prometheus):
    other = CHOSEN | {"instance": "node-b"}
    assert unanswered(prometheus, queries(board("trainvitals-gpu"), CHOSEN)[:1], seconds=60) == []
    assert [each for each in queries(board("trainvitals-gpu"), other) if answers(prometheus, each.expr)] == []
