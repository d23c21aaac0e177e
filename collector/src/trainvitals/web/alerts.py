"""Alerts by way of Alertmanager's webhook, and what is known of them.

POST /api/v1/alertmanager   {"alerts": […]}  ->  {"news": 1}
GET  /api/v1/alerts         {"firing": […], "resolved": […]}

Browsers are refused: a page from elsewhere, under whatever name it calls this server, must not make alerts up.
"""

import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from trainvitals.agent.ended import ended_runs
from trainvitals.agent.service import Agent
from trainvitals.agent.twins import others, problems
from trainvitals.alerting.listing import beside
from trainvitals.alerting.received import MAX_BODY_BYTES, Alert, Received, identity, parse
from trainvitals.alerting.rows import grouped
from trainvitals.web.answers import told
from trainvitals.web.bodies import OF_BROWSERS, Refused, as_json, body, refuse_other_types
from trainvitals.web.waiting import in_daemon_thread

SHOWN_FIRING, SHOWN_RESOLVED = 50, 10


async def take(request: Request) -> Response:
    received: Received = request.app.state.alerts
    try:
        _refuse_browsers(request)
        alerts = parse(await body(request, MAX_BODY_BYTES))
    except Refused as error:
        return error.answer()
    except ValueError as error:
        return as_json({"error": str(error)}, 400)
    # One after the other: where the disk hangs, threads must not pile up.
    async with request.app.state.taking:
        return as_json({"news": await in_daemon_thread(lambda: received.take(alerts, time.time()))})


async def listed(request: Request) -> Response:
    return told(request, request.app.state.alerts.view(time.time()))


def brief(agent: Agent, received: Received) -> dict[str, Any]:
    """What goes along with each snapshot: rows for people; `listed` has each alert by itself. What this agent found
    Alertmanager, which may have heard of it, need not say too."""
    now, own = time.time(), agent.detecting.alerts() if agent.detecting else []
    rest = {identity(one): one for one in others(agent, now)}
    found = beside(own, list(rest.values()), ended_runs(agent))
    firing = [agent.quiet.marked(one, one.get("id") or identity(one)) for one in found]
    resolved = [one for one in received.view(now)["resolved"] if identity(one) not in rest]
    rows = grouped(firing)
    return {"firing_count": len(firing), "heard_count": sum(map(_is_heard, rows)), "firing": rows[:SHOWN_FIRING],
            "resolved": grouped(resolved)[:SHOWN_RESOLVED], "problems": problems(agent, now)}  # fmt: skip


def _is_heard(row: Alert) -> bool:
    """As the verdict has it."""
    return not row["silenced"] and row["labels"].get("severity") in ("page", "ticket")


def _refuse_browsers(request: Request) -> None:
    if any(name in request.headers for name in OF_BROWSERS):
        raise Refused(403, "browsers may not post alerts")
    refuse_other_types(request)
