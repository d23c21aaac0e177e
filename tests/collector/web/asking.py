"""One request to an application, without a network: any method, any headers, a stream read as far as wanted."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message, Scope

LOCAL = {"host": "localhost:8080"}


@dataclass
class Answer:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)


def ask(app: ASGIApp, path: str, headers: Mapping[str, str] = LOCAL, method: str = "GET", body: bytes = b"") -> Answer:
    """`path` may have a query. The client leaves when the answer is complete."""
    return asyncio.run(_ask(app, path, headers.items(), method, body))


async def _ask(app: ASGIApp, path: str, headers: Iterable[tuple[str, str]], method: str, body: bytes) -> Answer:
    answer, left = Answer(), asyncio.Event()
    told = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Message:
        for message in told:
            return message
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        elif message["type"] == "http.response.body":
            answer.body += message.get("body", b"")

    await asyncio.wait_for(app(scope(path, headers, method), receive, send), 10)
    left.set()
    return answer


def scope(path: str, headers: Iterable[tuple[str, str]] = tuple(LOCAL.items()), method: str = "GET") -> Scope:
    where, _, query = path.partition("?")
    encoded = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    return {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": where,
            "raw_path": where.encode(), "root_path": "", "scheme": "http", "query_string": query.encode(),
            "headers": encoded, "client": ("127.0.0.1", 50000), "server": ("127.0.0.1", 8080)}  # fmt: skip
