"""The event stream: every reader is told of every snapshot, and leaves no trace when they go."""

import asyncio
import json
import re
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.types import Message

from tests.collector.support import wait_for
from tests.collector.web.asking import LOCAL, ask, scope
from trainvitals.agent.service import Agent
from trainvitals.model import Snapshot
from trainvitals.web import stream as module
from trainvitals.web.app import STATIC, make_app


class Reader:
    """Reads `wanted` events and then does as told: leaves, or takes no more."""

    def __init__(self, app: Starlette, wanted: int, then: str = "leave") -> None:
        self._app, self._wanted, self._then = app, wanted, then
        self._left = asyncio.Event()
        self.enough = asyncio.Event()
        self.sent: list[bytes] = []
        self.status = 0

    async def read(self) -> None:
        await self._app(scope("/api/v1/stream"), self._receive, self._send)

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(sent.removeprefix(b"data: ")) for sent in self.sent if sent.startswith(b"data: ")]

    async def _receive(self) -> Message:
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message["body"]:
            self.sent.append(message["body"])
        if len(self.sent) >= self._wanted:
            self.enough.set()
            if self._then == "leave":
                self._left.set()
            else:
                await self._left.wait()


def run(work: Callable[[], Awaitable[None]], seconds: float = 20) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(work(), seconds)

    asyncio.run(bounded())


def test_events_come_as_long_as_somebody_reads(agent: Agent, app: Starlette) -> None:
    async def work() -> None:
        reader = Reader(app, 4)
        await reader.read()
        stamps = [event["timestamp"] for event in reader.events()]
        assert (reader.status, len(stamps)) == (200, 4)
        assert stamps == sorted(set(stamps))
        assert reader.events()[0].keys() == ask_snapshot.keys()

    ask_snapshot = ask(app, "/api/v1/snapshot").json()
    run(work)
    assert agent.listeners == []


def test_several_readers_are_told_the_same(agent: Agent, app: Starlette) -> None:
    async def work() -> None:
        readers = [Reader(app, wanted) for wanted in (3, 5, 5)]
        await asyncio.gather(*(reader.read() for reader in readers))
        told = [{event["timestamp"] for event in reader.events()} for reader in readers]
        assert len(set.intersection(*told)) >= 2

    run(work)
    assert agent.listeners == []


def test_a_reader_that_takes_nothing_holds_up_nobody(agent: Agent, app: Starlette) -> None:
    async def work() -> None:
        slow, quick = Reader(app, 1, then="hold"), Reader(app, 6)
        holding = asyncio.create_task(slow.read())
        await slow.enough.wait()
        await quick.read()
        assert len(slow.sent) == 1
        slow._left.set()
        await holding

    run(work)
    assert agent.listeners == []


def test_where_no_snapshot_comes_what_is_known_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the sampler hangs: the page hears so, and does not take the agent for lost."""
    monkeypatch.setattr(module, "KEEP_ALIVE_SECONDS", 0.01)
    agent = Standing()
    events = module.Streams(agent, lambda: " ".join(agent.problems).encode()).events()  # type: ignore

    async def work() -> None:
        assert [await events.__anext__() for _ in range(3)] == [b"data: \n\n"] * 3
        agent.problems = ["stuck"]
        assert await events.__anext__() == b"data: stuck\n\n"
        await events.aclose()

    run(work)


def test_that_comes_before_the_page_gives_up() -> None:
    scripts = (path.read_text() for path in (STATIC / "js").glob("*.js"))
    [patience] = [found[1] for script in scripts if (found := re.search(r"LEAST_PATIENCE_SECONDS = (\d+)", script))]
    assert float(patience) > module.KEEP_ALIVE_SECONDS


def test_only_so_many_read_it(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_READERS", 2)
    app = make_app(agent)

    async def work() -> None:
        readers = [Reader(app, 1, then="hold") for _ in range(2)]
        tasks = [asyncio.create_task(reader.read()) for reader in readers]
        for reader in readers:
            await reader.enough.wait()
        refused = Reader(app, 1)
        await refused.read()
        assert refused.status == 503 and b"too many" in refused.sent[0]
        readers[0]._left.set()
        await tasks[0]
        another = Reader(app, 1)
        await another.read()
        assert another.status == 200
        readers[1]._left.set()
        await tasks[1]

    run(work)


def test_the_end_of_the_server_ends_every_stream(agent: Agent) -> None:
    app = make_app(agent)

    async def work() -> None:
        readers = [Reader(app, 1000) for _ in range(3)]
        tasks = [asyncio.create_task(reader.read()) for reader in readers]
        while not all(reader.sent for reader in readers):
            await asyncio.sleep(0.01)
        app.state.streams.end()
        await asyncio.wait_for(asyncio.gather(*tasks), 5)

    run(work)
    assert agent.listeners == []


def test_a_cancelled_stream_leaves_nothing_behind(agent: Agent, app: Starlette) -> None:
    async def work() -> None:
        reader = Reader(app, 1000)
        task = asyncio.create_task(reader.read())
        while not reader.sent:
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(work)
    wait_for(lambda: not agent.listeners)


def test_a_long_query_does_not_keep_the_process(app: Starlette, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a thread of a pool would, whose end the interpreter waits for."""
    from trainvitals.agent import query

    seen: list[bool] = []
    monkeypatch.setattr(query, "node", lambda *_: seen.append(threading.current_thread().daemon) or {})
    assert ask(app, "/api/v1/node", LOCAL).json() == {}
    assert seen == [True]


class Standing:
    """An agent between two snapshots."""

    def __init__(self) -> None:
        self.snapshot, self.listeners = Snapshot(1.0, ()), []
        self.problems: list[str] = []

    def health(self) -> list[str]:
        return list(self.problems)


def test_readers_share_one_serialisation_of_a_snapshot() -> None:
    agent, told = Standing(), []
    streams = module.Streams(agent, lambda: told.append(agent.snapshot) or b"%d" % len(told))  # type: ignore

    async def first_events() -> list[bytes]:
        return [await anext_of(streams.events()) for _ in range(5)]

    assert asyncio.run(first_events()) == [b"data: 1\n\n"] * 5
    agent.snapshot = Snapshot(1.0, ())
    assert asyncio.run(first_events()) == [b"data: 2\n\n"] * 5
    agent.problems = ["the sampler is stuck"]
    assert asyncio.run(first_events()) == [b"data: 3\n\n"] * 5


async def anext_of(events: Any) -> Any:
    event = await events.__anext__()
    await events.aclose()
    return event
