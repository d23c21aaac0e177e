"""The gate between clients and services that are slow, gone, too many, or say what they should not."""

import asyncio
import contextlib
import socket
import threading
import time

import pytest

from tests.compose.gating import HOST, SECONDS, Gated, Service, read_out, scripted, status, within
from tests.ports import free_port
from trainvitals.stack import gate as gating
from trainvitals.stack import passing


def test_a_service_that_takes_its_time_is_waited_for(gated: Gated, behind: Service) -> None:
    threading.Timer(1, behind.go_on.set).start()
    assert status(gated.asks("/waits")) == 200


def test_a_service_that_takes_too_long_is_given_up(behind: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passing, "IDLE_SECONDS", 0.3)
    with Gated(behind.port) as gated:
        answer = gated.asks("/waits")
    assert status(answer) == 504 and b"within 0.3 s" in answer


def test_a_service_that_is_not_there_is_told_of() -> None:
    with Gated(free_port()) as gated:
        answer = gated.asks()
    assert status(answer) == 502 and b"127.0.0.1 does not answer: make logs tells more" in answer


@pytest.mark.parametrize("said", [
    b"", b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-", b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX : y\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"y" * 40_000 + b"\r\n\r\n"])  # fmt: skip
def test_an_answer_that_is_none_is_told_of(said: bytes) -> None:
    def serve(accepted: socket.socket) -> None:
        accepted.recv(2**16)
        accepted.sendall(said)

    with scripted(serve) as port, Gated(port) as gated:
        assert status(gated.asks()) == 502


def test_an_answer_that_breaks_off_is_not_whole() -> None:
    def serve(accepted: socket.socket) -> None:
        accepted.recv(2**16)
        accepted.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")

    with scripted(serve) as port, Gated(port) as gated:
        assert gated.asks().endswith(b"\r\n\r\nhello")


def test_an_answer_before_all_is_sent_arrives() -> None:
    def serve(accepted: socket.socket) -> None:
        accepted.recv(10)
        accepted.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        accepted.shutdown(socket.SHUT_WR)
        time.sleep(0.5)

    with scripted(serve) as port, Gated(port) as gated:
        assert status(gated.asks("/", "POST", b"x" * 8 * 2**20)) == 413


def test_a_refusal_arrives_though_much_was_sent_with_it(gated: Gated) -> None:
    assert status(gated.asks("/", "POST", b"x" * 2**20, Host="evil.example")) == 403


def test_a_head_that_is_too_long_is_refused(gated: Gated, behind: Service) -> None:
    assert status(gated.asks(X="y" * passing.HEAD_BYTES)) == 431
    assert status(gated.asks(X="y" * (passing.HEAD_BYTES - 200))) == 200
    assert len(behind.seen) == 1


def drip(client: socket.socket) -> None:
    with contextlib.suppress(OSError):
        for byte in b"GET / HTTP/1.1\r\nX: " + b"y" * 10_000:
            client.sendall(bytes([byte]))
            time.sleep(0.01)


def test_a_head_that_does_not_come_is_not_waited_for(behind: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passing, "HEAD_SECONDS", 0.3)
    with Gated(behind.port) as gated:
        # A browser that connected in advance is told nothing, for it would take that for an answer.
        assert gated.says(b"") == b""
        assert status(gated.says(b"GET / HTTP/1.1\r\nHost: local")) == 408
        with gated.connect() as client:
            began = time.monotonic()
            dripping = threading.Thread(target=drip, args=(client,), daemon=True)
            dripping.start()
            assert status(read_out(client)) == 408
            assert time.monotonic() - began < SECONDS
    assert behind.seen == []


def test_a_body_that_does_not_come_is_not_waited_for(behind: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passing, "IDLE_SECONDS", 0.3)
    with Gated(behind.port) as gated:
        gated.says(b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 50\r\n\r\nhello")
    assert behind.seen[0][3] == b"hello" or behind.seen == []


def test_who_hangs_up_in_the_midst_of_a_request_leaves_nothing_behind(gated: Gated) -> None:
    for said in (b"", b"GET / HT", b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 50\r\n\r\nhello",
                 b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhe"):  # fmt: skip
        with gated.connect() as client:
            client.sendall(said)
    within(lambda: not gated.gate._open)
    assert status(gated.asks()) == 200


def test_many_ask_at_once_and_all_are_answered(gated: Gated, behind: Service) -> None:
    answers: list[bytes] = []
    asking = [threading.Thread(target=lambda: answers.append(gated.asks())) for _ in range(120)]
    for each in asking:
        each.start()
    for each in asking:
        each.join(SECONDS)
    assert [status(answer) for answer in answers] == [200] * 120 == [200] * len(behind.seen)


def test_whoever_is_one_too_many_is_told_and_room_comes_back(behind: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gating, "MOST_CONNECTIONS", 3)
    monkeypatch.setattr(gating, "SPARE", 2)
    with Gated(behind.port) as gated:
        held = [gated.connect() for _ in range(3)]
        within(lambda: len(gated.gate._open) == 3)
        answers = [gated.asks() for _ in range(6)]
        assert {status(answer) for answer in answers} == {503}
        assert b"3 connections are open here" in answers[0]
        for client in held:
            client.close()
        within(lambda: not gated.gate._open)
        assert status(gated.asks()) == 200


def test_a_bound_holds_though_what_it_bounds_goes_on_at_each_moment() -> None:
    async def busy() -> None:
        until = time.monotonic() + 3
        while time.monotonic() < until:
            await passing.within(SECONDS, asyncio.sleep(0))

    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(passing.within(0.2, busy()))
