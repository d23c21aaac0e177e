"""The runs of the journal: their curves, what happened in them, what each rank does with its time.

GET /api/v1/runs?limit=100
GET /api/v1/runs/gemma/series?fields=loss,learning_rate&rank=0&x=step&from=&to=&points=1000&digits=4
GET /api/v1/runs/gemma/events?limit=1000
GET /api/v1/runs/gemma/ranks?last=100
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from trainvitals.agent import run_events, run_list
from trainvitals.agent.axis import AXES
from trainvitals.agent.indexing import Busy
from trainvitals.agent.query import moment, whole_number
from trainvitals.agent.rank_times import rank_times
from trainvitals.agent.series import Asked, series
from trainvitals.agent.service import Agent
from trainvitals.agent.shortened import MAX_DIGITS, shortened
from trainvitals.journal import layout
from trainvitals.journal.index import Block
from trainvitals.web.answers import from_disk

DEFAULT_RUNS, MAX_RUNS = 100, 1000
DEFAULT_POINTS, MAX_POINTS = 1000, 4000
DEFAULT_EVENTS, MAX_EVENTS = 1000, 10_000
DEFAULT_STEPS, MAX_STEPS = 100, 1000
MAX_FIELDS = 100
MAX_RANK = 999_999


async def listed(request: Request) -> Response:
    agent, asked = request.app.state.agent, request.query_params.get("limit")

    def work() -> dict[str, Any]:
        limit = whole_number(asked, "limit", DEFAULT_RUNS, 1, MAX_RUNS)
        states = {state.run: state for state in agent.runs.states()}
        return run_list.listing(agent.root, agent.host, states, limit)

    return await from_disk(request, work)


async def curves(request: Request) -> Response:
    agent, run, parameters = request.app.state.agent, request.path_params["run"], request.query_params

    def work() -> dict[str, Any]:
        asked, folder = _asked(parameters), run_list.find(agent.root, run)
        rank = whole_number(parameters.get("rank"), "rank", _first_rank(folder), 0, MAX_RANK)
        digits = whole_number(parameters.get("digits"), "digits", MAX_DIGITS, 1, MAX_DIGITS)
        told = series(folder, agent.indexing.view(run, rank), asked, run_list.began(folder))
        fields = {name: shortened(columns, digits) for name, columns in told["fields"].items()}
        return {"run": run, "rank": rank, **told, "fields": fields}

    return await from_disk(request, work)


async def events(request: Request) -> Response:
    agent, run, asked = request.app.state.agent, request.path_params["run"], request.query_params.get("limit")

    def work() -> dict[str, Any]:
        limit = whole_number(asked, "limit", DEFAULT_EVENTS, 1, MAX_EVENTS)
        folder = run_list.find(agent.root, run)
        return {"run": run, **run_events.events(folder, lambda: _blocks(agent, folder), limit)}

    return await from_disk(request, work)


def _blocks(agent: Agent, folder: Path) -> Sequence[Block]:
    """Of the first rank, as far as they are there: marks are not waited for."""
    with suppress(Busy):
        return agent.indexing.view(folder.name, _first_rank(folder), seconds=0.0).blocks
    return ()


def _first_rank(folder: Path) -> int:
    """On a run's other nodes rank 0 is not."""
    return min(layout.training_files(folder), default=0)


async def ranks(request: Request) -> Response:
    agent, run, asked = request.app.state.agent, request.path_params["run"], request.query_params.get("last")

    def work() -> dict[str, Any]:
        last = whole_number(asked, "last", DEFAULT_STEPS, 1, MAX_STEPS)
        return {"run": run, **rank_times(run_list.find(agent.root, run), last, agent.runs.gpu_by_uuid)}

    return await from_disk(request, work)


def _asked(parameters: QueryParams) -> Asked:
    x = parameters.get("x", "step")
    if x not in AXES:
        raise ValueError(f"x: {x!r} cannot be used: give one of {', '.join(AXES)}")
    start, end = (place(parameters.get(name), name, x) for name in ("from", "to"))
    if start is not None and end is not None and start > end:
        raise ValueError(f"from: {start:g} cannot be used: give a place before `to`")
    return Asked(_fields(parameters), x, start, end,
                 whole_number(parameters.get("points"), "points", DEFAULT_POINTS, 1, MAX_POINTS))  # fmt: skip


def _fields(parameters: QueryParams) -> tuple[str, ...]:
    """`fields=a,b`, and `field=` for a name with a comma in it."""
    names = [name for name in parameters.get("fields", "").split(",") if name] + parameters.getlist("field")
    if len(names) > MAX_FIELDS:
        raise ValueError(f"fields: {len(names)} of them cannot be used: ask for {MAX_FIELDS} at most")
    return tuple(dict.fromkeys(names)) or ("loss",)


def place(text: str | None, name: str, x: str) -> float | None:
    """In units of the axis; a time may be one in words, too."""
    if text is None or text == "":
        return None
    if x == "time":
        return moment(text, name)
    try:
        place = float(text)
    except ValueError:
        place = float("nan")
    if not abs(place) < 1e18:
        raise ValueError(f"{name}: {text!r} cannot be used: give a number of the axis {x}")
    return place
