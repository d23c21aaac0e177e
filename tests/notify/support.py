"""Receivers on loopback that answer as they are told, and findings to tell them of."""

import json
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from trainvitals.clock import Clock
from trainvitals.detect.finding import Change, Finding, Place
from trainvitals.model import Severity
from trainvitals.notify import Notifier, channels
from trainvitals.notify.limits import Pace

BEGAN = 1_753_878_896.0
HOST = "gpu1"
QUICK = Pace(0.05, 0.1)


@dataclass
class Hook:
    """`answers` are given in turn, then `status`: a status, with headers, or "hang" for as long as the server lives."""

    url: str = ""
    posts: list[tuple[str, Any]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    answers: deque[int | str | tuple[int, dict[str, str]]] = field(default_factory=deque)
    status: int = 200
    # To whoever asks what may be sent there: most know no such question.
    asked: int = 501
    says: str = "ok"
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def taken(self) -> list[Any]:
        """What it said yes to."""
        return [body for _, body in self.posts]

    def findings(self) -> list[tuple[str, str]]:
        return [(one["kind"], one["state"]) for body in self.taken for one in body["findings"]]


@contextmanager
def hook() -> Iterator[Hook]:
    found = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            found.times.append(time.monotonic())
            found.headers.append(dict(self.headers))
            answer = found.answers.popleft() if found.answers else found.status
            if answer == "hang":
                found.ended.wait(60)
                return
            status, headers = answer if isinstance(answer, tuple) else (int(answer), {})
            if status < 300:
                found.posts.append((self.path, json.loads(body) if body else None))
            said = found.says.encode()
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(said))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(said)

        def do_GET(self) -> None:
            self.do_POST()

        def do_OPTIONS(self) -> None:
            self.send_response(found.asked)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield found
    finally:
        found.ended.set()
        server.shutdown()
        server.server_close()


def finding(kind: str = "TrainingNonFinite", severity: Severity = "page", what: str = "the loss is nan at step 812",
            **place: str) -> Finding:  # fmt: skip
    return Finding(kind, severity, what, value=float("nan"), place=Place(**place or {"run": "gemma", "rank": "0"}))


def opened(one: Finding | None = None, when: float = BEGAN, **more: Any) -> Change:
    return Change("open", one or finding(), when, when, **more)


def updated(one: Finding, when: float = BEGAN + 5, since: float = BEGAN, **more: Any) -> Change:
    return Change("update", one, since, when, **more)


def closed(one: Finding | None = None, when: float = BEGAN + 60, since: float = BEGAN) -> Change:
    return Change("close", one or finding(), since, when)


def ticket(kind: str = "GpuTemperatureHigh", **place: str) -> Finding:
    return finding(kind, "ticket", "GPU 3 is at 84 °C", **place or {"gpu": "3", "uuid": "GPU-3"})


def storm(count: int, severity: Severity = "page") -> list[Change]:
    return [opened(finding(f"Kind{number % 7}", severity, run=f"run-{number}")) for number in range(count)]


@dataclass
class Hands:
    """A clock that is set by hand."""

    wall: float = BEGAN
    steady: float = 1000.0

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.wall, lambda: self.steady)

    def go(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


@contextmanager
def notifying(folder: Path, text: str, environ: Mapping[str, str] | None = None, *,
              adopted: Sequence[Change] | None = None, **more: Any) -> Iterator[Notifier]:  # fmt: skip
    """By a clock that stands where the findings began."""
    clock = Clock(lambda: BEGAN, time.monotonic)
    found = Notifier(channels(text, environ or {}), folder, HOST, **{"clock": clock, **more})
    if adopted is not None:
        found.adopt(adopted)
    found.start()
    try:
        yield found
    finally:
        found.stop(5)


def settled(ask: Callable[[], object], seconds: float = 0.6) -> None:
    """Nothing of it for a while."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert not ask()
        time.sleep(0.02)


@contextmanager
def trickling() -> Iterator[str]:
    """A byte now and then, so that no read takes long, and the answer never ends."""
    listening, ended = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def trickle(connection: socket.socket) -> None:
        with connection:
            while not ended.wait(0.05):
                try:
                    connection.sendall(b"H")
                except OSError:
                    return

    def accept() -> None:
        while not ended.is_set():
            try:
                connection = listening.accept()[0]
            except OSError:
                return
            threading.Thread(target=trickle, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        ended.set()
        listening.close()
