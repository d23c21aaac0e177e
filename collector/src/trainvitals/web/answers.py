"""What the API's calls have in common: JSON, packed where it is long, errors that name key and fix, bounds, work that
may wait for a disk.

return await from_disk(request, lambda: slow(parse(request.query_params)))
return told(request, what_is_in_memory())
"""

import asyncio
import gzip
from collections.abc import Callable
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from trainvitals.agent.indexing import Busy
from trainvitals.web.static_files import takes_gzip
from trainvitals.web.waiting import in_daemon_thread

# Shorter ones fit into one packet as they are.
PACKED_BYTES, GZIP_LEVEL = 1400, 6
# How long a question waits for its turn, and for its answer.
PLACE_SECONDS, WORK_SECONDS = 20.0, 60.0
_HEADERS = {"cache-control": "no-store"}
_MANY = "too many questions at once: ask again in a moment"
_SILENT = "the journal's disk does not answer: what needs it cannot be told now"


def as_json(content: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(content), status, _HEADERS, "application/json")


def told(request: Request, content: Any) -> Response:
    return _packed(content, takes_gzip(request.headers.get("accept-encoding", "")))


def refused(error: Exception, status: int = 400) -> Response:
    return as_json({"error": str(error.args[0] if error.args else error)}, status)


def unread(error: OSError) -> Busy:
    return Busy(f"the journal cannot be read: {error.strerror or error}")


async def from_disk(request: Request, work: Callable[[], Any]) -> Response:
    """For few at a time: where the disk hangs, threads must not pile up."""
    places: asyncio.Semaphore = request.app.state.queries
    try:
        await asyncio.wait_for(places.acquire(), PLACE_SECONDS)
    except asyncio.TimeoutError:
        return refused(Busy(_MANY), 503)
    if await request.is_disconnected():
        # Whoever asks something newer meanwhile need not wait for this.
        places.release()
        return refused(Busy(_MANY), 503)
    return await _answered(request, work, places)


async def _answered(request: Request, work: Callable[[], Any], places: asyncio.Semaphore) -> Response:
    """Its place stays taken until the disk answers, whoever waits for it."""
    packs = takes_gzip(request.headers.get("accept-encoding", ""))
    working = asyncio.ensure_future(in_daemon_thread(lambda: _whole(work, packs)))
    working.add_done_callback(lambda _: places.release())
    done, _ = await asyncio.wait({working}, timeout=WORK_SECONDS)
    return working.result() if done else refused(Busy(_SILENT), 503)


def _whole(work: Callable[[], Any], packs: bool) -> Response:
    try:
        return _packed(work(), packs)
    except ValueError as error:
        return refused(error)
    except LookupError as error:
        return refused(error, 404)
    except Busy as error:
        return refused(error, 503)
    except OSError as error:
        return refused(unread(error), 503)


def _packed(content: Any, packs: bool) -> Response:
    """Made in the thread that may wait: a curve of thousands of points takes its milliseconds."""
    body, headers = orjson.dumps(content), {**_HEADERS, "vary": "Accept-Encoding"}
    if packs and len(body) > PACKED_BYTES:
        body, headers = gzip.compress(body, GZIP_LEVEL), headers | {"content-encoding": "gzip"}
    return Response(body, 200, headers, "application/json")
