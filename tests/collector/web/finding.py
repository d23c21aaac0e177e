"""An agent that has found something, and how to say over the API that one knows of it."""

import json
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from tests.collector.agent.fakes import FakeGpu, FakeSource
from tests.collector.support import wait_for
from tests.collector.web.asking import LOCAL, Answer, ask
from trainvitals.agent.service import Agent
from trainvitals.detect.engine import Engine
from trainvitals.detect.finding import Finding, Place
from trainvitals.journal import runs
from trainvitals.journal.run_files import RunFiles

JSON = {**LOCAL, "content-type": "application/json"}
PAGE = {**JSON, "origin": "http://localhost:8080", "sec-fetch-site": "same-origin", "referer": "http://localhost:8080/"}
HOT = Finding("GpuTemperatureHigh", "ticket", "the GPU is at 84 °C", value=84.0, threshold=80.0,
              place=Place(gpu="3", uuid="GPU-3"), stays=1e9)  # fmt: skip
XID = Finding("GpuXidFatal", "page", "Xid 79", place=Place(gpu="3", uuid="GPU-3"), stays=1e9)


def made(root: Path, **more: Any) -> Agent:
    """Not started: it knows what it is told."""
    (root / "gpu" / "gpu1").mkdir(parents=True, exist_ok=True)
    return Agent([FakeSource([FakeGpu(0)])], root, host="gpu1", engine=Engine(), interval=0.1, **more)


def note(agent: Agent, finding: Finding, when: float | None = None) -> None:
    """As if a detector had said so."""
    assert agent.detecting
    with agent.detecting._lock:
        engine = agent.detecting._engine
        engine.book.note(finding, agent._clock.now() if when is None else when)
        agent.detecting._report(engine.news())


def end(agent: Agent, finding: Finding) -> None:
    assert agent.detecting
    with agent.detecting._lock:
        engine = agent.detecting._engine
        engine.book.end([finding.kind], agent._clock.now(), finding.place.run)
        agent.detecting._report(engine.news())


def diverged(root: Path, run: str = "gemma") -> RunFiles:
    """A run whose loss is no number."""
    files = RunFiles(runs.claim(root, run, environ={}), run, planned_steps=1000)
    files.metrics.append({"step": 1, "loss": float("nan")})
    return files


def listed(app: ASGIApp, query: str = "", headers: dict[str, str] = LOCAL) -> list[dict[str, Any]]:
    return list(ask(app, f"/api/v1/findings{query}", headers).json()["findings"])


def post(app: ASGIApp, path: str, content: Any, headers: dict[str, str] = JSON, method: str = "POST") -> Answer:
    return ask(app, path, headers, method, content if isinstance(content, bytes) else json.dumps(content).encode())


def acknowledge(app: ASGIApp, content: Any, headers: dict[str, str] = JSON, method: str = "POST") -> Answer:
    return post(app, "/api/v1/findings/acknowledge", content, headers, method)


def silence(app: ASGIApp, **content: Any) -> Answer:
    return post(app, "/api/v1/silences", {"hours": 1, **content})


def one_of(app: ASGIApp, kind: str) -> dict[str, Any]:
    return wait_for(lambda: next((one for one in listed(app) if one["kind"] == kind), {}))
