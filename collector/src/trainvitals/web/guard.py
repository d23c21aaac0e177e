"""What stands before every request: the Host check, who may look, and headers that keep a page to itself.

A page on another site can make a browser send requests here under a name of its own (DNS rebinding):
page and API answer to addresses, localhost and names that were allowed only. /metrics and /healthz answer
to any Host, for scrapers call by any name, so that such a page can read these two; what sends another
site's Origin is refused everywhere.
"""

from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trainvitals.web.access import FOR_MACHINES, Entry
from trainvitals.web.callers import Hosts, is_own
from trainvitals.web.config import WebConfig

_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    def __init__(self, app: ASGIApp, config: WebConfig, token: str, allowed_hosts: Iterable[str]) -> None:
        self._app, self._config, self._hosts = app, config, Hosts(allowed_hosts)
        self._entry = Entry(config, token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        refusal = self._stranger(scope["path"], headers) or await self._entry.refusal(scope, headers)
        await (refusal or self._app)(scope, receive, self._with_headers(send))

    def _stranger(self, path: str, headers: Headers) -> ASGIApp | None:
        host, origin = headers.get("host", ""), headers.get("origin", "")
        if path not in FOR_MACHINES and not self._hosts.knows(host):
            text = f"Host: {host!r} is not allowed: add it to TRAINVITALS_ALLOWED_HOSTS\n"
            return PlainTextResponse(text, 421)
        if origin and not is_own(origin, host):
            return PlainTextResponse("Origin: another site may not read this page\n", 403)
        return None

    def _with_headers(self, send: Send) -> Send:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS | self._config.headers)
                # A page from before an update is not to meet the API from after it.
                headers.setdefault("cache-control", "no-cache")
            await send(message)

        return sending
