"""What is read from the journal: a place of few, an answer in time or the words that there is none."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.types import Message

from tests.collector.web.asking import ask, scope
from trainvitals.agent import query
from trainvitals.agent.service import Agent
from trainvitals.web import answers
from trainvitals.web.app import MAX_QUERIES, make_app

NODE = "/api/v1/node"


@pytest.fixture
def app(agent: Agent) -> Starlette:
    return make_app(agent)


class Disk:
    """Answers each question when it is let."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.answers = threading.Event()

    def node(self, _: Agent, asked: query.Asked) -> dict[str, Any]:
        self.asked.append(asked.end)
        assert self.answers.wait(10)
        return {}


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk()
    monkeypatch.setattr(query, "node", disk.node)
    yield disk
    disk.answers.set()


class Question:
    """`to` tells it from others."""

    def __init__(self, app: Starlette, to: int = 1000, path: str = "") -> None:
        self._app, self._path = app, path or f"{NODE}?from=0&to={to}"
        self._left = asyncio.Event()
        self.status, self.body = 0, b""
        self.task = asyncio.create_task(self._app(scope(self._path), self._receive, self._send))

    def leave(self) -> None:
        self._left.set()

    async def _receive(self) -> Message:
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self.status = message.get("status", self.status)
        self.body += message.get("body", b"")


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(work(), 20)

    asyncio.run(bounded())


async def until(is_so: Callable[[], object]) -> None:
    while not is_so():
        await asyncio.sleep(0.005)


async def hanging(app: Starlette, disk: Disk) -> list[Question]:
    """All places are taken."""
    found = [Question(app) for _ in range(MAX_QUERIES)]
    await until(lambda: len(disk.asked) == MAX_QUERIES)
    return found


def test_one_that_waits_too_long_for_its_turn_is_told_so(
    app: Starlette, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "PLACE_SECONDS", 0.05)

    async def work() -> None:
        first = await hanging(app, disk)
        late = [Question(app), Question(app, path="/api/v1/findings?state=past"), Question(app, path="/api/v1/runs")]
        await asyncio.gather(*(one.task for one in late))
        assert {(one.status, one.body) for one in late} == {
            (503, b'{"error":"too many questions at once: ask again in a moment"}')}  # fmt: skip
        disk.answers.set()
        await asyncio.gather(*(one.task for one in first))
        assert [one.status for one in first] == [200] * MAX_QUERIES

    run(work)


def test_a_disk_that_hangs_is_not_waited_for_and_keeps_its_places(
    app: Starlette, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "WORK_SECONDS", 0.05)
    monkeypatch.setattr(answers, "PLACE_SECONDS", 0.05)

    async def work() -> None:
        first = await hanging(app, disk)
        await asyncio.gather(*(one.task for one in first))
        assert {one.status for one in first} == {503} and b"disk does not answer" in first[0].body
        late = Question(app)
        await late.task
        assert late.status == 503 and len(disk.asked) == MAX_QUERIES, "threads would pile up"
        disk.answers.set()
        await until(lambda: not app.state.queries.locked())
        again = Question(app)
        await again.task
        assert again.status == 200

    run(work)


def test_what_nobody_waits_for_any_more_is_not_looked_for(app: Starlette, disk: Disk) -> None:
    async def work() -> None:
        first = await hanging(app, disk)
        dropped, wanted = Question(app, to=2000), Question(app, to=3000)
        await asyncio.sleep(0.02)
        dropped.leave()
        disk.answers.set()
        await asyncio.gather(*(one.task for one in (*first, dropped, wanted)))
        assert wanted.status == 200 and 2000 not in disk.asked and 3000 in disk.asked
        assert not app.state.queries.locked()

    run(work)


def test_what_is_open_is_told_though_the_disk_hangs(app: Starlette, disk: Disk) -> None:
    async def work() -> None:
        first = await hanging(app, disk)
        is_open = Question(app, path="/api/v1/findings?state=open")
        await is_open.task
        assert is_open.status == 200 and not disk.answers.is_set()
        disk.answers.set()
        await asyncio.gather(*(one.task for one in first))

    run(work)


@pytest.mark.parametrize("path", [NODE, "/api/v1/export?gpus=all"])
def test_a_journal_that_cannot_be_read_is_said_in_the_form_of_errors(
    app: Starlette, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(query, "node", fail)
    monkeypatch.setattr(query, "parse", fail)
    answer = ask(app, path)
    assert (answer.status, answer.json()) == (503, {"error": "the journal cannot be read: Input/output error"})
