"""Silences: of a kind, a run, a rank or a GPU nobody is told for some hours.

POST   /api/v1/silences   {"kind": "GpuTemperatureHigh", "gpu": 3, "hours": 8}   ->   {"id": "5f…", "until": "2025-…Z"}
GET    /api/v1/silences   {"silences": [{"id": "5f…", "since": …, "until": …, "state": "active", "gpu": "3", …}]}
DELETE /api/v1/silences/5f…   {"ok": true}
"""

import secrets
import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from trainvitals.agent.service import Agent
from trainvitals.agent.twins import problems
from trainvitals.detect.quieting import FIELDS, Silence
from trainvitals.journal.record import as_number, timestamp_at
from trainvitals.web.access import caller
from trainvitals.web.answers import told
from trainvitals.web.bodies import Refused, as_json, note_of, refuse_others, taken, wrong
from trainvitals.web.findings import changed

LEAST_HOURS, MOST_HOURS = 0.1, 720.0
MOST_NAME = 200


async def listed(request: Request) -> Response:
    agent: Agent = request.app.state.agent
    now = time.time()
    found = [{**one.record(), "state": "active" if one.ends() > now else "expired"}
             for one in agent.quiet.kept.silences.values()]  # fmt: skip
    return told(request, {"silences": found[::-1], "problems": problems(agent, now)})


async def silence(request: Request) -> Response:
    agent: Agent = request.app.state.agent
    try:
        one = _silence(await taken(request, (*FIELDS, "hours", "note")), caller(request))
        told = await changed(request, lambda: agent.quiet.silence(one))
        return as_json({"id": one.id, "until": one.until, **told})
    except Refused as refused:
        return refused.answer()


async def end(request: Request) -> Response:
    agent: Agent = request.app.state.agent
    name = request.path_params["id"]
    try:
        refuse_others(request)
        if name not in agent.quiet.kept.silences:
            raise wrong("id", name, "there is no silence of that id", 404)
        return as_json({"ok": True, **await changed(request, lambda: agent.quiet.forget(name))})
    except Refused as refused:
        return refused.answer()


def _silence(content: dict[str, Any], by: str) -> Silence:
    named = {name: _text(name, content[name]) for name in FIELDS if content.get(name) not in (None, "")}
    if not named:
        raise wrong("kind", None, f"give at least one of {', '.join(FIELDS)}: of all at once nothing is silenced")
    now, note = time.time(), note_of(content)
    until = timestamp_at(now + 3600 * _hours(content.get("hours")))
    return Silence(secrets.token_hex(8), timestamp_at(now), until, by, note, **named)


def _text(name: str, value: Any) -> str:
    """Ranks and GPUs may be numbers."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or len(text) > MOST_NAME:
        raise wrong(name, value, f"give a text of {MOST_NAME} characters at most")
    return text


def _hours(value: Any) -> float:
    hours = as_number(value)
    if hours is None or not LEAST_HOURS <= hours <= MOST_HOURS:
        raise wrong("hours", value, f"give a number from {LEAST_HOURS:g} to {MOST_HOURS:g}")
    return hours
