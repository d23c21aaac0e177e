"""What stands before every request: the Host check, basic auth, and headers that keep a page to itself.

A page on another site can make a browser send requests here under a name of its own (DNS rebinding):
page and API answer to addresses, localhost and names that were allowed only. /metrics and /healthz answer
to any Host, for scrapers call by any name, so that such a page can read these two; what sends another
site's Origin is refused everywhere.
"""

from collections.abc import Iterable

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trainvitals.web.callers import Hosts, is_own
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
        self._app, self._config, self._hosts = app, config, Hosts(allowed_hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = await self._refusal(scope["path"], Headers(scope=scope))
        await (refusal or self._app)(scope, receive, self._with_headers(send))

    async def _refusal(self, path: str, headers: Headers) -> ASGIApp | None:
        host, origin = headers.get("host", ""), headers.get("origin", "")
        if path not in FOR_MACHINES and not self._hosts.knows(host):
            text = f"Host: {host!r} is not allowed: add it to TRAINVITALS_ALLOWED_HOSTS\n"
            return PlainTextResponse(text, 421)
        if origin and not is_own(origin, host):
            return PlainTextResponse("Origin: another site may not read this page\n", 403)
        if path in OPEN_TO_ALL or await self._admits(headers.get("authorization", "")):
            return None
        return PlainTextResponse("Unauthorized\n", 401, {"www-authenticate": 'Basic realm="trainvitals"'})

    async def _admits(self, authorization: str) -> bool:
        """In a thread where bcrypt must be asked."""
        if not self._config.users or self._config.has_admitted(authorization):
            return True
        return await run_in_threadpool(self._config.admits, authorization)

    def _with_headers(self, send: Send) -> Send:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS | self._config.headers)
                # A page from before an update is not to meet the API from after it.
                headers.setdefault("cache-control", "no-cache")
            await send(message)

        return sending
