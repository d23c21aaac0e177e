"""Downloads: a run, or GPUs and host over time, as a file to keep; made as it is sent, so that it may be of any length.

GET /api/v1/export?run=gemma&rank=0&x=step&from=100&to=200&format=csv
GET /api/v1/export?gpus=all&host=1&from=2025-07-30T12:00:00Z&to=…&format=parquet
"""

import asyncio
import logging
import re
import time
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import NamedTuple
from urllib.parse import quote

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from trainvitals.agent import query, run_list
from trainvitals.agent.export_forms import FORMS, begun
from trainvitals.agent.export_rows import Range, Rows, node_rows, run_parts, run_rows
from trainvitals.agent.query import whole_number
from trainvitals.agent.service import Agent
from trainvitals.journal import layout
from trainvitals.web.answers import refused, unread
from trainvitals.web.runs import MAX_RANK, place
from trainvitals.web.waiting import in_daemon_thread

MAX_EXPORTS = 2
# A reader that takes nothing for so long has gone.
SEND_SECONDS = 60.0
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_MAX_NAME = 80

log = logging.getLogger("trainvitals.web")


class Prepared(NamedTuple):
    name: str
    media_type: str
    chunks: Iterator[bytes]


async def export(request: Request) -> Response:
    slots: asyncio.Semaphore = request.app.state.exports
    if slots.locked():
        return refused(ValueError(f"format: {MAX_EXPORTS} exports are under way: try again when one is done"), 503)
    try:
        async with slots:
            prepared = await in_daemon_thread(partial(_prepare, request.app.state.agent, request.query_params))
    except ValueError as error:
        return refused(error)
    except LookupError as error:
        return refused(error, 404)
    except OSError as error:
        return refused(unread(error), 503)
    except ModuleNotFoundError:
        words = "format: 'parquet' cannot be used: pyarrow is not installed: `pip install pyarrow` where the agent runs"
        return refused(ValueError(words), 501)
    return Download(prepared, slots, has_body=request.method == "GET")


class Download(StreamingResponse):
    """Breaks off where the journal fails or the reader is gone: half a file must not look like a whole one."""

    def __init__(self, prepared: Prepared, slots: asyncio.Semaphore, has_body: bool) -> None:
        self._prepared, self._slots = prepared, slots
        self._reading: asyncio.Future[bytes | None] | None = None
        name, full_name = _plain(prepared.name), quote(prepared.name, safe="")
        headers = {"cache-control": "no-store",
                   "content-disposition": f"attachment; filename=\"{name}\"; filename*=UTF-8''{full_name}"}  # fmt: skip
        super().__init__(self._pieces() if has_body else (), 200, headers, prepared.media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def patient(message: Message) -> None:
            await asyncio.wait_for(send(message), SEND_SECONDS)

        await self._slots.acquire()
        try:
            await super().__call__(scope, receive, patient)
        except (OSError, asyncio.TimeoutError) as error:
            log.warning("the export %r ended early: %r", self._prepared.name, error)
        finally:
            self._leave()

    def _leave(self) -> None:
        """Where the disk hangs, the place stays taken until it answers: threads must not pile up."""
        if self._reading is None or self._reading.done():
            self._slots.release()
        else:
            self._reading.add_done_callback(lambda _: self._slots.release())

    async def _pieces(self) -> AsyncIterator[bytes]:
        while True:
            self._reading = asyncio.ensure_future(in_daemon_thread(lambda: next(self._prepared.chunks, None)))
            piece = await asyncio.shield(self._reading)
            if piece is None:
                return
            if piece:
                yield piece


def _prepare(agent: Agent, parameters: QueryParams) -> Prepared:
    form = parameters.get("format", "csv")
    if form not in FORMS:
        raise ValueError(f"format: {form!r} cannot be used: give one of {', '.join(FORMS)}")
    name, rows = _run(agent, parameters) if "run" in parameters else _node(agent, parameters)
    media_type, make = FORMS[form]
    return Prepared(f"{name}.{form}", media_type, begun(make(rows)))


def _run(agent: Agent, parameters: QueryParams) -> tuple[str, Rows]:
    x = parameters.get("x", "step")
    if x not in ("step", "time"):
        raise ValueError(f"x: {x!r} cannot be used: from and to are of step or time")
    ends = {"start": place(parameters.get("from"), "from", x), "end": place(parameters.get("to"), "to", x)}
    within = Range(x, **{name: end for name, end in ends.items() if end is not None})
    rank = whole_number(parameters["rank"], "rank", 0, 0, MAX_RANK) if "rank" in parameters else None
    run = parameters["run"]
    parts = run_parts(run_list.find(agent.root, run), rank)
    return f"{run}-rank{rank}" if rank is not None else run, lambda: run_rows(parts, within)


def _node(agent: Agent, parameters: QueryParams) -> tuple[str, Rows]:
    gpus, host = parameters.get("gpus", ""), parameters.get("host", "") not in ("", "0")
    kinds = ["gpu"] * bool(gpus) + ["host"] * host
    if not kinds:
        raise ValueError("run: nothing is asked for: give run=NAME, gpus=all or host=1")
    asked = query.parse({name: parameters[name] for name in ("from", "to") if name in parameters}, time.time())
    wanted = None if gpus in ("", "all") else query.gpu_numbers(gpus)
    within = Range("time", asked.start, asked.end)
    folder = layout.gpu_folder(agent.root, agent.host)
    return f"{agent.host}-{'-'.join(kinds)}", lambda: node_rows(folder, kinds, wanted, within)


def _plain(name: str) -> str:
    stem, _, form = name.rpartition(".")
    return f"trainvitals-{_UNSAFE.sub('_', stem).strip('._')[:_MAX_NAME] or 'export'}.{form}"
