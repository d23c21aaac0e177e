"""A way to a server that can be shut: who comes then is refused, and who was let in is thrown out."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def gate(port: int, behind: int) -> Iterator[None]:
    """Open on `port`, to the port `behind` it, while the block runs."""
    ends: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", port)) as listening:
        threading.Thread(target=_let_in, args=(listening, behind, ends), daemon=True).start()
        try:
            yield
        finally:
            _shut(listening)
    for end in list(ends):
        _shut(end)


def _let_in(listening: socket.socket, behind: int, ends: list[socket.socket]) -> None:
    with suppress(OSError):
        while True:
            client, _ = listening.accept()
            server = socket.create_connection(("127.0.0.1", behind))
            ends += [client, server]
            for way in ((client, server), (server, client)):
                threading.Thread(target=_carry, args=way, daemon=True).start()


def _carry(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while content := source.recv(1 << 16):
            target.sendall(content)
    _shut(source)
    _shut(target)


def _shut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
