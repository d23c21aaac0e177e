"""What could be read in two ways, or is more than one request, gets through the gate in no way."""

import socket

import pytest

from tests.compose.gating import HOST, Gated, Service, scripted, status

# What two servers might read in two ways.
SMUGGLED = {
    "both lengths": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "a list of lengths": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5, 5\r\n\r\nhello",
    "a signed length": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: +5\r\n\r\nhello",
    "an empty length": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length:\r\n\r\nhello",
    "an endless length": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 99999999999999999999\r\n\r\nhello",
    "two hosts": b"GET / HTTP/1.1\r\n" + HOST + b"Host: evil.example\r\n\r\n",
    "two origins": b"GET / HTTP/1.1\r\n" + HOST + b"Origin: http://localhost\r\nOrigin: http://evil.example\r\n\r\n",
    "two encodings": b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n" * 2 + b"\r\n0\r\n\r\n",
    "a list of encodings": b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "an unknown encoding": b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunks of 1.0": b"POST / HTTP/1.0\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a space before the colon": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length : 5\r\n\r\nhello",
    "a line that goes on": b"GET / HTTP/1.1\r\n" + HOST + b"X: 1\r\n Content-Length: 5\r\n\r\nhello",
    "a bare line feed": b"GET / HTTP/1.1\r\n" + HOST + b"X: 1\nContent-Length: 5\r\n\r\nhello",
    "a bare carriage return": b"GET / HTTP/1.1\r\n" + HOST + b"X: 1\rContent-Length: 5\r\n\r\nhello",
    "a zero": b"GET / HTTP/1.1\r\n" + HOST + b"X: \0\r\n\r\n",
    "no colon": b"GET / HTTP/1.1\r\n" + HOST + b"X\r\n\r\n",
    "a line before the first": b"\r\nGET / HTTP/1.1\r\n" + HOST + b"\r\n",
    "a whole address": b"GET http://evil.example/ HTTP/1.1\r\n" + HOST + b"\r\n",
    "a tunnel": b"CONNECT localhost:9093 HTTP/1.1\r\n" + HOST + b"\r\n",
    "a space in the path": b"GET /a b HTTP/1.1\r\n" + HOST + b"\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/0.9": b"GET /\r\n\r\n",
}
CHUNKS = {
    "no length": b"hello\r\n",
    "an endless length": b"f" * 300,
    "a signed length": b"+5\r\nhello\r\n0\r\n\r\n",
    "a length with 0x": b"0x5\r\nhello\r\n0\r\n\r\n",
    "more than its length": b"5\r\nhelloworld\r\n0\r\n\r\n",
    "a bare line feed": b"5\nhello\r\n0\r\n\r\n",
    "a bare line feed within": b"5;a\n\r\nhello\r\n0\r\n\r\n",
    "headers at the end": b"0\r\nHost: evil.example\r\n\r\n",
}


@pytest.mark.parametrize("request_", SMUGGLED.values(), ids=SMUGGLED)
def test_what_can_be_read_in_two_ways_is_not_passed_on(gated: Gated, behind: Service, request_: bytes) -> None:
    assert status(gated.says(request_)) == 400
    assert behind.seen == []


@pytest.mark.parametrize("chunks", CHUNKS.values(), ids=CHUNKS)
def test_chunks_that_can_be_read_in_two_ways_end_the_request(gated: Gated, behind: Service, chunks: bytes) -> None:
    asked = b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n" + chunks
    assert status(gated.says(asked)) == 400
    assert behind.seen == []


@pytest.mark.parametrize("second", [b"GET /second HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\r\n", b"x" * 100_000])
@pytest.mark.parametrize("first", [
    b"GET /first HTTP/1.1\r\n" + HOST + b"\r\n",
    b"POST /first HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nConnection: keep-alive\r\n\r\nhello",
    b"POST /first HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"])  # fmt: skip
def test_of_requests_in_a_row_the_first_alone_is_passed_on(
    gated: Gated, behind: Service, first: bytes, second: bytes
) -> None:
    answer = gated.says(first + second)
    assert (status(answer), answer.count(b"HTTP/1.1")) == (200, 1)
    assert [path for _, path, _, _ in behind.seen] == ["/first"]


def test_of_what_is_beyond_the_gate_nothing_but_one_request_is_sent() -> None:
    got: list[bytes] = []

    def serve(accepted: socket.socket) -> None:
        accepted.settimeout(0.5)
        try:
            while piece := accepted.recv(2**16):
                got.append(piece)
        except TimeoutError:
            accepted.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    with scripted(serve) as port, Gated(port) as gated:
        request = b"POST / HTTP/1.1\r\n" + HOST + b"Connection: Host\r\nUpgrade: h2c\r\nTE: trailers\r\n"
        gated.says(request + b"Content-Length: 2\r\n\r\nhiGET /second HTTP/1.1\r\n\r\n")
    assert b"".join(got) == b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\nConnection: close\r\n\r\nhi"
