"""Alerts by way of Alertmanager's webhook, and what is known of them.

POST /api/v1/alertmanager   {"alerts": […]}  ->  {"news": 1}
GET  /api/v1/alerts         {"firing": […], "resolved": […]}

Browsers are refused: a page from elsewhere, under whatever name it calls this server, must not make alerts up.
"""

import asyncio
import time
from typing import Any

import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from trainvitals.alerting.received import MAX_BODY_BYTES, Received, parse
from trainvitals.web.waiting import in_daemon_thread

READ_SECONDS = 10.0
SHOWN_FIRING, SHOWN_RESOLVED = 50, 10
_OF_BROWSERS = ("origin", "referer", "sec-fetch-site", "cookie")


class Refused(Exception):
    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


async def take(request: Request) -> Response:
    received: Received = request.app.state.alerts
    try:
        _refuse_browsers(request)
        alerts = parse(await _body(request))
    except Refused as error:
        return _json({"error": str(error)}, error.status)
    except ValueError as error:
        return _json({"error": str(error)}, 400)
    # One after the other: where the disk hangs, threads must not pile up.
    async with request.app.state.taking:
        return _json({"news": await in_daemon_thread(lambda: received.take(alerts, time.time()))})


async def listed(request: Request) -> Response:
    return _json(request.app.state.alerts.view(time.time()))


def brief(received: Received) -> dict[str, Any]:
    """What goes along with each snapshot."""
    known = received.view(time.time())
    return {"firing_count": len(known["firing"]), "firing": known["firing"][:SHOWN_FIRING],
            "resolved": known["resolved"][:SHOWN_RESOLVED]}  # fmt: skip


def _refuse_browsers(request: Request) -> None:
    if any(name in request.headers for name in _OF_BROWSERS):
        raise Refused(403, "browsers may not post alerts")
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "content-type: application/json is wanted")


async def _body(request: Request) -> bytes:
    try:
        return await asyncio.wait_for(_read(request), READ_SECONDS)
    except asyncio.TimeoutError as error:
        raise Refused(408, f"the body did not come within {READ_SECONDS:g} s") from error
    except ClientDisconnect as error:
        raise Refused(400, "the sender left") from error


async def _read(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            raise Refused(413, f"{MAX_BODY_BYTES} bytes are taken at most")
    return body


def _json(content: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(content), status, {"cache-control": "no-store"}, "application/json")
