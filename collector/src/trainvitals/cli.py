"""The command line, and the only place where the parts are put together."""

import argparse
import functools
import io
import secrets
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from trainvitals import __version__, alert_commands, config, top_command
from trainvitals.ending import end_on_signals, end_with
from trainvitals.errors import SettingError, TrainVitalsError, install_words
from trainvitals.examples import EXAMPLES

if TYPE_CHECKING:
    from trainvitals.agent.service import Agent
    from trainvitals.sinks.supervisor import Sinks
    from trainvitals.sources import Source
    from trainvitals.web.access import Access

_AGENT_FLAGS = ("dir", "interval", "host", "port", "allowed_hosts", "web_config", "token", "expected_gpus",
                "node_price", "per_core", "host_proc", "runs_cap", "node_cap", "ray_address", "rules", "notify",
                "heartbeat_url", "log_format")  # fmt: skip
_AGENT_SETTINGS = ("interval", "expected_gpus", "node_price", "runs_cap", "node_cap")
_SIMULATION_FLAGS = ("simulate", "scenario", "seed")
Settings = dict[str, Any]
Tell = Callable[[str], None]


def main(arguments: Sequence[str] | None = None) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    command = None
    try:
        parsed = _parse(arguments)
        command = parsed.pop("command")
        if parent := parsed.get("with_parent"):
            threading.Thread(target=end_with, args=(parent,), daemon=True).start()
        return _attempt(command, parsed)
    except BrokenPipeError:
        return _finish(0)
    except (KeyboardInterrupt, RuntimeError) as error:
        # Python 3.11 wraps what comes while it makes a class, as when a signal comes amid imports.
        if not isinstance(error.__cause__ or error, KeyboardInterrupt):
            raise
        return 0 if command in _UNTIL_ENDED else 130


def _attempt(command: Callable[[Settings, dict[str, Any]], int], parsed: dict[str, Any]) -> int:
    try:
        return _finish(command(config.load(parsed), parsed))
    except TrainVitalsError as error:
        return _complain(str(error))
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("trainvitals"):
            raise
        return _complain(f"{error.name} is missing: {install_words('web')}")


def _finish(status: int) -> int:
    """Whoever reads a pipe may leave when they have read enough."""
    try:
        if sys.stdout:
            sys.stdout.flush()
    except OSError:
        from trainvitals.console import leave_stdout

        leave_stdout()
    return status


def _complain(text: str) -> int:
    print(f"trainvitals: {text}", file=sys.stderr)
    return 2


def serve(settings: Settings, flags: dict[str, Any]) -> int:
    from trainvitals.sources.ray import clusters
    from trainvitals.web.access import choose

    end_on_signals()
    environ = config.environment(flags)
    sources = [*_sources(settings, _journal(settings)), *clusters(settings["ray_address"])]
    return _serve(settings, sources, choose(settings, environ), environ)


def demo(settings: Settings, flags: dict[str, Any]) -> int:
    from trainvitals import demo as simulated
    from trainvitals import demo_nodes
    from trainvitals.sources.host import HostSource
    from trainvitals.web.access import choose

    end_on_signals()
    access = choose(settings, config.environment(flags))
    names, listening = demo_nodes.names(flags["nodes"]), demo_nodes.bind_all(settings, flags["nodes"])
    with simulated.trainer(settings["seed"], names) as folder, demo_nodes.others(folder, settings, access, listening):
        sources: list[Source] = [simulated.gpus(0, len(names), settings["seed"]),
                                 HostSource(settings["per_core"], settings["host_proc"])]  # fmt: skip
        root = simulated.root_of(folder, names, 0)
        return _serve(settings, sources, access, {}, root, listening[0], simulated.announce)


def once(settings: Settings, flags: dict[str, Any]) -> int:
    from trainvitals import console
    from trainvitals.once import read_once

    snapshot, states = read_once(_sources(settings))
    if flags["json"]:
        import orjson

        from trainvitals.web.views import snapshot_view

        sys.stdout.buffer.write(orjson.dumps(snapshot_view(snapshot, states), option=orjson.OPT_APPEND_NEWLINE))
        return 0
    lines = console.gpu_lines(snapshot)
    lines += console.problem_words(states) or ([] if lines else ["the driver knows of no GPU"])
    print("\n".join([*lines, console.host_line(snapshot)]))
    return 0


def doctor(settings: Settings, _: dict[str, Any]) -> int:
    from trainvitals import doctor as examination
    from trainvitals.console import table

    found = examination.checks(settings)
    print(table(found))
    return 0 if examination.is_well(found) else 1


def monitor(settings: Settings, flags: dict[str, Any]) -> int:
    from trainvitals import monitor as watching

    return watching.run(settings, _sources(settings, _journal(settings)), _agent, ticks=not flags["no_console"])


def sync(settings: Settings, flags: dict[str, Any]) -> int:
    from trainvitals.sinks.sync import run

    end_on_signals()
    return run(flags["run"], settings["to"] or (), _journal(settings))


def _serve(settings: Settings, sources: "Sequence[Source]", access: "Access", environ: Mapping[str, str],
           root: Path | None = None, listening: Any = None,
           announce: Callable[[Tell], None] | None = None) -> int:  # fmt: skip
    from trainvitals.console import greet, set_up_logging, teller
    from trainvitals.telling import Telling
    from trainvitals.web.access import addresses
    from trainvitals.web.app import make_app
    from trainvitals.web.server import serve as serve_app

    process_id = secrets.token_hex(6)
    set_up_logging(settings["log_format"], process_id)
    tell = teller(settings["log_format"], process_id)
    telling = Telling(settings, environ, root or _journal(settings), is_demo=announce is not None)
    agent = _agent(settings, sources, root=root, engine=telling.engine, tell=telling.tell, ways=telling.ways)
    # What a demo shows belongs nowhere else.
    sinks = _sinks(() if announce else settings["sinks"], settings["sink_runs"], agent)
    words: dict[str, Any] = {"demo": announce is not None}
    greeter = threading.Thread(target=greet, args=(agent, tell, words), daemon=True)
    agent.start()
    try:
        listening = listening or _bind(settings)
        sinks.start()
        telling.start(agent)
        words |= (found := addresses(listening, access))
        agent.tell_address(found["address"])
        greeter.start()
        if announce:
            threading.Thread(target=announce, args=(tell,), daemon=True).start()
        app = make_app(agent, access.config, settings["allowed_hosts"], token=access.token)
        serve_app(app, listening, access.config)
    except KeyboardInterrupt:
        pass  # told to end before the server listened to that
    finally:
        agent.stop()
        telling.stop()
        sinks.stop()
    if greeter.ident:
        greeter.join(1.0)
    tell("Ended.")
    return 0


def _agent(settings: Settings, sources: "Sequence[Source]", *, root: Path | None = None, **log: Any) -> "Agent":
    from trainvitals.agent.service import Agent
    from trainvitals.journal.layout import host_name

    host = host_name(is_simulated=bool(settings["simulate"]))
    return Agent(sources, root or _journal(settings), host=host, **log,
                 **{name: settings[name] for name in _AGENT_SETTINGS})  # fmt: skip


def _sinks(wanted: Sequence[str], only: tuple[str, ...], agent: "Agent") -> "Sinks":
    from trainvitals.sinks import targets
    from trainvitals.sinks.job import Job
    from trainvitals.sinks.supervisor import Sinks

    return Sinks([Job(str(target), str(agent.root), "follow", agent.host, only=only) for target in targets(wanted)])


def _bind(settings: Settings) -> Any:
    from trainvitals.web.server import bind

    return bind(settings["host"], settings["port"])


def _journal(settings: Settings) -> Path:
    from trainvitals.journal.layout import find_root

    return settings["dir"] or find_root()


def _sources(settings: Settings, journal: Path | None = None) -> "list[Source]":
    """Of a command without a journal the host tells its local disks alone."""
    from trainvitals.sources.host import HostSource

    host = HostSource(settings["per_core"], settings["host_proc"], journal)
    if settings["simulate"]:
        from trainvitals.sources.simulated import SimulatedSource

        return [SimulatedSource(settings["simulate"], settings["scenario"], settings["seed"]), host]
    if settings["scenario"] != "healthy":
        key = "--scenario (TRAINVITALS_SCENARIO)"
        raise SettingError(key, settings["scenario"], "a scenario needs simulated GPUs: add --simulate 8")
    from trainvitals.sources.nvml import NvmlSource

    return [NvmlSource(), host]


_UNTIL_ENDED = (serve, demo, monitor)


class _Parser(argparse.ArgumentParser):
    """Examples below the flags, and errors in one line."""

    def __init__(self, **settings: Any) -> None:
        examples = EXAMPLES[settings["prog"].partition(" ")[2]]
        super().__init__(**settings, epilog=f"examples:{examples}", allow_abbrev=False,
                         formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip

    def error(self, message: str) -> NoReturn:
        from trainvitals.console import typed

        help_words = f"{typed()}{self.prog.removeprefix('trainvitals')} --help"
        self.exit(2, f"{self.prog}: {message}: see `{help_words}`\n")


def _parse(arguments: Sequence[str] | None) -> dict[str, Any]:
    parsed, unknown = _parser().parse_known_args(arguments)
    if unknown:
        # The command's own help lists its flags, the one of all commands does not.
        from trainvitals.console import typed

        name = f"{typed()} {parsed.command.__name__.replace('_', '-')}"
        raise SystemExit(_complain(f"{unknown[0]} is no flag of `{name}`: see `{name} --help`"))
    return vars(parsed)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="trainvitals", description="Vital signs for GPU training.")
    parser.add_argument("--version", action="version", version=f"trainvitals {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    serving = _command(commands, "serve", serve, "watch this machine: page, /metrics, journal", "sinks", "sink_runs",
                       *_SIMULATION_FLAGS, *_AGENT_FLAGS)  # fmt: skip
    showing = _command(commands, "demo", demo, "eight simulated GPUs and a run: page, /metrics", "seed",
                       *_AGENT_FLAGS[1:])  # fmt: skip
    showing.add_argument("--nodes", type=int, choices=(1, 2, 4), default=1, help="on so many nodes, a port each")
    watching = _command(commands, "monitor", monitor, "GPUs in the terminal and in a JSONL log", "gpu", "gpus",
                        "interval", "prometheus_port", "summary_interval", "log_dir", "log_format", "dir",
                        "sinks", "wandb_project", "wandb_run_name", *_SIMULATION_FLAGS)  # fmt: skip
    watching.add_argument("--no-console", action="store_true", help="no line a tick")
    for each in (serving, watching):
        each.add_argument("--with-parent", type=int, default=0, metavar="PID", help="end with that process")
    reading = _command(commands, "once", once, "one reading of everything", "per_core", *_SIMULATION_FLAGS)
    reading.add_argument("--json", action="store_true", help="as JSON")
    _command(commands, "doctor", doctor, "what was found here, what not, and what mends it", "dir", "host", "port")
    syncing = _command(commands, "sync", sync, "everything of one run to TensorBoard, W&B or MLflow", "to", "dir")
    syncing.add_argument("run", metavar="RUN", help="a run's id, or the path of its folder")
    alert_commands.add(functools.partial(_command, commands))
    top_command.add(functools.partial(_command, commands), _sources, _agent, _journal)
    return parser


def _command(commands: Any, name: str, run: Callable[..., int], text: str, *flags: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    parser.set_defaults(command=run)
    parser.add_argument("--env-file", metavar="FILE", help="file of TRAINVITALS_…=value lines")
    config.add_flags(parser, *flags)
    return parser


if __name__ == "__main__":
    sys.exit(main())
