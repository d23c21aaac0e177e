"""One HTTP request, and what its answer means: ask("https://hook.example/abc", b"{}")

A proxy of the environment is used, but for this machine; a redirection is not followed; a login in the address becomes
a header. What is raised may name the address: it is for Channel.hide.
"""

import base64
import email.utils
import http.client
import math
import socket
import time
import urllib.request
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit, urlunsplit

import trainvitals
from trainvitals.notify.channel import Unsent
from trainvitals.notify.limits import SOCKET_SECONDS

_MAX_ANSWER_BYTES = 2**16
_TOLD_BYTES = 300
# Refused, and another time it may not be.
_PASSING = frozenset({408, 425, 429})
ONLY_REACHED = "whether it takes messages is known once one is sent: --test sends one"
_NO_ENTRY = frozenset({401, 403, 404})


class _Straight(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def ask(url: str, body: bytes | None = None, content_type: str = "application/json", *, method: str | None = None,
        most_bytes: int = _MAX_ANSWER_BYTES) -> bytes:  # fmt: skip
    """Its answer; Unsent says why there is none, or none that is good. What is longer is cut off."""
    address, login = _without_login(url)
    headers = {"User-Agent": f"trainvitals/{trainvitals.__version__}", **login}
    if body is not None:
        headers["Content-Type"] = content_type
    request = urllib.request.Request(address, body, headers, method=method)
    try:
        with _opener(address).open(request, timeout=SOCKET_SECONDS) as answer:
            return bytes(answer.read(most_bytes))
    except HTTPError as error:
        raise _refusal(error) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unsent(words(error)) from None


def connect(url: str) -> None:
    """Whether somebody listens there, without a word to them. Behind a proxy only the proxy knows."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if _is_by_proxy(parts.scheme, host):
        return
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((host, port), SOCKET_SECONDS).close()
    except (OSError, UnicodeError) as error:
        raise Unsent(f"{host}:{port}: {words(error)}") from None


def look(url: str) -> None:
    """Whether somebody there knows the address and lets us in, without a message. Many know no such question."""
    connect(url)
    try:
        ask(url, method="OPTIONS")
    except Unsent as error:
        if error.status in _NO_ENTRY or not error.status:
            raise


def _opener(address: str) -> urllib.request.OpenerDirector:
    parts = urlsplit(address)
    direct = [] if _is_by_proxy(parts.scheme, parts.hostname or "") else [urllib.request.ProxyHandler({})]
    return urllib.request.build_opener(_Straight, *direct)


def _is_by_proxy(scheme: str, host: str) -> bool:
    """Never to this machine itself, which no proxy can reach, though few say so in NO_PROXY."""
    is_own = host == "localhost" or host.startswith("127.") or host == "::1"
    return not is_own and scheme in urllib.request.getproxies() and not urllib.request.proxy_bypass(host)


def _without_login(url: str) -> tuple[str, dict[str, str]]:
    parts = urlsplit(url)
    login, at, place = parts.netloc.rpartition("@")
    if not at:
        return url, {}
    token = base64.b64encode(unquote(login).encode()).decode()
    return urlunsplit(parts._replace(netloc=place)), {"Authorization": f"Basic {token}"}


def _refusal(error: HTTPError) -> Unsent:
    """With the first words of the answer, which often say what is wrong."""
    with error:
        try:
            said = error.read(_TOLD_BYTES).decode("utf-8", "replace").strip()
        except (OSError, http.client.HTTPException):
            said = ""
    why = f"answers {error.code} {error.reason}" + (f": {said}" if said and not said.startswith("<") else "")
    if 300 <= error.code < 400:
        why += "; give the address that it leads to"
    is_refused = error.code < 500 and error.code not in _PASSING
    return Unsent(why, is_refused=is_refused, after=_seconds(error.headers.get("Retry-After")),
                  status=error.code)  # fmt: skip


def _seconds(text: str | None) -> float | None:
    """Retry-After is a number or a date."""
    if not text:
        return None
    try:
        found = float(text)
    except ValueError:
        try:
            found = email.utils.parsedate_to_datetime(text).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(0.0, found) if math.isfinite(found) else None


def words(error: BaseException) -> str:
    """What a person can act on."""
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, TimeoutError):
        return f"did not answer within {SOCKET_SECONDS:g} s"
    if isinstance(reason, socket.gaierror):
        return "its name is not known here"
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror.lower()
    return str(reason) or type(reason).__name__
