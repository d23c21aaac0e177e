"""Asking an agent over HTTP: what it is sent, what is made of its answers, and that no secret is told."""

import http.server
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.collector.support import serving
from tests.tui.support import told
from trainvitals.errors import SettingError
from trainvitals.tui import address
from trainvitals.tui.address import Address, Unheard

TOKEN = "hush-hush-hush-hush"
Handle = Callable[[http.server.BaseHTTPRequestHandler], None]


@contextmanager
def answering(handle: Handle) -> Iterator[int]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 5
        # Head and body at once: else each answer waits for the kernel's delayed acknowledgement.
        wbufsize = 65536

        def do_GET(self) -> None:
            handle(self)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def answer(body: bytes, status: int = 200) -> Handle:
    def handle(request: http.server.BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        request.send_header("content-length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    return handle


WHOLE = json.dumps(told(2)).encode()


@pytest.mark.parametrize(
    ("url", "token", "wanted"),
    [
        ("http://127.0.0.1:{}", "", None),
        ("127.0.0.1:{}", TOKEN, f"Bearer {TOKEN}"),
        ("http://127.0.0.1:{}/?token=" + TOKEN, "other-other-other", f"Bearer {TOKEN}"),
        ("http://ada:a%3Ab@127.0.0.1:{}/", TOKEN, "Basic YWRhOmE6Yg=="),
        ("http://127.0.0.1:{}/behind/a/proxy/", "", None),
    ],
)
def test_what_an_agent_is_sent(url: str, token: str, wanted: str | None) -> None:
    seen: list[tuple[str, str | None]] = []

    def handle(request: http.server.BaseHTTPRequestHandler) -> None:
        seen.append((request.path, request.headers.get("authorization")))
        answer(WHOLE)(request)

    with answering(handle) as port:
        asked = Address.parse(url.format(port), token)
        assert [gpu.number for gpu in asked.ask().gpus] == [0, 1]
        assert asked.shown == f"127.0.0.1:{port}"
    path = "/behind/a/proxy" if "proxy" in url else ""
    assert seen == [(f"{path}/api/v1/snapshot", wanted)]


@pytest.mark.parametrize(
    ("handle", "words"),
    [
        (answer(b"", 401), "it asks for a token or a password: give --token"),
        (answer(b"", 421), "TRAINVITALS_ALLOWED_HOSTS"),
        (answer(b"", 503), "it answers with status 503"),
        (answer(b"", 302), "it answers with status 302"),
        (answer(b"{"), "what it answers is no JSON"),
        (answer(b"[]"), "what it answers is no snapshot"),
        (answer(b'{"timestamp": null, "sources": {}, "gpus": 3}'), "is no snapshot"),
        (answer(b"\xff" * 100), "is no JSON"),
        (lambda request: request.wfile.write(b"SSH-2.0-OpenSSH \x1b[31m\r\n"), r"BadStatusLine.*\?\[31m"),
        (lambda request: request.connection.shutdown(socket.SHUT_RDWR), "."),
    ],
)
def test_an_answer_that_is_none_says_why(handle: Handle, words: str) -> None:
    with answering(handle) as port, pytest.raises(Unheard, match=words) as caught:
        Address.parse(f"127.0.0.1:{port}", TOKEN).ask()
    assert str(caught.value).isprintable()


def test_an_answer_without_an_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address, "MOST_BYTES", 100_000)
    monkeypatch.setattr(address, "ASK_SECONDS", 0.3)
    with answering(answer(b"x" * 200_000)) as port, pytest.raises(Unheard, match="does not end"):
        Address.parse(f"127.0.0.1:{port}").ask()
    with answering(lambda _: time.sleep(2)) as port:
        began = time.monotonic()
        with pytest.raises(Unheard, match="no answer within"):
            Address.parse(f"127.0.0.1:{port}").ask()
        assert time.monotonic() - began < 1.5


@pytest.mark.parametrize("what", ["head", "body"])
def test_an_answer_that_comes_in_drops_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.setattr(address, "ASK_SECONDS", 0.5)

    def handle(request: http.server.BaseHTTPRequestHandler) -> None:
        if what == "body":
            request.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10000\r\n\r\n")
        with suppress(OSError):
            for _ in range(200):
                request.wfile.write(b" ")
                request.wfile.flush()
                time.sleep(0.02)

    with answering(handle) as port:
        began = time.monotonic()
        with pytest.raises(Unheard, match="no answer within"):
            Address.parse(f"127.0.0.1:{port}").ask()
        assert time.monotonic() - began < 2.0


def test_a_connection_that_was_closed_meanwhile_is_made_anew() -> None:
    connections: set[object] = set()

    def handle(request: http.server.BaseHTTPRequestHandler) -> None:
        connections.add(request.client_address)
        answer(WHOLE)(request)
        request.close_connection = len(connections) == 1

    with answering(handle) as port:
        asked = Address.parse(f"127.0.0.1:{port}")
        for _ in range(4):
            asked.ask()
        asked.close()
    assert len(connections) == 2


@pytest.mark.parametrize("url", ["", "ftp://gpu1", "http://", "http://gpu1:x", "http://[::1", f"http://a:{TOKEN}@:80",
                                 f"ftp://a:{TOKEN}@gpu1", f"http://gpu1:808O/?token={TOKEN}",
                                 f"ftp://gpu1/?token={TOKEN}", f"gpu1:808O?x=a@b&token={TOKEN}",
                                 f"http://a:{TOKEN}?@gpu1:808O", f"http://gpu1:x/#token={TOKEN}"])  # fmt: skip
def test_an_address_that_is_none_is_a_mistake_without_its_secrets(url: str) -> None:
    with pytest.raises(SettingError, match="give an agent's address, such as http://gpu1:8080") as caught:
        Address.parse(url)
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize("token", ["a b", "a\nb", "ä", "\x1b"])
def test_a_token_that_no_header_can_hold_is_a_mistake_and_not_told(token: str) -> None:
    with pytest.raises(SettingError, match=r"--token \(TRAINVITALS_TOKEN\)") as caught:
        Address.parse("gpu1", token)
    assert token not in str(caught.value)


def test_nothing_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(Unheard, match="Connection refused"):
        Address.parse(f"127.0.0.1:{port}").ask()
    with pytest.raises(Unheard):
        Address.parse("name.invalid").ask()


def test_a_real_agent_with_a_token(tmp_path: Path) -> None:
    with serving(tmp_path, "--simulate", "2", "--token", TOKEN) as agent:
        assert len(Address.parse(agent.address, TOKEN).ask().gpus) == 2
        with pytest.raises(Unheard, match="it asks for a token"):
            Address.parse(agent.address).ask()
        with pytest.raises(Unheard, match="it asks for a token"):
            Address.parse(agent.address, "wrong-wrong-wrong").ask()
