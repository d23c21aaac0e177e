"""GPUs in the terminal: a line a tick, a summary now and then, the JSONL log, and /metrics if asked for."""

import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from trainvitals import console
from trainvitals.agent.service import Agent
from trainvitals.errors import JournalError, SettingError, SourceError
from trainvitals.journal.record import timestamp
from trainvitals.model import Snapshot
from trainvitals.sources import Device, Source

Settings = dict[str, Any]


class Chosen:
    """A source with only the GPUs that were asked for."""

    def __init__(self, source: Source, numbers: Sequence[int]) -> None:
        self._source, self._numbers = source, {str(number) for number in numbers}
        self.name = source.name
        if hasattr(source, "wait_events"):
            self.wait_events = source.wait_events

    def discover(self) -> Sequence[Device]:
        devices = [device for device in self._source.discover() if _number(device) in self._numbers]
        missing = self._numbers - {_number(device) for device in devices}
        if missing:
            raise SourceError(
                self.name, f"there is no GPU {', '.join(sorted(missing))}", "`trainvitals once` lists them"
            )
        return devices

    def close(self) -> None:
        self._source.close()


class Screen:
    """Prints as snapshots come; with JSON every line is an object."""

    def __init__(self, form: str, summary_interval: float, ticks: bool, process_id: str) -> None:
        self._json, self._every, self._ticks, self._id = form == "json", summary_interval, ticks, process_id
        self._summary = console.Summary()
        self._next = time.monotonic() + summary_interval

    def show(self, snapshot: Snapshot) -> None:
        self._summary.add(snapshot)
        if self._ticks:
            self._print(console.tick_line(snapshot), snapshot.timestamp)
        if self._every and time.monotonic() >= self._next:
            self._next += self._every
            self.summarise()

    def summarise(self) -> None:
        for line in self._summary.lines():
            self._print(f"summary: {line}", time.time())

    def _print(self, text: str, when: float) -> None:
        if self._json:
            line = {"timestamp": timestamp(int(when * 1e9)), "level": "info", "logger": "trainvitals.monitor",
                    "message": text, "correlation_id": self._id}  # fmt: skip
            text = orjson.dumps(line).decode()
        print(text, flush=True)


def run(settings: Settings, sources: Sequence[Source], make_agent: Callable[..., Agent], *, ticks: bool) -> int:
    process_id = uuid.uuid4().hex[:12]
    console.set_up_logging(settings["log_format"], process_id)
    chosen = _choice(settings)
    picked = [Chosen(source, chosen) if chosen and source.name != "host" else source for source in sources]
    listening = _listen(settings)
    agent = _start(settings, picked, make_agent)
    screen = Screen(settings["log_format"], settings["summary_interval"], ticks, process_id)
    agent.listeners.append(screen.show)
    try:
        _wait(agent, listening)
    finally:
        agent.stop()
        screen.summarise()
    return 0


def _choice(settings: Settings) -> tuple[int, ...]:
    if settings["gpu"] and settings["gpus"]:
        raise SettingError("--gpu", ",".join(map(str, settings["gpu"])), "give --gpu or --gpus, not both")
    return settings["gpu"] or settings["gpus"] or ()


def _start(settings: Settings, sources: Sequence[Source], make_agent: Callable[..., Agent]) -> Agent:
    """Where an agent keeps this journal already, the log is its; a folder of one's own is always kept."""
    agent = make_agent(settings, sources, log_folder=settings["log_dir"])
    try:
        agent.start()
    except JournalError as error:
        print(f"no log is kept: {error}, or name a folder with --log-dir", file=sys.stderr)
        agent = make_agent(settings, sources, keep_log=False)
        agent.start()
    return agent


def _listen(settings: Settings) -> Any:
    if settings["prometheus_port"] is None:
        return None
    from trainvitals.web.server import bind

    return bind("127.0.0.1", settings["prometheus_port"], "--prometheus-port")


def _wait(agent: Agent, listening: Any) -> None:
    if listening is not None:
        from trainvitals.web.app import make_app
        from trainvitals.web.config import WebConfig
        from trainvitals.web.server import serve

        serve(make_app(agent), listening, WebConfig())
        return
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    ended.wait()


def _number(device: Device) -> str:
    return str(getattr(device, "index", ""))
