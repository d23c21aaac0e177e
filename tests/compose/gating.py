"""A gate in a thread, a service behind it that writes down what reaches it, and clients that say any bytes."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from trainvitals.stack.gate import Door, Gate, hosts
from trainvitals.stack.passing import end

SECONDS = 20
HOST = b"Host: localhost\r\n"
NAMES = {"TRAINVITALS_ALLOWED_HOSTS": "gpu1.example, other.example:9090", "PROMETHEUS_URL": "https://prom.example/at",
         "ALERTMANAGER_URL": "http://alerts.example:9093"}  # fmt: skip
BIG_BYTES = 96 * 2**20
CORS = {"Access-Control-Allow-Origin": "*", "access-control-allow-methods": "GET, POST", "X-Kept": "yes"}


class Service(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        self.sent, self.hung_up, self.go_on = 0, threading.Event(), threading.Event()

    def handle_error(self, *_: Any) -> None:
        """Requests that break off are what is tried here."""

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Service

    def handle_one_request(self) -> None:
        with contextlib.suppress(OSError):
            super().handle_one_request()

    def _answer(self) -> None:
        body = self._body()
        headers = {key.lower(): value for key, value in self.headers.items()}
        self.server.seen.append((self.command, self.path, headers, body))
        {"/big": self._big, "/waits": self._waits, "/events": self._events}.get(self.path, self._plain)()

    do_GET = do_POST = do_PUT = do_DELETE = do_OPTIONS = do_HEAD = _answer  # noqa: N815

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", "0")))
        body = b""
        while length := int(self.rfile.readline(), 16):
            body += self.rfile.read(length)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _head(self, **more: str) -> None:
        self.send_response(200)
        for key, value in {**CORS, **more}.items():
            self.send_header(key.replace("_", "-"), value)
        self.end_headers()

    def _plain(self) -> None:
        self._head(Content_Length="5")
        if self.command != "HEAD":
            self.wfile.write(b"hello")

    def _big(self) -> None:
        self._head(Content_Length=str(BIG_BYTES))
        for _ in range(BIG_BYTES // 2**16):
            self.wfile.write(b"x" * 2**16)
            self.server.sent += 2**16

    def _waits(self) -> None:
        self.server.go_on.wait(SECONDS)
        self._plain()

    def _events(self) -> None:
        self._head(Content_Type="text/event-stream")
        self.wfile.write(b"data: 1\n\n")
        if not self.rfile.read(1):
            self.server.hung_up.set()

    def log_message(self, *_: Any) -> None:
        pass


@contextlib.contextmanager
def service() -> Iterator[Service]:
    with Service() as serving:
        threading.Thread(target=serving.serve_forever, args=(0.05,), daemon=True).start()
        yield serving
        serving.go_on.set()
        serving.shutdown()


@contextlib.contextmanager
def scripted(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """A service that takes one connection, and does with it as it is told."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def once() -> None:
            with contextlib.suppress(OSError), listening.accept()[0] as accepted:
                serve(accepted)

        threading.Thread(target=once, daemon=True).start()
        yield int(listening.getsockname()[1])


class Gated:
    def __init__(self, beyond: int, **environ: str) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = int(self._listening.getsockname()[1])
        self._door = Door(self.port, "127.0.0.1", beyond)
        self._environ, self._ready = environ, threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    async def _run(self) -> None:
        self._loop, self._told, self.gate = asyncio.get_running_loop(), asyncio.Event(), Gate(hosts(self._environ))
        accepting = asyncio.create_task(self.gate.accept(self._listening, self._door))
        self._ready.set()
        await self._told.wait()
        await end([accepting])
        await self.gate.end()

    def __enter__(self) -> "Gated":
        self._thread.start()
        assert self._ready.wait(SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._told.set)
        self._thread.join(SECONDS)
        self._listening.close()
        assert not self._thread.is_alive()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS)

    def says(self, request: bytes) -> bytes:
        """All that is answered, until the gate closes."""
        with self.connect() as client:
            client.sendall(request)
            return read_out(client)

    def asks(self, path: str = "/", method: str = "GET", body: bytes = b"", **headers: str) -> bytes:
        fields = {"Host": f"localhost:{self.port}", **({"Content-Length": str(len(body))} if body else {}), **headers}
        lines = [f"{method} {path} HTTP/1.1", *(f"{key.replace('_', '-')}: {value}" for key, value in fields.items())]
        return self.says("\r\n".join([*lines, "", ""]).encode() + body)


def read_out(client: socket.socket) -> bytes:
    parts = []
    while part := client.recv(2**16):
        parts.append(part)
    return b"".join(parts)


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def head(answer: bytes) -> bytes:
    return answer.partition(b"\r\n\r\n")[0].lower()


def within(ask: Callable[[], Any], seconds: float = SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not ask():
        assert time.monotonic() < deadline, f"not within {seconds:g} s"
        time.sleep(0.02)
