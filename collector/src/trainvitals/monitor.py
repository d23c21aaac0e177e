"""GPUs in the terminal: a line a tick, a summary now and then, the JSONL log, and /metrics if asked for."""

import logging
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from typing import Any

from trainvitals import console
from trainvitals.agent.service import Agent
from trainvitals.errors import JournalError, SettingError, SourceAbsent
from trainvitals.journal.layout import gpu_folder
from trainvitals.model import Snapshot
from trainvitals.once import in_thread
from trainvitals.sinks import targets
from trainvitals.sinks.supervisor import gpu_series
from trainvitals.sources import Device, Source

Settings = dict[str, Any]
LOOK_SECONDS = 3.0

log = logging.getLogger("trainvitals.monitor")


class Chosen:
    """A source with only the GPUs that were asked for."""

    def __init__(self, source: Source, numbers: Sequence[int]) -> None:
        self._source, self._numbers = source, numbers
        self.name = source.name
        if hasattr(source, "wait_events"):
            self.wait_events = source.wait_events

    @property
    def gpu_count(self) -> int:
        return min(self._source.gpu_count, len(self._numbers))

    def discover(self) -> Sequence[Device]:
        return [device for device in self._source.discover() if getattr(device, "index", None) in self._numbers]

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
        if not console.say(console.json_line(text, when, self._id, "monitor") if self._json else text):
            # Nobody reads on, as after `| head`.
            os.kill(os.getpid(), signal.SIGTERM)


def run(settings: Settings, sources: Sequence[Source], make_agent: Callable[..., Agent], *, ticks: bool) -> int:
    process_id = secrets.token_hex(6)
    console.set_up_logging(settings["log_format"], process_id)
    name, wanted = settings["wandb_run_name"], targets(_wanted(settings))
    ended = threading.Event()
    console.on_end(lambda *_: ended.set())
    picked = _pick(settings, sources)
    listening = _listen(settings)
    agent = _start(settings, picked, make_agent)
    sinks = gpu_series(wanted, settings["log_dir"] or gpu_folder(agent.root, agent.host), name or agent.host)
    sinks.start()
    screen = Screen(settings["log_format"], settings["summary_interval"], ticks, process_id)
    agent.listeners.append(screen.show)
    try:
        _wait(agent, listening, ended)
    finally:
        agent.listeners.remove(screen.show)
        agent.stop()
        sinks.stop()
        screen.summarise()
    return 0


def _wanted(settings: Settings) -> list[str]:
    project = settings["wandb_project"]
    return [*settings["sinks"], *([f"wandb={project}"] if project else [])]


def _pick(settings: Settings, sources: Sequence[Source]) -> list[Source]:
    numbers = sorted({*(settings["gpu"] or ()), *(settings["gpus"] or ())})
    for source in sources:
        if source.name != "host":
            _look(source, "--gpus" if settings["gpus"] else "--gpu", numbers)
    return [Chosen(source, numbers) if numbers and source.name != "host" else source for source in sources]


def _look(source: Source, flag: str, numbers: Sequence[int]) -> None:
    """A number that no GPU has is a mistake now; later it is a GPU that was lost."""
    found = in_thread(source.discover)
    wait([found], LOOK_SECONDS)
    error = found.exception() if found.done() else None
    if isinstance(error, SourceAbsent):
        log.warning("%s; `%s monitor --simulate 8` shows simulated ones", error.problem, console.typed())
    if not found.done() or error is not None:
        return
    there = [getattr(device, "index", -1) for device in found.result()]
    if set(numbers) - set(there):
        fix = f"the GPUs here are {_listed(there)}" if there else "there is no GPU here"
        raise SettingError(flag, _listed(numbers), fix)


def _listed(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def _start(settings: Settings, sources: Sequence[Source], make_agent: Callable[..., Agent]) -> Agent:
    """Where an agent keeps this journal already, the log is its; a folder of one's own is always kept."""
    agent = make_agent(settings, sources, log_folder=settings["log_dir"])
    try:
        agent.start()
    except JournalError as error:
        log.warning("no log is kept: %s, or name a folder with --log-dir", error)
        agent = make_agent(settings, sources, keep_log=False)
        agent.start()
    return agent


def _listen(settings: Settings) -> Any:
    if settings["prometheus_port"] is None:
        return None
    from trainvitals.web.server import bind

    return bind("127.0.0.1", settings["prometheus_port"], "--prometheus-port")


def _wait(agent: Agent, listening: Any, ended: threading.Event) -> None:
    if listening is None:
        ended.wait()
    elif not ended.is_set():
        from trainvitals.web.app import make_app
        from trainvitals.web.config import WebConfig
        from trainvitals.web.server import serve

        log.info("metrics on http://127.0.0.1:%d/metrics", listening.getsockname()[1])
        serve(make_app(agent), listening, WebConfig(), ended)
