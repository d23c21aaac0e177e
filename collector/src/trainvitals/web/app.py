"""The application: every answer is made from the agent's snapshot, history or journal; nothing is changed.

GET /                   the page                     GET /api/v1/snapshot   everything known now
GET /metrics            for Prometheus               GET /api/v1/history    a GPU's field over time
GET /healthz            200, or 503 and why          GET /api/v1/stream     a snapshot a tick, as events
"""

import asyncio
import gzip
import time
from collections.abc import AsyncIterator, Iterable
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
from trainvitals.model import Snapshot
from trainvitals.web import views
from trainvitals.web.config import WebConfig
from trainvitals.web.guard import Guard

STATIC = Path(__file__).parent / "static"
GZIP_LEVEL = 1
KEEP_ALIVE_SECONDS = 15.0


def make_app(agent: Agent, config: WebConfig | None = None, allowed_hosts: Iterable[str] = ()) -> Starlette:
    routes = [
        Route("/", page),
        Route("/metrics", metrics),
        Route("/healthz", healthz),
        Route("/api/v1/snapshot", snapshot),
        Route("/api/v1/history", history),
        Route("/api/v1/stream", stream),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    guard = Middleware(Guard, config=config or WebConfig(), allowed_hosts=list(allowed_hosts))
    app = Starlette(routes=routes, middleware=[guard])
    app.state.agent = agent
    return app


async def page(request: Request) -> Response:
    return FileResponse(STATIC / "index.html")


async def metrics(request: Request) -> Response:
    body, content_type = exporter.render(request.app.state.agent.snapshot, request.headers.get("accept", ""))
    headers = {"vary": "Accept, Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        body = gzip.compress(body, GZIP_LEVEL)
        headers["content-encoding"] = "gzip"
    return Response(body, headers=headers, media_type=content_type)


async def healthz(request: Request) -> Response:
    problems = request.app.state.agent.health()
    return PlainTextResponse("\n".join(problems or ["ok"]) + "\n", 503 if problems else 200)


async def snapshot(request: Request) -> Response:
    return _json(_whole(request.app.state.agent))


def history(request: Request) -> Response:
    """Runs in a thread of its own: what is not in memory is read from the journal."""
    try:
        asked = query.parse(request.query_params, time.time())
    except ValueError as error:
        return _json({"error": str(error)}, 400)
    return _json(query.history(request.app.state.agent, asked))


async def stream(request: Request) -> Response:
    return StreamingResponse(_events(request.app.state.agent), media_type="text/event-stream",
                             headers={"cache-control": "no-store"})  # fmt: skip


async def _events(agent: Agent) -> AsyncIterator[bytes]:
    """One event a snapshot; a reader that falls behind misses the ones between."""
    loop, newest = asyncio.get_running_loop(), asyncio.Event()

    def tell(_: Snapshot) -> None:
        loop.call_soon_threadsafe(newest.set)

    agent.listeners.append(tell)
    try:
        while True:
            yield b"data: " + orjson.dumps(_whole(agent)) + b"\n\n"
            newest.clear()
            while not await _set_within(newest, KEEP_ALIVE_SECONDS):
                yield b": still here\n\n"
    finally:
        agent.listeners.remove(tell)


async def _set_within(event: asyncio.Event, timeout: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), timeout)
    except asyncio.TimeoutError:
        return False
    return True


def _whole(agent: Agent) -> dict[str, Any]:
    return {
        "version": trainvitals.__version__,
        "node": agent.host,
        "interval": agent.interval,
        "problems": agent.health(),
        **views.snapshot_view(agent.snapshot, agent.sources),
    }


def _json(content: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(content), status, {"cache-control": "no-store"}, "application/json")
