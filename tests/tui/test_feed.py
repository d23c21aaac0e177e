"""Where pictures come from: an agent as long as one answers, this process where none does, and back."""

import http.server
import itertools
import json
import os
import queue
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.collector.support import serving, wait_for
from tests.ports import free_port
from tests.tui.support import NOON, run, told
from tests.tui.test_address import answer, answering
from tests.tui.test_hostile import spoilt
from trainvitals import cli, config
from trainvitals.agent.service import Agent
from trainvitals.detect.making import make_engine
from trainvitals.journal import runs
from trainvitals.journal.run_files import RunFiles
from trainvitals.sources.simulated import SimulatedSource
from trainvitals.tui import address as address_module
from trainvitals.tui import feed, past
from trainvitals.tui.address import Address
from trainvitals.tui.feed import OWN, Feed, Heard
from trainvitals.tui.history import Frame
from trainvitals.tui.own import OwnReadings
from trainvitals.tui.picture import picture
from trainvitals.web.views import snapshot_view


class Own:
    """Readings that are told by hand."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.wake: Callable[[], None] = lambda: None
        self.answer: Any = told(3)

    def start(self, wake: Callable[[], None]) -> None:
        self.calls.append("start")
        self.wake = wake

    def json(self) -> dict[str, Any]:
        return self.answer  # type: ignore[no-any-return]

    def stop(self) -> None:
        self.calls.append("stop")


@contextmanager
def feeding(address: Address | None, own: Own | None, interval: float = 0.1) -> Iterator["queue.Queue[Heard]"]:
    heard: queue.Queue[Heard] = queue.Queue()
    one = Feed(heard.put, address, interval, (lambda: own) if own else None)
    one.start()
    try:
        yield heard
    finally:
        one.stop()


def until(heard: "queue.Queue[Heard]", is_so: Callable[[Heard], bool]) -> Heard:
    while True:
        one = heard.get(timeout=10)
        if is_so(one):
            return one


def test_the_agent_then_this_process_then_the_agent_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "PATIENCE_SECONDS", 0.3)
    monkeypatch.setattr(feed, "LOOK_SECONDS", 0.2)
    port, own = free_port(), Own()
    with feeding(Address("127.0.0.1", port), own) as heard:
        first = heard.get(timeout=10)
        assert first.source == OWN and first.picture and len(first.picture.gpus) == 3
        assert first.problem == f"no agent at 127.0.0.1:{port}: Connection refused"
        with serving(tmp_path, "--simulate", "2", "--port", str(port)):
            agent = until(heard, lambda one: one.source != OWN and one.picture is not None and bool(one.picture.gpus))
            assert agent.source == f"agent 127.0.0.1:{port}" and agent.picture and len(agent.picture.gpus) == 2
            assert own.calls == ["start", "stop"]
        lost = until(heard, lambda one: one.picture is None)
        assert lost.source == agent.source and lost.problem
        again = until(heard, lambda one: one.source == OWN)
        assert again.picture and len(again.picture.gpus) == 3
    assert own.calls == ["start", "stop"] * 2


def test_what_the_agent_remembers_comes_along(tmp_path: Path) -> None:
    files = begin(tmp_path, "gemma b")
    name = next(one.name for one in (tmp_path / "runs").iterdir() if one.is_dir())
    steps = itertools.count()
    with serving(tmp_path, "--simulate", "2", "--interval", "0.5") as agent:
        address = Address.parse(agent.address)

        def remembers() -> tuple[Frame, ...]:
            files.metrics.append({"step": next(steps), "loss": 3.5})
            found = past.frames(address, address.ask(), 100.0, 1.0)
            return found if sum(("run", name, "loss") in frame.values for frame in found) > 2 else ()

        found = wait_for(remembers, pause=0.2)
        assert all(0 < 100.0 - frame.at < 30 for frame in found)
        assert [frame.at for frame in found] == sorted(frame.at for frame in found)
        last = found[-1].values
        assert last["gpu", "1", "memory_percent"] == pytest.approx(78.0, abs=1) and last["run", name, "loss"] == 3.5
        with feeding(address, None) as heard:
            assert heard.get(timeout=10).past == (), "the first picture is not kept waiting"
            assert len(until(heard, lambda one: bool(one.past)).past) >= len(found) - 1
    files.end("finished")


def test_an_agent_that_is_slow_with_its_past_tells_the_present_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address_module, "ASK_SECONDS", 60.0)
    is_asked, may_answer, now = threading.Event(), threading.Event(), itertools.count()

    def handle(request: http.server.BaseHTTPRequestHandler) -> None:
        if request.path.endswith("/snapshot"):
            answer(json.dumps(told(1, at=NOON + next(now))).encode())(request)
        else:
            is_asked.set()
            may_answer.wait(30)
            answer(b"{}")(request)

    with answering(handle) as port, feeding(Address("127.0.0.1", port), None) as heard:
        assert is_asked.wait(10)
        before = next(now)
        assert until(heard, lambda one: bool(one.picture and one.picture.at and one.picture.at > NOON + before + 3))
        may_answer.set()


def test_an_agent_that_remembers_nothing_or_nonsense_is_read_all_the_same() -> None:
    generator = random.Random(7)
    course = {"x": [NOON - 3, NOON - 2], "mean": [1.0, None], "peak": [1.0, None]}
    whole = {"gpus": {"0": {"utilization_percent": course}}, "fields": {"loss": course}, "x_values": course["x"]}

    def handle(request: http.server.BaseHTTPRequestHandler) -> None:
        if request.path.endswith("/snapshot"):
            answer(json.dumps(told(1, [run("a", 1)])).encode())(request)
        elif generator.random() < 0.2:
            answer(b"", 404)(request)
        else:
            answer(json.dumps(spoilt(whole, generator)).encode())(request)

    with answering(handle) as port:
        address, many = Address.parse(f"127.0.0.1:{port}"), 0
        for _ in range(60):
            many += bool(past.frames(address, address.ask(), 100.0, 1.0))
        assert 5 < many < 60


def test_of_a_remote_agent_no_other_readings_are_shown() -> None:
    with feeding(Address("127.0.0.1", free_port()), None) as heard:
        for _ in range(3):
            one = heard.get(timeout=10)
            assert one.picture is None and one.problem == "Connection refused"


def test_own_readings_are_told_as_they_come() -> None:
    own = Own()
    with feeding(None, own, interval=3600.0) as heard:
        heard.get(timeout=10)
        own.answer = told(5)
        own.wake()
        one = heard.get(timeout=10)
        assert one.picture and len(one.picture.gpus) == 5


def test_what_nobody_foresaw_is_told_and_gone_when_it_is_mended() -> None:
    own = Own()
    own.answer = None
    with feeding(None, own, interval=0.02) as heard:
        assert "Unreadable" in until(heard, lambda one: one.picture is None).problem
        own.answer = told(1)
        until(heard, lambda one: one.picture is not None)


def begin(root: Path, name: str) -> RunFiles:
    claimed = runs.claim(root, name, rank=0, world_size=1, run_id="", facts={"host": "gpu1"}, environ={})
    return RunFiles(claimed, name, framework="plain", planned_steps=9, config={})


def test_readings_of_ones_own_write_nothing(tmp_path: Path) -> None:
    """Beside an agent that keeps the journal, and of a run that was killed."""
    files = begin(tmp_path, "gemma")
    files.metrics.append({"step": 1, "loss": float("nan")})
    program = (
        "import os, sys; from pathlib import Path; from trainvitals.journal import runs; "
        "runs.claim(Path(sys.argv[1]), 'dead', rank=0, world_size=1, run_id='', facts={}, environ={}); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], timeout=20, check=False)
    sources = [SimulatedSource(2, "throttled")]
    before = kept(tmp_path)
    looking = {"interval": 0.1, "host": "gpu1", "keep_log": False, "engine": make_engine(None)}
    own = OwnReadings(lambda: Agent(sources, tmp_path, **looking), snapshot_view)  # type: ignore[arg-type]
    ticks = threading.Semaphore(0)
    own.start(ticks.release)
    try:
        found = wait_for(lambda: (one := picture(json.loads(json.dumps(own.json())))).findings and one.gpus and one)
        assert found.findings[0].name == "TrainingNonFinite" and found.findings[0].severity == "page"
        assert [gpu.processes[0].command for gpu in found.gpus] == ["simulated trainer"] * 2
        assert {run.run: run.status for run in found.runs} == {"gemma": "running", "dead": "killed"}
        assert found.node == "gpu1" and ticks.acquire(timeout=5)
    finally:
        own.stop()
    assert kept(tmp_path) == before
    files.end("finished")


def kept(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_settings_choose_the_address_and_its_token(tmp_path: Path) -> None:
    from trainvitals import top_command

    (tmp_path / "token").write_text("from-a-file-from-a-file\n")
    env = {"TRAINVITALS_TOKEN_FILE": str(tmp_path / "token")}
    for words, environ, wanted in (
        (("top", "--token", "by-flag"), env, "by-flag"),
        (("top",), env, "from-a-file-from-a-file"),
        (("top",), {"TRAINVITALS_TOKEN": "by-env"}, "by-env"),
        (("top", "--token", "none"), {}, ""),
        (("top",), {}, ""),
    ):
        flags = cli._parse(words)
        saved = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("TRAINVITALS_")}
        os.environ.update(environ)
        try:
            assert top_command._token(config.load(flags, environ), flags) == wanted
        finally:
            for name in environ:
                del os.environ[name]
            os.environ.update(saved)
