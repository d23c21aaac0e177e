"""Binding, serving, and ending within two seconds of a signal."""

import asyncio
import contextlib
import errno
import signal
import socket
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

import uvicorn
from starlette.applications import Starlette

from trainvitals.errors import SettingError
from trainvitals.web.config import WebConfig

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Server(uvicorn.Server):
    """uvicorn without its wake-up ten times a second, and without dying of the signal it was ended by."""

    def __init__(self, app: Starlette, config: WebConfig, ended: threading.Event | None = None) -> None:
        # uvicorn wants file names for TLS; the context that was made from the web config is put in its place.
        # Not whichever parser and loop happen to be installed: h11 bounds what a header may take.
        settings = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", ws="none",
                                  http="h11", loop="asyncio",
                                  proxy_headers=False, server_header=False, date_header=False,
                                  timeout_keep_alive=75, timeout_graceful_shutdown=1)  # fmt: skip
        settings.load()
        settings.ssl = config.tls
        super().__init__(settings)
        self._app = app
        self._ending = asyncio.Event()
        self._ended = ended or threading.Event()

    def end(self, number: int = 0, frame: FrameType | None = None) -> None:
        self.should_exit = True
        self._loop.call_soon_threadsafe(self._ending.set)

    async def main_loop(self) -> None:
        await self._ending.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Readers of the event stream would stay for ever."""
        self._app.state.streams.end()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        self._loop = asyncio.get_running_loop()
        # A hang-up that is ignored stays so: nohup means it.
        stays = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        wanted = [number for number in _ENDING if not (stays and number == signal.SIGHUP)]
        before = {number: signal.signal(number, self.end) for number in wanted}
        if self._ended.is_set():
            self.end()
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def bind(host: str, port: int, flag: str = "--port") -> socket.socket:
    """The listening socket, or an error that names the port and the flag."""
    family, address = resolve(host, port)
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise _refused(host, port, flag, error) from error
    return listening


def resolve(host: str, port: int) -> tuple[socket.AddressFamily, Any]:
    """What to bind to."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise _no_address(host) from error
    return family, address


def serve(app: Starlette, listening: socket.socket, config: WebConfig, ended: threading.Event | None = None) -> None:
    """Returns after SIGTERM or SIGINT. `ended`: set by one that came before, while all this was loaded."""
    server = Server(app, config, ended)
    asyncio.run(server.serve(sockets=[listening]))


@contextlib.contextmanager
def serving_beside(app: Starlette, listening: socket.socket, config: WebConfig) -> Iterator[None]:
    """In a thread, for as long as the block lasts: signals are for whoever serves in the main one."""
    server = _Beside(app, config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.end_soon()
        thread.join(2.0)


class _Beside(Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        self._loop = asyncio.get_running_loop()
        self._started.set()
        yield

    def __init__(self, app: Starlette, config: WebConfig) -> None:
        super().__init__(app, config)
        self._started = threading.Event()

    def end_soon(self) -> None:
        if self._started.wait(2.0):
            self.end()


def _refused(host: str, port: int, flag: str, error: OSError) -> SettingError:
    if error.errno == errno.EADDRINUSE:
        return SettingError(flag, port, f"the port is taken; choose another, such as `{flag} {_other(port)}`")
    if error.errno in (errno.EACCES, errno.EPERM):
        return SettingError(flag, port, "ports below 1024 need root; choose a higher one")
    return _no_address(host)


def _no_address(host: str) -> SettingError:
    return SettingError("--host", host, "give an address of this machine, such as 127.0.0.1")


def _other(port: int) -> int:
    return port + 1 if port < 65535 else port - 1
