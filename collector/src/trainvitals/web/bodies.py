"""The body of a request that changes something: who may send it, how long it may take, and how large it may be.

told = await taken(request, ("id", "note"))   ->   {"id": "5f…"}; Refused, with a status, where it cannot be used
"""

import asyncio
from collections.abc import Collection
from typing import Any

import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

READ_SECONDS = 10.0
MOST_BYTES = 64 * 2**10
MOST_NOTE = 500
OF_BROWSERS = ("origin", "referer", "sec-fetch-site", "cookie")


class Refused(Exception):
    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status

    def answer(self) -> Response:
        return as_json({"error": str(self)}, self.status)


def wrong(key: str, value: object, fix: str, status: int = 400) -> Refused:
    return Refused(status, f"{key}: {value!r:.200} cannot be used: {fix}")


def refuse_others(request: Request) -> None:
    """A browser says by Origin which page asks, and the guard has seen that it is ours. What bears none and is a
    browser's may be any site's, with a login that the browser keeps for us."""
    if "origin" not in request.headers and any(name in request.headers for name in OF_BROWSERS):
        raise Refused(403, "Origin: it is missing: the page itself may change this, and programs that are no browsers")
    refuse_other_types(request)


def refuse_other_types(request: Request) -> None:
    """Forms cannot send this one, and other sites' scripts must ask before."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "content-type: application/json is wanted")


async def taken(request: Request, known: Collection[str]) -> dict[str, Any]:
    """Its keys are among those that are known."""
    refuse_others(request)
    try:
        content = orjson.loads(await body(request, MOST_BYTES))
    except orjson.JSONDecodeError:
        raise Refused(400, "the body is no JSON") from None
    if not isinstance(content, dict):
        raise Refused(400, "the body: an object is wanted")
    for key in content.keys() - set(known):
        raise wrong(key, content[key], f"known here: {', '.join(known)}")
    return content


def note_of(content: dict[str, Any]) -> str:
    note = content.get("note") or ""
    if not isinstance(note, str) or len(note) > MOST_NOTE:
        raise wrong("note", note, f"give a text of {MOST_NOTE} characters at most")
    return " ".join(note.split())


async def body(request: Request, most_bytes: int) -> bytes:
    try:
        return await asyncio.wait_for(_read(request, most_bytes), READ_SECONDS)
    except asyncio.TimeoutError as error:
        raise Refused(408, f"the body did not come within {READ_SECONDS:g} s") from error
    except ClientDisconnect as error:
        raise Refused(400, "the sender left") from error


async def _read(request: Request, most_bytes: int) -> bytes:
    found = b""
    async for part in request.stream():
        found += part
        if len(found) > most_bytes:
            raise Refused(413, f"{most_bytes} bytes are taken at most")
    return found


def as_json(content: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(content), status, {"cache-control": "no-store"}, "application/json")
