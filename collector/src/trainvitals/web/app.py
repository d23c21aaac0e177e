"""The application: every answer is made from the agent's snapshot, history or journal. What changes anything is the
word of Alertmanager, which the event file keeps, and that somebody knows of a finding or wants to hear no more of it.

GET /                   the page                     GET /api/v1/snapshot   everything known now
GET /metrics            for Prometheus               GET /api/v1/stream     a snapshot a tick, as events
GET /healthz            200, or 503 and why          GET /api/v1/node       GPUs and host over time
GET /api/v1/runs        runs, and their curves       GET /api/v1/export     both, to keep
GET /api/v1/alerts      firing and lately resolved   POST /api/v1/alertmanager   what Alertmanager says of them
GET /api/v1/findings    open and past                POST, DELETE /api/v1/findings/acknowledge
GET /api/v1/silences    what is silenced             POST /api/v1/silences       DELETE /api/v1/silences/ID
"""

import asyncio
import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

import trainvitals
from trainvitals import exporter
from trainvitals.agent.findings import Findings
from trainvitals.agent.service import Agent
from trainvitals.agent.verdict_words import verdict
from trainvitals.alerting.received import Received
from trainvitals.journal import layout
from trainvitals.journal.node_events import read_events
from trainvitals.web import alerts, export, findings, node, runs, silences, views
from trainvitals.web.answers import as_json, told
from trainvitals.web.config import WebConfig
from trainvitals.web.guard import Guard
from trainvitals.web.static_files import PackedFiles, takes_gzip
from trainvitals.web.stream import Streams

STATIC = Path(__file__).parent / "static"
FILES = PackedFiles(directory=STATIC)
GZIP_LEVEL = 1
MAX_QUERIES = 2


def make_app(agent: Agent, config: WebConfig | None = None, allowed_hosts: Iterable[str] = (), *,
             token: str = "") -> Starlette:  # fmt: skip
    routes = [
        Route("/", page),
        Route("/metrics", metrics),
        Route("/healthz", healthz),
        Route("/api/v1/snapshot", snapshot),
        Route("/api/v1/node", node.node),
        Route("/api/v1/export", export.export),
        Route("/api/v1/stream", stream),
        Route("/api/v1/alerts", alerts.listed),
        Route("/api/v1/runs", runs.listed),
        Route("/api/v1/runs/{run}/series", runs.curves),
        Route("/api/v1/runs/{run}/events", runs.events),
        Route("/api/v1/runs/{run}/ranks", runs.ranks),
        Route("/api/v1/alertmanager", alerts.take, methods=["POST"]),
        Route("/api/v1/findings", findings.listed),
        Route("/api/v1/findings/acknowledge", findings.acknowledge, methods=["POST"]),
        Route("/api/v1/findings/acknowledge", findings.unacknowledge, methods=["DELETE"]),
        Route("/api/v1/silences", silences.listed),
        Route("/api/v1/silences", silences.silence, methods=["POST"]),
        Route("/api/v1/silences/{id}", silences.end, methods=["DELETE"]),
        Mount("/static", FILES),
    ]
    guard = Middleware(Guard, config=config or WebConfig(), token=token, allowed_hosts=list(allowed_hosts))
    app = Starlette(routes=routes, middleware=[guard])
    app.state.agent = agent
    app.state.alerts = received = Received(agent.keep, read_events(layout.gpu_folder(agent.root, agent.host)))
    agent.received, app.state.findings = received, Findings(agent)
    app.state.taking, app.state.changing = asyncio.Semaphore(1), asyncio.Semaphore(1)
    app.state.streams = Streams(agent, lambda: orjson.dumps(_whole(agent, received)))
    app.state.queries = asyncio.Semaphore(MAX_QUERIES)
    app.state.exports = asyncio.Semaphore(export.MAX_EXPORTS)
    return app


async def page(request: Request) -> Response:
    return await FILES.get_response("index.html", request.scope)


async def metrics(request: Request) -> Response:
    body, content_type = exporter.render(request.app.state.agent.snapshot, request.headers.get("accept", ""))
    headers = {"vary": "Accept, Accept-Encoding"}
    if takes_gzip(request.headers.get("accept-encoding", "")):
        body = gzip.compress(body, GZIP_LEVEL)
        headers["content-encoding"] = "gzip"
    return Response(body, headers=headers, media_type=content_type)


async def healthz(request: Request) -> Response:
    problems = request.app.state.agent.health()
    return PlainTextResponse("\n".join(problems or ["ok"]) + "\n", 503 if problems else 200)


async def snapshot(request: Request) -> Response:
    return told(request, _whole(request.app.state.agent, request.app.state.alerts))


async def stream(request: Request) -> Response:
    streams: Streams = request.app.state.streams
    if streams.is_full:
        return as_json({"error": "too many read the stream: ask again when one has left"}, 503)
    events = streams.events() if request.method == "GET" else ()
    return StreamingResponse(events, media_type="text/event-stream", headers={"cache-control": "no-store"})


def _whole(agent: Agent, received: Received) -> dict[str, Any]:
    view = {
        "version": trainvitals.__version__,
        "node": agent.host,
        "interval": agent.interval,
        "problems": agent.health(),
        "alerts": alerts.brief(agent, received),
        **views.snapshot_view(agent.snapshot, agent.sources),
    }
    return {**view, "verdict": verdict(view)}
