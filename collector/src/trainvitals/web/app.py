"""The application: every answer is made from the agent's snapshot, history or journal. What changes anything is the
word of Alertmanager alone, which the event file keeps.

GET /                   the page                     GET /api/v1/snapshot   everything known now
GET /metrics            for Prometheus               GET /api/v1/history    a GPU's field over time
GET /healthz            200, or 503 and why          GET /api/v1/stream     a snapshot a tick, as events
GET /api/v1/alerts      firing and lately resolved   POST /api/v1/alertmanager   what Alertmanager says of them
"""

import asyncio
import gzip
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

import trainvitals
from trainvitals import exporter
from trainvitals.agent import query
from trainvitals.agent.service import Agent
from trainvitals.alerting.received import Received
from trainvitals.journal import layout
from trainvitals.journal.node_events import read_events
from trainvitals.web import alerts, views
from trainvitals.web.config import WebConfig
from trainvitals.web.guard import Guard
from trainvitals.web.stream import Streams
from trainvitals.web.waiting import in_daemon_thread

STATIC = Path(__file__).parent / "static"
GZIP_LEVEL = 1
MAX_QUERIES = 2
_REFUSED = re.compile(r"q=0(\.0*)?")


def make_app(agent: Agent, config: WebConfig | None = None, allowed_hosts: Iterable[str] = ()) -> Starlette:
    routes = [
        Route("/", page),
        Route("/metrics", metrics),
        Route("/healthz", healthz),
        Route("/api/v1/snapshot", snapshot),
        Route("/api/v1/history", history),
        Route("/api/v1/stream", stream),
        Route("/api/v1/alerts", alerts.listed),
        Route("/api/v1/alertmanager", alerts.take, methods=["POST"]),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    guard = Middleware(Guard, config=config or WebConfig(), allowed_hosts=list(allowed_hosts))
    app = Starlette(routes=routes, middleware=[guard])
    app.state.agent = agent
    app.state.alerts = received = Received(agent.keep, read_events(layout.gpu_folder(agent.root, agent.host)))
    app.state.taking = asyncio.Semaphore(1)
    app.state.streams = Streams(agent, lambda: orjson.dumps(_whole(agent, received)))
    app.state.queries = asyncio.Semaphore(MAX_QUERIES)
    return app


async def page(request: Request) -> Response:
    return FileResponse(STATIC / "index.html")


async def metrics(request: Request) -> Response:
    body, content_type = exporter.render(request.app.state.agent.snapshot, request.headers.get("accept", ""))
    headers = {"vary": "Accept, Accept-Encoding"}
    if _takes_gzip(request.headers.get("accept-encoding", "")):
        body = gzip.compress(body, GZIP_LEVEL)
        headers["content-encoding"] = "gzip"
    return Response(body, headers=headers, media_type=content_type)


async def healthz(request: Request) -> Response:
    problems = request.app.state.agent.health()
    return PlainTextResponse("\n".join(problems or ["ok"]) + "\n", 503 if problems else 200)


async def snapshot(request: Request) -> Response:
    return _json(_whole(request.app.state.agent, request.app.state.alerts))


async def history(request: Request) -> Response:
    """What is not in memory is read from the journal, for few at a time."""
    state = request.app.state
    try:
        asked = query.parse(request.query_params, time.time())
    except ValueError as error:
        return _json({"error": str(error)}, 400)
    async with state.queries:
        return _json(await in_daemon_thread(lambda: query.history(state.agent, asked)))


async def stream(request: Request) -> Response:
    events = request.app.state.streams.events() if request.method == "GET" else ()
    return StreamingResponse(events, media_type="text/event-stream", headers={"cache-control": "no-store"})


def _takes_gzip(accepted: str) -> bool:
    for part in accepted.lower().split(","):
        coding, _, weight = part.partition(";")
        if coding.strip() == "gzip":
            return not _REFUSED.fullmatch(weight.strip())
    return False


def _whole(agent: Agent, received: Received) -> dict[str, Any]:
    return {
        "version": trainvitals.__version__,
        "node": agent.host,
        "interval": agent.interval,
        "problems": agent.health(),
        "alerts": alerts.brief(received),
        **views.snapshot_view(agent.snapshot, agent.sources),
    }


def _json(content: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(content), status, {"cache-control": "no-store"}, "application/json")
