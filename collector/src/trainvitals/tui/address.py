"""Where an agent answers, and asking it: one connection, each answer whole and in time.

Address.parse("https://me:secret@gpu1:8443")  ->  Address(shown="gpu1:8443", …), which shows no secret anywhere
"""

import base64
import http.client
import re
import socket
import ssl
import threading
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import orjson

from trainvitals.errors import SettingError
from trainvitals.tui.picture import Picture, Unreadable, picture
from trainvitals.tui.text import clean

ASK_SECONDS = 3.0
MOST_BYTES = 32 * 2**20
SNAPSHOT = "/api/v1/snapshot"
LATE = f"no answer within {ASK_SECONDS:g} s"
KEY = "--remote (TRAINVITALS_REMOTE)"
_DOORS = {401: "it asks for a token or a password: give --token, or --remote http://USER:PASSWORD@HOST:PORT",
          421: "it does not go by this name: set TRAINVITALS_ALLOWED_HOSTS there, or use its address"}  # fmt: skip


class Unheard(Exception):
    """No agent answered, and why."""


class Address:
    def __init__(self, host: str, port: int, *, tls: bool = False, path: str = "", login: str = "") -> None:
        """`login` is what the header Authorization says."""
        self.host, self.port, self._tls, self._path = host, port, tls, path
        self._login = login
        self._is_late = False
        self.shown = clean(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
        self._connection: http.client.HTTPConnection | None = None

    @classmethod
    def parse(cls, url: str, token: str = "") -> "Address":
        """SettingError names what is wrong, and no secret."""
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            host, port = parts.hostname or "", parts.port
        except ValueError:
            host, port = "", None
        if not host or parts.scheme not in ("http", "https"):
            raise SettingError(KEY, _without_secrets(url), "give an agent's address, such as http://gpu1:8080")
        tls = parts.scheme == "https"
        # The link that an agent prints at its start holds its token.
        token = parse_qs(parts.query).get("token", [token])[0]
        login = basic(parts.username, parts.password or "") if parts.username else bearer(token)
        return cls(host, port or (443 if tls else 80), tls=tls, path=parts.path.rstrip("/"), login=login)

    def ask(self) -> Picture:
        """Unheard says why there is none."""
        try:
            return picture(self.get(SNAPSHOT))
        except Unreadable as error:
            raise Unheard(str(error)) from error

    def get(self, path: str) -> Any:
        """What JSON is there. A connection that was closed while it idled is made anew, once."""
        try:
            try:
                status, body = self._exchange(path)
            except (http.client.RemoteDisconnected, ConnectionError):
                if self._is_late:
                    raise
                self.close()
                status, body = self._exchange(path)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            raise Unheard(LATE if self._is_late else _words(error)) from error
        return _read(status, body)

    def another(self) -> "Address":
        """The same agent by a connection of its own, for another thread."""
        return Address(self.host, self.port, tls=self._tls, path=self._path, login=self._login)

    def close(self) -> None:
        if self._connection:
            self._connection.close()
        self._connection = None

    def _exchange(self, path: str) -> tuple[int, bytes]:
        """A socket's own time is that of each read: an answer that comes in drops must be whole in time too."""
        if self._connection is None:
            self._connection = self._connect()
        if self._connection.sock is None:
            self._connection.connect()
        self._is_late = False
        watch = threading.Timer(ASK_SECONDS, self._break_off, (self._connection,))
        watch.daemon = True
        watch.start()
        try:
            found = self._read_answer(self._connection, path)
        finally:
            watch.cancel()
        if self._is_late:
            raise TimeoutError
        return found

    def _break_off(self, connection: http.client.HTTPConnection) -> None:
        self._is_late = True
        with suppress(OSError, AttributeError):
            socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)

    def _read_answer(self, connection: http.client.HTTPConnection, path: str) -> tuple[int, bytes]:
        headers = {"accept": "application/json", **({"authorization": self._login} if self._login else {})}
        connection.request("GET", self._path + path, headers=headers)
        answer = connection.getresponse()
        body = answer.read(MOST_BYTES + 1)
        if len(body) > MOST_BYTES:
            raise ValueError("its answer does not end")
        return answer.status, body

    def _connect(self) -> http.client.HTTPConnection:
        if not self._tls:
            return http.client.HTTPConnection(self.host, self.port, timeout=ASK_SECONDS)
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(self.host, self.port, timeout=ASK_SECONDS, context=context)


def _without_secrets(url: str) -> str:
    """A login stands before an @, a token behind a ?; with both signs nobody knows where the one ends."""
    head, *query = re.split(r"[?#]", url, maxsplit=1)
    return "(not shown)" if "@" in "".join(query) else head.rpartition("@")[2]


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()


def bearer(token: str) -> str:
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise SettingError("--token (TRAINVITALS_TOKEN)", "(not shown)", "give letters, digits and signs, no blanks")
    return f"Bearer {token}" if token else ""


def _read(status: int, body: bytes) -> Any:
    if status != 200:
        raise Unheard(_DOORS.get(status, f"it answers with status {status}"))
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Unheard("what it answers is no JSON") from error


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return LATE
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message}): name its authority in SSL_CERT_FILE"
    if isinstance(error, OSError):
        return clean(error.strerror or str(error) or type(error).__name__)
    return clean(f"{type(error).__name__}: {error}")
