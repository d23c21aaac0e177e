"""A real Prometheus whose disk is full: what it says of itself then, to a listener in Alertmanager's place."""

import json
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml

from tests.collector.journal.helpers import small_disk
from tests.ports import free_port
from tests.prometheus.support import PROMETHEUS, tool
from tests.prometheus.test_live import Server, started

RULES = ["thresholds.yml", "stack.yml", "watchdog.yml"]
NAME = "PrometheusStorageFailing"
# Seconds for the minutes of the rules, and for the five for which a sample counts.
LOOKBACK = 10


@contextmanager
def listening(port: int) -> Iterator[list[tuple[str, str]]]:
    """Name and description of what an Alertmanager is sent."""
    told: list[tuple[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
            told.extend((alert["labels"]["alertname"], alert["annotations"]["description"]) for alert in sent)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield told
        server.shutdown()


def configured(folder: Path, port: int, listener: int) -> Path:
    for name in RULES:
        text = re.sub(r"for: \d+m", "for: 2s", (PROMETHEUS / "rules" / name).read_text())
        (folder / name).write_text(re.sub(r'(prometheus_silent:seconds", expr:) "\d+"', r'\1 "3"', text))
    found = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": RULES,
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{listener}"]}]}]},
        "scrape_configs": [{"job_name": "prometheus", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}],
    }
    path = folder / "prometheus.yml"
    path.write_text(yaml.safe_dump(found))
    return path


def firing(server: Server) -> set[str]:
    try:
        return {alert["labels"]["alertname"] for alert in server.get("alerts")["alerts"] if alert["state"] == "firing"}
    except OSError:
        return set()


def comes(server: Server, wanted: set[str], without: set[str]) -> set[str]:
    deadline = time.monotonic() + 120
    while not (wanted <= (found := firing(server)) and not found & without):
        assert time.monotonic() < deadline, found
        time.sleep(0.2)
    return found


def test_a_full_disk_is_told_for_as_long_as_it_is_full(tmp_path: Path) -> None:
    port, listener = free_port(), free_port()
    with ExitStack() as stack:
        data = stack.enter_context(small_disk(tmp_path / "data", "20m"))
        told = stack.enter_context(listening(listener))
        words = (f"--config.file={configured(tmp_path, port, listener)}", f"--storage.tsdb.path={data}",
                 f"--web.listen-address=127.0.0.1:{port}", f"--query.lookback-delta={LOOKBACK}s")  # fmt: skip
        stack.enter_context(started(tool("prometheus"), *words))
        server = Server(port)
        comes(server, {"Watchdog"}, {NAME})
        fill = data / "fill"
        subprocess.run(["dd", "if=/dev/zero", f"of={fill}", "bs=64k"], capture_output=True, check=False)

        comes(server, {NAME, "Watchdog"}, set())
        comes(server, {NAME}, {"Watchdog"})
        time.sleep(LOOKBACK)
        assert firing(server) == {NAME}
        assert "was stored for a minute" in next(words for name, words in told if name == NAME)

        fill.unlink()
        comes(server, {"Watchdog"}, set())
