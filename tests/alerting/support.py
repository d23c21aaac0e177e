"""A real Alertmanager with a configuration that the command made, and somebody to deliver to.

with alertmanager(folder, {"WEBHOOK_URL": server.url}) as running:
    running.fire({"alertname": "GpuMissing", "severity": "page"})
"""

import json
import shutil
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiosmtpd.controller import Controller

from tests.alerting.program import TOOLS, program
from tests.collector.support import wait_for
from tests.ports import free_port
from trainvitals.alerting.writing import write

ROOT = Path(__file__).parents[2]
SLACK = "/services/T0/B0/abc"
# PagerDuty's and Telegram's in one. Alertmanager dies where Telegram names no chat.
ANSWER = b'{"status":"success","ok":true,"result":{"message_id":1,"date":1,"chat":{"id":-100123,"type":"group"}}}'
FULL = {
    "SMTP_HOST": "mail.example", "SMTP_FROM": "TrainVitals <tv@gpu.example>", "SMTP_TO": "a@gpu.example,b@gpu.example",
    "SMTP_USER": "tv", "SMTP_PASSWORD": "secret-of-smtp", "SLACK_WEBHOOK_URL": "https://hooks.slack.example/secret-of-slack",
    "SLACK_CHANNEL": "#gpus", "PAGERDUTY_KEY": "secretofpagerduty000000000000000",
    "TELEGRAM_BOT_TOKEN": "123456:secret-of-telegram-000000", "TELEGRAM_CHAT_ID": "-100123",
    "DISCORD_WEBHOOK_URL": "https://discord.example/api/webhooks/1/secret-of-discord",
    "PUSHOVER_TOKEN": "secretofpushover00000000000000", "PUSHOVER_USER": "secretofpushoveruser0000000000",
    "WEBHOOK_URL": "https://u:secret-of-webhook@hook.example/x", "DEADMAN_URL": "https://hc.example/secret-of-deadman",
    "COLLECTOR_URL": "http://tv:secret-of-collector@collector:8080", "QUIET_HOURS": "22:00-07:00 Europe/Berlin",
    "GRAFANA_URL": "https://grafana.example/", "PROMETHEUS_URL": "https://prom.example", "TRAINVITALS_URL": "https://tv.example",
}  # fmt: skip
SECRETS = ("secret-of-smtp", "secret-of-slack", "secretofpagerduty", "secret-of-telegram", "secret-of-discord",
           "secretofpushover", "secret-of-webhook", "secret-of-deadman", "secret-of-collector")  # fmt: skip


def tool(name: str) -> Path:
    found = shutil.which(name) or shutil.which(name, path=TOOLS / "bin")
    if not found:
        pytest.skip(f"no {name} here: scripts/fetch-tools prometheus")
    return Path(found)


def made(folder: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """The configuration that the command writes into `folder`."""
    write(folder, environ)
    return dict(yaml.safe_load((folder / "alertmanager.yml").read_text()))


def amtool(*words: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([tool("amtool"), *words], capture_output=True, text=True, timeout=30, check=False)


@dataclass
class Post:
    path: str
    body: bytes
    at: float

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Recorder:
    """An HTTP server that keeps what is posted to it, and answers as it is told."""

    url: str
    posts: list[Post] = field(default_factory=list)
    status: int = 200

    def to(self, path: str) -> list[Post]:
        return [post for post in self.posts if post.path == path]

    def alerts(self, path: str = "/hook", status: str = "firing") -> list[str]:
        """The names of those that were told of, in their order."""
        return [alert["labels"]["alertname"] for post in self.to(path) for alert in post.json()["alerts"]
                if alert["status"] == status]  # fmt: skip


@contextmanager
def recording(host: str = "127.0.0.1") -> Iterator[Recorder]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            recorder.posts.append(Post(self.path, body, time.time()))
            answer = b"ok" if self.path == SLACK else ANSWER
            self.send_response(recorder.status)
            self.send_header("content-type", "text/plain" if self.path == SLACK else "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer((host, 0), Handler)
    recorder = Recorder(f"http://{host}:{server.server_port}")
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield recorder
    finally:
        server.shutdown()
        server.server_close()


class Mailbox:
    """What a mail server was given."""

    def __init__(self) -> None:
        self.mails: list[Message] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        mail = message_from_bytes(envelope.content)
        mail["rcpt"] = ",".join(envelope.rcpt_tos)
        self.mails.append(mail)
        return "250 OK"


@contextmanager
def receiving_mail(host: str = "127.0.0.1") -> Iterator[tuple[Mailbox, int]]:
    box = Mailbox()
    controller = Controller(box, hostname=host, port=free_port())
    controller.start()
    try:
        yield box, controller.port
    finally:
        controller.stop()


@dataclass
class Running:
    url: str
    log: Path

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=5) as answer:
            return json.loads(answer.read())

    def fire(self, *alerts: Mapping[str, str], ended: bool = False,
             generator: str = "http://prometheus:9090/graph?g0.expr=up", **annotations: str) -> None:  # fmt: skip
        now = time.time()
        ends = {"endsAt": _stamp(now)} if ended else {"endsAt": _stamp(now + 300)}
        body = [{"labels": dict(labels), "annotations": annotations, **ends,
                 "generatorURL": generator} for labels in alerts]  # fmt: skip
        request = urllib.request.Request(
            f"{self.url}/api/v2/alerts", json.dumps(body).encode(), {"content-type": "application/json"})  # fmt: skip
        urllib.request.urlopen(request, timeout=5).close()


def _stamp(when: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when))


@contextmanager
def alertmanager(folder: Path, environ: Mapping[str, str], *flags: str,
                 change: Callable[[dict[str, Any]], None] = lambda config: None) -> Iterator[Running]:  # fmt: skip
    """`change` is for what no environment sets, as where a service is that has one address for all."""
    config = made(folder, environ)
    change(config)
    path = folder / "changed.yml"
    path.write_text(yaml.safe_dump(config))
    url, log = f"http://127.0.0.1:{free_port()}", folder / "log"
    command, where = program(tool("alertmanager"), folder)
    with log.open("wb") as out:
        process = subprocess.Popen(
            [command, f"--config.file={path}", f"--storage.path={folder / 'data'}", "--cluster.listen-address=",
             f"--web.listen-address={url.removeprefix('http://')}", *flags],
            cwd=where, stdout=out, stderr=out)  # fmt: skip
    try:
        wait_for(lambda: _is_ready(process, url, log))
        yield Running(url, log)
    finally:
        process.kill()
        process.wait(timeout=10)


def _is_ready(process: "subprocess.Popen[bytes]", url: str, log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    try:
        urllib.request.urlopen(f"{url}/-/ready", timeout=1).close()
    except OSError:
        return False
    return True
