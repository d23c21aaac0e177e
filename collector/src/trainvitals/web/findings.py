"""Findings, and the word that somebody has seen one.

GET    /api/v1/findings?limit=200&state=open|past|all   {"findings": [{"id": …, "kind": …, "acknowledged": null, …}], …}
POST   /api/v1/findings/acknowledge   {"id": "5f…", "note": "replaced tomorrow"}   ->   {"ok": true, "kept": true}
DELETE /api/v1/findings/acknowledge   {"id": "5f…"}                                ->   the same, taken back
"""

import time
from collections.abc import Callable
from typing import Any

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from trainvitals.agent.quiet import TooMany
from trainvitals.agent.service import Agent
from trainvitals.agent.twins import others, problems
from trainvitals.alerting.received import identity
from trainvitals.detect.quieting import Acknowledgement, Covered, identity_of
from trainvitals.journal.record import timestamp_at
from trainvitals.web.access import caller
from trainvitals.web.answers import from_disk, told
from trainvitals.web.bodies import Refused, as_json, note_of, taken, wrong
from trainvitals.web.waiting import in_daemon_thread

STATES = ("open", "past", "all")
LIMIT, MOST = 200, 1000
# Of what follows from a finding so much is acknowledged with it.
MOST_COVERED = 50


async def listed(request: Request) -> Response:
    state, now = request.app.state, time.time()
    try:
        asked, limit = _asked(request.query_params)
    except Refused as refused:
        return refused.answer()

    def work() -> dict[str, Any]:
        return {**state.findings.listed(asked, limit, now), "problems": problems(state.agent, now)}

    # What is open stands in no file: it is told though the disk hangs.
    return told(request, work()) if asked == "open" else await from_disk(request, work)


def _asked(parameters: QueryParams) -> tuple[str, int]:
    state, limit = parameters.get("state", "all"), parameters.get("limit", str(LIMIT))
    if state not in STATES:
        raise wrong("state", state, f"choose one of {', '.join(STATES)}")
    if not (limit.isascii() and limit.isdigit() and len(limit) < 9 and 1 <= int(limit) <= MOST):
        raise wrong("limit", limit, f"give a whole number from 1 to {MOST}")
    return state, int(limit)


async def acknowledge(request: Request) -> Response:
    agent: Agent = request.app.state.agent
    try:
        name, note = _named(await taken(request, ("id", "note")))
        by = caller(request)
        return as_json({"ok": True, **await changed(request, lambda: _acknowledge(agent, name, by, note))})
    except Refused as refused:
        return refused.answer()


async def unacknowledge(request: Request) -> Response:
    agent: Agent = request.app.state.agent
    try:
        name, _ = _named(await taken(request, ("id", "note")))
        if name not in agent.quiet.kept.acknowledged:
            raise wrong("id", name, "nobody acknowledged a finding of that id", 404)
        return as_json({"ok": True, **await changed(request, lambda: agent.quiet.forget(name))})
    except Refused as refused:
        return refused.answer()


async def changed(request: Request, change: Callable[[], str]) -> dict[str, Any]:
    """What became of it: it holds at once, and where it is not on the disk yet that is said. One after the other: where
    the disk hangs, threads must not pile up."""
    async with request.app.state.changing:
        try:
            problem = await in_daemon_thread(change)
        except TooMany as error:
            raise Refused(409, str(error)) from None
        except KeyError as error:
            raise wrong("id", error.args[0], "it is there no more", 404) from None
    return {"kept": not problem, **({"problem": f"{problem}: it holds until the agent ends"} if problem else {})}


def _named(content: dict[str, Any]) -> tuple[str, str]:
    name = content.get("id")
    if not isinstance(name, str) or not name:
        raise wrong("id", name, "give a finding's id")
    return name, note_of(content)


def _acknowledge(agent: Agent, name: str, by: str, note: str) -> str:
    now = time.time()
    for change in agent.open():
        if identity_of(change) == name:
            known = (change.finding, *change.evidence[: MOST_COVERED - 1])
            covers = tuple(Covered(one.kind, one.severity, one.place) for one in known)
            one = Acknowledgement(name, timestamp_at(change.opened), timestamp_at(now), by, note, covers)
            return agent.quiet.acknowledge(one)
    for alert in others(agent, now):
        if identity(alert) == name:
            return agent.quiet.acknowledge(Acknowledgement(name, alert["starts"], timestamp_at(now), by, note))
    raise wrong("id", name, "no finding of that id is open", 404)
