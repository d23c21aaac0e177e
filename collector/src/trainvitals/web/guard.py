"""What stands before every request: the Host check, basic auth, and headers that keep a page to itself.

A page on another site can make a browser send requests here under a name of its own (DNS rebinding):
only addresses, localhost and names that were allowed get an answer. Scrapers may call by any name.
"""

import ipaddress
from collections.abc import Iterable

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trainvitals.web.config import WebConfig

FOR_MACHINES = frozenset({"/metrics", "/healthz", "/api/v1/alertmanager"})
OPEN_TO_ALL = frozenset({"/healthz"})
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    def __init__(self, app: ASGIApp, config: WebConfig, allowed_hosts: Iterable[str]) -> None:
        self._app, self._config = app, config
        self._hosts = {"localhost", *(name.lower() for name in allowed_hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = await self._refusal(scope["path"], Headers(scope=scope))
        await (refusal or self._app)(scope, receive, self._with_headers(send))

    async def _refusal(self, path: str, headers: Headers) -> ASGIApp | None:
        host = headers.get("host", "")
        if path not in FOR_MACHINES and not self._knows(host):
            text = f"Host: {host!r} is not allowed: add it to TRAINVITALS_ALLOWED_HOSTS\n"
            return PlainTextResponse(text, 421)
        if path not in FOR_MACHINES and not self._is_own(headers.get("origin", ""), host):
            return PlainTextResponse("Origin: another site may not read this page\n", 403)
        if path in OPEN_TO_ALL or await self._admits(headers.get("authorization", "")):
            return None
        return PlainTextResponse("Unauthorized\n", 401, {"www-authenticate": 'Basic realm="trainvitals"'})

    async def _admits(self, authorization: str) -> bool:
        """Checked in a thread: bcrypt is slow by design."""
        return not self._config.users or await run_in_threadpool(self._config.admits, authorization)

    def _knows(self, host: str) -> bool:
        name = _without_port(host).lower()
        return name in self._hosts or _is_address(name)

    def _is_own(self, origin: str, host: str) -> bool:
        return not origin or origin.partition("://")[2].lower() == host.lower()

    def _with_headers(self, send: Send) -> Send:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS | self._config.headers)
            await send(message)

        return sending


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
