"""The gate before Prometheus and Alertmanager, over real sockets: who passes, and that nobody else gets anything by."""

import os
import signal
import socket
import subprocess
import sys
import time
from http.client import HTTPConnection

import pytest

from tests.compose.gating import (
    BIG_BYTES,
    HOST,
    NAMES,
    SECONDS,
    Gated,
    Service,
    head,
    read_out,
    status,
    within,
)
from tests.ports import free_port
from trainvitals.errors import SettingError
from trainvitals.stack.gate import door, problem

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")


@pytest.mark.parametrize("host", [
    "localhost", "localhost:9090", "LOCALHOST.", "127.0.0.1:9093", "10.1.2.3", "[::1]:9090", "[fe80::1]",
    "gpu1.example", "GPU1.Example:9090", "other.example", "prom.example", "alerts.example:9093"])  # fmt: skip
def test_who_calls_by_a_name_that_is_known_is_passed_on(gated: Gated, behind: Service, host: str) -> None:
    assert gated.asks("/a?b=c%20d", Host=host).endswith(b"\r\n\r\nhello")
    ((method, path, headers, _),) = behind.seen
    assert (method, path, headers["host"], headers["connection"]) == ("GET", "/a?b=c%20d", host, "close")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example",
                                  "sub.gpu1.example", "", "127.1.evil.example",
                                  "localhost:9090@evil.example", "[::1].evil.example", "2130706433"])  # fmt: skip
def test_a_foreign_host_is_refused_with_every_method(gated: Gated, behind: Service, method: str, host: str) -> None:
    answer = gated.asks("/", method, b"hello", Host=host)
    assert status(answer) == 403
    assert answer.partition(b"\r\n\r\n")[2].count(b"\n") == 1
    assert b"TRAINVITALS_ALLOWED_HOSTS" in answer and repr(host).encode() in answer
    assert behind.seen == []


@pytest.mark.parametrize("request_", [b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.0\r\n\r\n"])
def test_no_host_is_a_foreign_one(gated: Gated, behind: Service, request_: bytes) -> None:
    assert status(gated.says(request_)) == 403
    assert behind.seen == []


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", "http://localhost:1", "http://localhost",
                                    "file://", "chrome-extension://localhost:PORT", "localhost:PORT"])  # fmt: skip
def test_a_foreign_origin_is_refused_with_every_method(gated: Gated, behind: Service, method: str, origin: str) -> None:
    answer = gated.asks("/api/v2/silences", method, b"{}", Origin=origin.replace("PORT", str(gated.port)))
    assert status(answer) == 403
    assert b"Origin: " in answer and b"access-control" not in answer.lower()
    assert behind.seen == []


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_page_itself_may_ask(gated: Gated, behind: Service, method: str, scheme: str) -> None:
    answer = gated.asks("/", method, b"{}", Host="LocalHost:9093", Origin=f"{scheme}://localhost:9093")
    assert (status(answer), behind.seen[0][3]) == (200, b"{}")


def test_no_answer_has_a_word_for_other_sites(gated: Gated) -> None:
    told = head(gated.asks())
    assert b"access-control" not in told
    for kept in (b"x-kept: yes", b"connection: close", b"x-frame-options: sameorigin"):
        assert kept in told
    assert told.count(b"connection:") == 1


def test_a_body_in_chunks_arrives_whole(gated: Gated, behind: Service) -> None:
    body = [os.urandom(size) for size in (1, 70_000, 2**20)]
    with gated.connect() as client:
        client.sendall(b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n")
        for part in body:
            client.sendall(b"%x;a=b\r\n%s\r\n" % (len(part), part))
        client.sendall(b"0\r\n\r\n")
        assert status(read_out(client)) == 200
    assert behind.seen[0][3] == b"".join(body)


def test_who_asks_first_whether_to_send_is_told(gated: Gated, behind: Service) -> None:
    with gated.connect() as client:
        client.sendall(b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        assert status(client.recv(2**16)) == 100
        client.sendall(b"hello")
        assert status(read_out(client)) == 200
    assert behind.seen[0][3] == b"hello"


def test_a_head_that_comes_byte_by_byte_is_whole_at_last(gated: Gated, behind: Service) -> None:
    with gated.connect() as client:
        for byte in b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\n\r\nabc":
            client.sendall(bytes([byte]))
            time.sleep(0.001)
        assert status(read_out(client)) == 200
    assert behind.seen[0][3] == b"abc"


def test_a_big_answer_arrives_whole_and_waits_for_who_reads_slowly(gated: Gated, behind: Service) -> None:
    with gated.connect() as client:
        client.sendall(b"GET /big HTTP/1.1\r\n" + HOST + b"\r\n")
        within(lambda: behind.sent > 0)
        stands = -1
        while stands != (stands := behind.sent):
            time.sleep(0.5)
        assert stands < BIG_BYTES / 2
        total = sum(map(len, iter(lambda: client.recv(2**16), b"")))
    assert total > BIG_BYTES


def test_an_answer_streams_and_ends_where_nobody_reads_any_longer(gated: Gated, behind: Service) -> None:
    with gated.connect() as client:
        client.sendall(b"GET /events HTTP/1.1\r\n" + HOST + b"\r\n")
        told = b""
        while b"data: 1" not in told:
            told += client.recv(2**16)
        assert not behind.hung_up.is_set()
    assert behind.hung_up.wait(SECONDS)


def test_who_says_no_more_but_reads_on_is_answered(gated: Gated, behind: Service) -> None:
    with gated.connect() as client:
        client.sendall(b"GET /waits HTTP/1.1\r\n" + HOST + b"\r\n")
        client.shutdown(socket.SHUT_WR)
        within(lambda: behind.seen)
        behind.go_on.set()
        assert status(read_out(client)) == 200


def test_it_ends_at_a_signal_though_somebody_waits(behind: Service) -> None:
    port = free_port()
    words = [sys.executable, "-m", "trainvitals.stack", "gate", f"{port}:127.0.0.1:{behind.port}"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env={**os.environ, **NAMES}) as running:
        assert running.stderr is not None
        within(lambda: problem([f"{port}:x:1"]) == "")
        client = HTTPConnection("127.0.0.1", port, timeout=SECONDS)
        client.request("GET", "/", headers={"Host": "evil.example"})
        assert client.getresponse().read().endswith(b"compose/.env\n")
        client.close()
        client.request("GET", "/waits", headers={"Host": "gpu1.example"})
        within(lambda: behind.seen)
        running.send_signal(signal.SIGTERM)
        assert running.wait(SECONDS) == 0
        client.close()
        assert [line.partition(" is not ")[0] for line in running.stderr] == ["Host: 'evil.example'"]


def test_the_health_check_sees_a_gate_that_is_gone_and_one_that_lets_all_pass(behind: Service) -> None:
    port = free_port()
    assert f"port {port}" in problem([f"{port}:prometheus:9090"])
    assert problem([f"{behind.port}:prometheus:9090"]).startswith("the gate answers 200")
    words = [sys.executable, "-m", "trainvitals.stack", "gate", "--check", f"{port}:prometheus:9090"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


@pytest.mark.parametrize("value", ["9090", "x:prometheus:9090", "9090:prometheus", "9090:a:b"])
def test_a_door_that_leads_nowhere_is_told(value: str) -> None:
    with pytest.raises(SettingError, match="give port:service:port"):
        door(value)


@pytest.mark.parametrize("site", ["cross-site", "same-site", "Cross-Site"])
@pytest.mark.parametrize("mode", ["no-cors", "cors", "websocket", ""])
def test_no_part_of_another_sites_page_is_got_here(gated: Gated, behind: Service, site: str, mode: str) -> None:
    answer = gated.asks("/api/v1/query_range", **{"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode})
    assert status(answer) == 403
    assert b"may not ask for parts of its page here" in answer
    assert behind.seen == []


@pytest.mark.parametrize(("site", "mode"), [("cross-site", "navigate"), ("same-origin", "cors"), ("none", "navigate")])
def test_links_from_elsewhere_lead_here(gated: Gated, behind: Service, site: str, mode: str) -> None:
    assert status(gated.asks("/alerts", **{"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode})) == 200
