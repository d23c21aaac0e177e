"""One request and its answer, passed on between two sockets.

Sockets are read and written piece by piece, so that whoever is slow slows the other side and no buffer grows; each
piece within a bound of time.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Iterable
from typing import Any, TypeVar

from trainvitals.stack import heads
from trainvitals.stack.heads import Head, Refusal

HEAD_BYTES = 32 * 1024
HEAD_SECONDS = 10.0
# As long as Prometheus itself lets a connection idle.
IDLE_SECONDS = 300.0
LINGER_SECONDS = 2.0
_PIECE = 32 * 1024
_CHUNK_LINE_BYTES = 256
_END = b"\r\n\r\n"
# A page of another site may not show it in a frame either, and have it clicked on.
_KEPT_TO_ITSELF = ("X-Frame-Options: SAMEORIGIN", "Cross-Origin-Resource-Policy: same-origin")
T = TypeVar("T")


class Gone(Exception):
    """Who asked is there no more: nobody is left to tell."""


class Peer:
    """One end of a connection."""

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        self._socket, self._held, self._loop = connected, b"", asyncio.get_running_loop()

    async def some(self, most: int = _PIECE) -> bytes:
        """Nothing where the other side says no more."""
        if not self._held:
            return await within(IDLE_SECONDS, self._loop.sock_recv(self._socket, min(most, _PIECE)))
        piece, self._held = self._held[:most], self._held[most:]
        return piece

    async def until(self, end: bytes, most: int) -> bytes:
        """All before `end` and `end`; EOFError where it does not come, ValueError where more comes before it."""
        while (at := self._held.find(end)) < 0 and len(self._held) < most + len(end):
            piece = await within(IDLE_SECONDS, self._loop.sock_recv(self._socket, _PIECE))
            if not piece:
                raise EOFError("it ended before it was whole")
            self._held += piece
        if not 0 <= at <= most:
            raise ValueError(f"it is longer than {most} bytes")
        return await self.some(at + len(end))

    async def send(self, piece: bytes) -> None:
        await within(IDLE_SECONDS, self._loop.sock_sendall(self._socket, piece))

    def has_spoken(self) -> bool:
        return bool(self._held)

    async def waits_no_longer(self) -> bool:
        """As soon as they have hung up; not where they say more."""
        return not self._held and not await self._loop.sock_recv(self._socket, 1)

    def say_no_more(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    async def linger(self) -> None:
        """What is closed before all was read is reset, which takes the end of the answer with it."""
        self.say_no_more()
        self._held = b""
        await within(LINGER_SECONDS, self._read_out())

    async def _read_out(self) -> None:
        while await self.some():
            pass


async def head_of(client: Peer) -> Head:
    try:
        return heads.request(await within(HEAD_SECONDS, client.until(_END, HEAD_BYTES)))
    except EOFError as error:
        raise Gone from error
    except asyncio.TimeoutError as error:
        # A browser opens connections in advance.
        if not client.has_spoken():
            raise Gone from error
        raise Refusal("408 Request Timeout", f"this request's head takes longer than {HEAD_SECONDS:g} s") from error
    except ValueError as error:
        raise Refusal("431 Request Header Fields Too Large", f"this request's head: {error}") from error


async def refuse(client: Peer, refusal: Refusal) -> None:
    text = f"{refusal.line}\n".encode()
    fields = (("Content-Type", "text/plain; charset=utf-8"), ("X-Content-Type-Options", "nosniff"),
              ("Content-Length", str(len(text))))  # fmt: skip
    await client.send(Head(f"HTTP/1.1 {refusal.status}", fields).passed_on(*_KEPT_TO_ITSELF) + text)


async def pass_on(request: Head, length: int | None, client: Peer, upstream: Peer, service: str) -> None:
    """Until the answer is whole. A request that has been sent ends nothing, one that cannot be read ends both."""
    await upstream.send(request.passed_on())
    asking = asyncio.create_task(_pass_body(client, upstream, length))
    answering = asyncio.create_task(_answer_of(upstream, client, service))
    try:
        await asyncio.wait({asking, answering}, return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():
            asking.result()
        await client.send((await answering).passed_on(*_KEPT_TO_ITSELF))
        while piece := await upstream.some():
            await client.send(piece)
    finally:
        await end([asking, answering])


async def _pass_body(client: Peer, upstream: Peer, length: int | None) -> None:
    async for piece in _chunks(client) if length is None else _pieces(client, length):
        try:
            await upstream.send(piece)
        except (OSError, asyncio.TimeoutError):
            # It reads no more, and may have answered already.
            return
    # A second request is not passed on. That nobody waits any longer is, for a query to end.
    if await client.waits_no_longer():
        upstream.say_no_more()


async def _pieces(client: Peer, length: int) -> AsyncIterator[bytes]:
    while length:
        piece = await client.some(length)
        if not piece:
            raise Gone
        length -= len(piece)
        yield piece


async def _chunks(client: Peer) -> AsyncIterator[bytes]:
    length = -1
    while length:
        length = heads.chunk_length(await _line_of(client, _CHUNK_LINE_BYTES))
        begin = b"%x\r\n" % length
        async for piece in _pieces(client, length):
            yield begin + piece
            begin = b""
        # The last chunk only once its end is seen.
        yield begin + await _line_of(client, 0)


async def _line_of(client: Peer, most: int) -> bytes:
    try:
        return await client.until(b"\r\n", most)
    except EOFError as error:
        raise Gone from error
    except ValueError as error:
        raise Refusal("400 Bad Request", "This request is not passed on: its chunks have no clear end") from error


async def _answer_of(upstream: Peer, client: Peer, service: str) -> Head:
    """Its head. What comes before it, that the body may follow, is passed on."""
    try:
        while heads.status(answer := heads.answer(await upstream.until(_END, HEAD_BYTES))) < 200:
            await client.send(answer.passed_on())
    except asyncio.TimeoutError as error:
        raise Refusal("504 Gateway Timeout", f"{service} did not answer within {IDLE_SECONDS:g} s") from error
    except (OSError, EOFError, ValueError) as error:
        raise Refusal("502 Bad Gateway", f"{service} gave no whole answer: make logs tells more ({error})") from error
    return answer


async def within(seconds: float, waiting: Awaitable[T]) -> T:
    """asyncio.wait_for, which before Python 3.12 drops a cancellation that comes together with the result."""
    late = asyncio.Event()
    task = asyncio.current_task()
    assert task is not None
    timer = asyncio.get_running_loop().call_later(seconds, _expire, task, late)
    try:
        return await waiting
    except asyncio.CancelledError:
        if late.is_set():
            raise asyncio.TimeoutError from None
        raise
    finally:
        timer.cancel()


def _expire(task: "asyncio.Task[Any]", late: asyncio.Event) -> None:
    late.set()
    task.cancel()


async def end(tasks: Iterable["asyncio.Task[Any]"]) -> None:
    ending = list(tasks)
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)
