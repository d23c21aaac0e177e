"""The command line, and the only place where the parts are put together."""

import argparse
import os
import sys
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainvitals import __version__, config
from trainvitals.errors import SettingError, TrainVitalsError

if TYPE_CHECKING:
    from trainvitals.agent.service import Agent
    from trainvitals.sources import Source

EXAMPLES = """examples:
  trainvitals serve                          watch this machine on http://127.0.0.1:8080
  trainvitals serve --simulate 8 --scenario throttled
  trainvitals demo                           eight simulated GPUs and a run that meets trouble
  trainvitals monitor --gpus 0,1 --interval 0.5 --log-dir /tmp/gpu
  trainvitals once --json | jq '.gpus[].temperature_celsius'
  trainvitals doctor                         what was found here, what not, and what mends it
"""
_AGENT_FLAGS = ("dir", "interval", "host", "port", "allowed_hosts", "web_config", "expected_gpus", "node_price",
                "per_core", "runs_cap", "node_cap", "log_format")  # fmt: skip
_AGENT_SETTINGS = ("interval", "expected_gpus", "node_price", "runs_cap", "node_cap")
_SIMULATION_FLAGS = ("simulate", "scenario", "seed")
Settings = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    parsed = vars(_parser().parse_args(arguments))
    command: Callable[[Settings, dict[str, Any]], int] = parsed.pop("command")
    try:
        return command(config.load(parsed), parsed)
    except TrainVitalsError as error:
        print(f"trainvitals: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def serve(settings: Settings, _: dict[str, Any]) -> int:
    return _serve(settings, _sources(settings))


def demo(settings: Settings, _: dict[str, Any]) -> int:
    from trainvitals import demo as simulated
    from trainvitals.sources.host import HostSource
    from trainvitals.sources.simulated import SimulatedSource

    listening = _bind(settings)
    with simulated.trainer() as folder:
        gpus = SimulatedSource(simulated.RANKS, simulated.scenario_at, settings["seed"])
        return _serve(settings, [gpus, HostSource(settings["per_core"])], folder, listening, demo=True)


def once(settings: Settings, flags: dict[str, Any]) -> int:
    from trainvitals import console
    from trainvitals.once import read_once

    snapshot, states = read_once(_sources(settings))
    if flags["json"]:
        import orjson

        from trainvitals.web.views import snapshot_view

        sys.stdout.buffer.write(orjson.dumps(snapshot_view(snapshot, states), option=orjson.OPT_APPEND_NEWLINE))
        return 0
    print(console.tick_line(snapshot) if any(snapshot.of("gpu")) else "; ".join(console.gpu_words(snapshot, states)))
    print(f"host: {console.host_words(snapshot)}")
    return 0


def doctor(settings: Settings, _: dict[str, Any]) -> int:
    from trainvitals import doctor as examination
    from trainvitals.console import table

    found = examination.checks(settings)
    print(table(found))
    return 0 if examination.is_well(found) else 1


def monitor(settings: Settings, flags: dict[str, Any]) -> int:
    from trainvitals import monitor as watching

    return watching.run(settings, _sources(settings), _agent, ticks=not flags["no_console"])


def _serve(settings: Settings, sources: "Sequence[Source]", root: Path | None = None, listening: Any = None,
           demo: bool = False) -> int:  # fmt: skip
    from trainvitals.console import set_up_logging
    from trainvitals.web import config as web_config
    from trainvitals.web.app import make_app
    from trainvitals.web.server import serve as serve_app

    set_up_logging(settings["log_format"], uuid.uuid4().hex[:12])
    guard = web_config.load(settings["web_config"])
    agent = _agent(settings, sources, root=root)
    agent.start()
    try:
        listening = listening or _bind(settings)
        host, port = listening.getsockname()[:2]
        scheme = "https" if guard.tls else "http"
        address = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
        threading.Thread(target=_greet, args=(agent, address, demo), daemon=True).start()
        serve_app(make_app(agent, guard, settings["allowed_hosts"]), listening, guard)
    finally:
        agent.stop()
    return 0


def _greet(agent: "Agent", address: str, demo: bool) -> None:
    """Once there is something to tell: after the first reading, or three seconds."""
    from trainvitals.console import welcome

    deadline = time.monotonic() + 3
    while not agent.snapshot.readings and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.1)
    welcome(sys.stdout, node=agent.host, address=address, journal=str(agent.root), snapshot=agent.snapshot,
            sources=agent.sources, demo=demo)  # fmt: skip


def _agent(settings: Settings, sources: "Sequence[Source]", *, root: Path | None = None, **log: Any) -> "Agent":
    from trainvitals.agent.service import Agent

    return Agent(sources, root or settings["dir"] or _root(), **log,
                 **{name: settings[name] for name in _AGENT_SETTINGS})  # fmt: skip


def _bind(settings: Settings) -> Any:
    try:
        from trainvitals.web.server import bind
    except ImportError as error:
        raise TrainVitalsError(f"{error.name} is missing: `pip install 'trainvitals[web]'`") from error
    return bind(settings["host"], settings["port"])


def _root() -> Path:
    from trainvitals.journal.layout import find_root

    return find_root()


def _sources(settings: Settings) -> "list[Source]":
    from trainvitals.sources.host import HostSource

    host = HostSource(settings["per_core"])
    if settings["simulate"]:
        from trainvitals.sources.simulated import SimulatedSource

        return [SimulatedSource(settings["simulate"], settings["scenario"], settings["seed"]), host]
    if settings["scenario"] != "healthy":
        raise SettingError("--scenario", settings["scenario"], "a scenario needs simulated GPUs: add --simulate 8")
    from trainvitals.sources.nvml import NvmlSource

    return [NvmlSource(), host]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="trainvitals", description="Vital signs for GPU training.", epilog=EXAMPLES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--version", action="version", version=f"trainvitals {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _command(commands, "serve", serve, "watch this machine: page, /metrics, journal", *_SIMULATION_FLAGS, *_AGENT_FLAGS)
    _command(commands, "demo", demo, "the same with simulated GPUs and a simulated run", "seed", *_AGENT_FLAGS[1:])
    watching = _command(commands, "monitor", monitor, "GPUs in the terminal and in a JSONL log", "gpu", "gpus",
                        "interval", "prometheus_port", "summary_interval", "log_dir", "log_format", "dir",
                        *_SIMULATION_FLAGS)  # fmt: skip
    watching.add_argument("--no-console", action="store_true", help="no line a tick")
    reading = _command(commands, "once", once, "one reading of everything", "per_core", *_SIMULATION_FLAGS)
    reading.add_argument("--json", action="store_true", help="as JSON")
    _command(commands, "doctor", doctor, "what was found here, what not, and what mends it", "dir", "host", "port")
    return parser


def _command(commands: Any, name: str, run: Callable[..., int], text: str, *flags: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text.capitalize() + ".")
    parser.set_defaults(command=run)
    parser.add_argument("--env-file", metavar="FILE", help="file of TRAINVITALS_…=value lines")
    config.add_flags(parser, *flags)
    return parser


if __name__ == "__main__":
    sys.exit(main())
