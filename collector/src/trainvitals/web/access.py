"""Who may look: users of the web configuration, and whoever bears the token.

access = choose(settings, environ)      ->   Access(config, token, is_made=True), where nobody would have been asked
GET /?token=TOKEN&view=alerts           ->   a cookie, and on to /?view=alerts
Authorization: Bearer TOKEN             ->   let in, as a program that keeps no cookies

A cookie is of a host, whatever the port: its name has the port, so that agents on one machine keep theirs apart, and
its value is not the token itself, for other programs on that machine are shown it.
"""

import hashlib
import hmac
import html
import ipaddress
import re
import secrets
import socket
from base64 import b64decode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_plus

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import Scope

from trainvitals.alerting.channels import HIDDEN
from trainvitals.config import SETTINGS
from trainvitals.errors import SettingError
from trainvitals.notify.settings import with_files
from trainvitals.web import config as web_config
from trainvitals.web.config import WebConfig
from trainvitals.web.server import resolve

FOR_MACHINES = frozenset({"/metrics", "/healthz", "/api/v1/alertmanager"})
OPEN_TO_ALL = frozenset({"/healthz"})
NONE = "none"
COOKIE = "trainvitals"
COOKIE_SECONDS = 30 * 86400
_KEY = f"{SETTINGS['token'].flag} ({SETTINGS['token'].variable})"
_TOKEN = re.compile(r"[A-Za-z0-9._~-]{16,512}")
_FIX = "give 16 letters, digits, - and _ or more, such as `openssl rand -hex 32` prints, or none"
# Of nobody: it names the way out.
_ELSEWHERE = ("192.0.2.1", 9)
_PORT = re.compile(r":(\d{1,5})\Z", re.ASCII)
_UNAUTHORIZED = "Unauthorized\n"
_WANTS_TOKEN = (
    "Unauthorized: this page wants a token. Open the link to it, which ends in /?token=…, or send the header\n"
    "Authorization: Bearer and the token. A link was printed where the agent was started, or somebody set the token.\n"
)
_WRONG_TOKEN = "Unauthorized: the token in this link is not, or no longer, that of the agent.\n"


@dataclass(frozen=True, slots=True)
class Access:
    config: WebConfig = field(default_factory=WebConfig)
    token: str = field(default="", repr=False)
    # Nobody gave one: the link is to be told.
    is_made: bool = False
    # Whoever reaches the address may look.
    is_open: bool = False


def choose(settings: Mapping[str, Any], environ: Mapping[str, str]) -> Access:
    """SettingError where the token or the web configuration cannot be used; it shows no token."""
    config, given = web_config.load(settings["web_config"]), _given(settings["token"], environ)
    is_near = ipaddress.ip_address(resolve(settings["host"], 0)[1][0].partition("%")[0]).is_loopback
    if given and given != NONE and not _TOKEN.fullmatch(given):
        raise SettingError(_KEY, HIDDEN, _FIX)
    if given or is_near or config.users:
        token = "" if given == NONE else given
        return Access(config, token, is_open=not (is_near or config.users or token))
    if settings["log_format"] == "json":
        fix = f"{_FIX}: one that is made here would stand in the log, which is JSON"
        raise SettingError(_KEY, "", fix)
    return Access(config, secrets.token_urlsafe(32), is_made=True)


def _given(token: str, environ: Mapping[str, str]) -> str:
    """A flag before all; and `none` in the environment stands for what no file names."""
    name = SETTINGS["token"].variable
    if token and token != environ.get(name):
        return token
    known = {key: value for key, value in environ.items() if (key, value) != (name, NONE)}
    return with_files(known, (name,)).get(name) or token


def addresses(listening: socket.socket, access: Access) -> dict[str, Any]:
    """What the words at the start say of where the page is."""
    host, port = listening.getsockname()[:2]
    link = f"{_address(access, _reached(host), port)}/?token={access.token}" if access.is_made else ""
    return {"address": _address(access, host, port), "link": link, "is_open": access.is_open}


def _address(access: Access, host: str, port: int) -> str:
    return f"{'https' if access.config.tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def _reached(host: str) -> str:
    """What listens on every address is called by the one that this machine is known by; nothing is sent."""
    if not ipaddress.ip_address(host).is_unspecified:
        return host
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking, suppress(OSError):
        asking.connect(_ELSEWHERE)
        return str(asking.getsockname()[0])
    return host


class Entry:
    """Stands before the pages. /metrics and Alertmanager's way in ask for a user, where there are such, and for no
    token: what scrapes by address alone goes on."""

    def __init__(self, config: WebConfig, token: str) -> None:
        self._config, self._token = config, token
        self._session = hmac.digest(token.encode(), b"cookie", "sha256").hex()

    async def refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """What is answered in the page's place; None lets in."""
        if scope["path"] == "/" and scope["method"] in ("GET", "HEAD"):
            given, rest = _token_of(scope["query_string"].decode("latin-1"))
            if given is not None:
                return await self._by_link(scope, headers, given, rest)
        return None if await self._admits(scope, headers) else self._refused(scope, headers)

    async def _by_link(self, scope: Scope, headers: Headers, given: str, rest: str) -> Response:
        is_right = bool(self._token) and _is_same(given, self._token)
        if not is_right and not await self._admits(scope, headers):
            return PlainTextResponse(_WRONG_TOKEN, 401, self._challenge())
        answer = Response(None, 303, {"location": f"/?{rest}" if rest else "/", "cache-control": "no-store"})
        if is_right:
            answer.set_cookie(_cookie_name(headers), self._session, COOKIE_SECONDS, httponly=True, samesite="strict",
                              secure=scope["scheme"] == "https")  # fmt: skip
        return answer

    async def _admits(self, scope: Scope, headers: Headers) -> bool:
        users = bool(self._config.users)
        if scope["path"] in OPEN_TO_ALL or not (users or self._token):
            return True
        if self._token and (self._has_cookie(headers) or self._bears(headers)):
            return True
        if users:
            return await self._is_user(scope, headers.get("authorization", ""))
        return scope["path"] in FOR_MACHINES

    def _has_cookie(self, headers: Headers) -> bool:
        name = _cookie_name(headers)
        pairs = (pair.strip().partition("=") for line in headers.getlist("cookie") for pair in line.split(";"))
        return any(key == name and _is_same(value, self._session) for key, _, value in pairs)

    def _bears(self, headers: Headers) -> bool:
        scheme, _, value = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and _is_same(value.strip(), self._token)

    async def _is_user(self, scope: Scope, authorization: str) -> bool:
        """In a thread where bcrypt must be asked."""
        admitted = self._config.has_admitted(authorization) or await run_in_threadpool(
            self._config.admits, authorization
        )
        if admitted:
            scope["user"] = b64decode(authorization.partition(" ")[2]).decode().partition(":")[0]
        return admitted

    def _refused(self, scope: Scope, headers: Headers) -> Response:
        if self._config.users:
            return PlainTextResponse(_UNAUTHORIZED, 401, self._challenge())
        if scope["path"] == "/" and headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            return HTMLResponse(_once_more(scope), 401, self._challenge())
        return PlainTextResponse(_WANTS_TOKEN, 401, self._challenge())

    def _challenge(self) -> dict[str, str]:
        scheme = "Basic" if self._config.users else "Bearer"
        return {"www-authenticate": f'{scheme} realm="trainvitals"', "cache-control": "no-store"}


def caller(request: Request) -> str:
    """The user, or where the request comes from, for what is to bear a name."""
    return str(request.scope.get("user") or (request.client.host if request.client else ""))


def _once_more(scope: Scope) -> str:
    """Who follows a link in another site's page, as a mail's, brings no strict cookie along; the page itself does."""
    where = html.escape(f"/?{scope['query_string'].decode('latin-1')}")
    return f'<!doctype html><meta http-equiv="refresh" content="0;url={where}"><pre>{html.escape(_WANTS_TOKEN)}</pre>'


def _token_of(query: str) -> tuple[str | None, str]:
    """The token in a query, and the query without it."""
    parts = query.split("&")
    given = [part for part in parts if part.startswith("token=")]
    rest = "&".join(part for part in parts if part not in given)
    return (unquote_plus(given[0].removeprefix("token=")) if given else None), rest


def _cookie_name(headers: Headers) -> str:
    found = _PORT.search(headers.get("host", ""))
    return f"{COOKIE}-{found[1]}" if found else COOKIE


def _is_same(given: str, secret: str) -> bool:
    """In a time that tells nothing of the secret, its length neither."""
    return hmac.compare_digest(*(hashlib.sha256(one.encode("utf-8", "replace")).digest() for one in (given, secret)))
